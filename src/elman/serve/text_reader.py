"""A run on text as each tab reads it: by the trained model, or by one that learns from the text while it is written."""

from collections.abc import Sequence

import torch

from elman.config.inference import RULES
from elman.data.text.subwords import SPACE
from elman.evaluation.adaptive_stream import AdaptiveStream
from elman.evaluation.scoring import predict
from elman.network.model import LanguageModel
from elman.network.state import State
from elman.serve import questions
from elman.serve.limits import Limits
from elman.serve.prefixes import Prefixes, Scored, scored
from elman.serve.service import Service, place_in
from elman.serve.tabs import Tab
from elman.serve.text_reading import Text, read_text
from elman.serve.worker import Work
from elman.tasks.text.run import TextRun

PIECE = 5  # tokens learnt from between two turns of others


class Adapted:
    """A copy of a run's model, adapted to a tab (dynamic evaluation) by the rule "sgd", which needs no statistics.

    The last token of a text is scored and not learnt from, since it is still being written. Where another token was
    changed, the model begins again with the trained weights and learns from the text from its beginning.
    """

    def __init__(self, run: TextRun, rate: float) -> None:
        self._run, self._rule = run, type(RULES["sgd"])(kind="sgd", lr=rate, decay=0.0)
        self._busy = False
        self._restart()

    @property
    def model(self) -> LanguageModel:
        return self._stream.model

    def read(self, ids: Sequence[int]) -> Work[tuple[list[Scored], int]]:
        """How each token was predicted by the weights of that time, and how many were read for this answer.

        A question of the same tab that comes while another one is learning waits for it.
        """
        while self._busy:
            yield
        self._busy = True
        try:
            return (yield from self._learn(ids))
        finally:
            self._busy = False

    def _learn(self, ids: Sequence[int]) -> Work[tuple[list[Scored], int]]:
        settled = list(ids[:-1])
        if self._read != settled[: len(self._read)]:
            self._restart()
        new = settled[len(self._read) :]
        for at in range(0, len(new), PIECE):
            part = new[at : at + PIECE]
            found = self._stream.predict(part)
            size = len(part)
            self._scored += scored(*(values[:size].tolist() for values in found))
            self._read += part
            yield
        last = [self._last(ids[-1])] if ids else []
        return [*self._scored, *last], len(new) + len(last)

    def _last(self, token: int) -> Scored:
        unread, device = self._stream.unread, self.model.device
        inputs = torch.tensor(unread, device=device).unsqueeze(1)
        targets = torch.tensor([*unread[1:], token], device=device).unsqueeze(1)
        found, _ = predict(self.model, inputs, targets, self._stream.state)
        return scored(*(part[-1].tolist() for part in found))[0]

    def _restart(self) -> None:
        self._stream = AdaptiveStream(self._run.model, self._rule, None, self._run.first)
        self._read, self._scored = list[int](), list[Scored]()


class TextReader(Service):
    """A run on text, read from where the prefixes of a tab end."""

    kind = "text"

    def __init__(self, name: str, run: TextRun, limits: Limits) -> None:
        super().__init__(name, run, limits)
        self.run = run

    def prefixes(self, tab: Tab) -> Prefixes:
        return tab.keep(self.name, Prefixes, self._fresh)

    def _fresh(self) -> Prefixes:
        return Prefixes(self.run.first, self.limits.tab_megabytes, self.run.spaces)

    def placed(
        self, question: questions.Placed, tab: Tab, after: Sequence[int] | None = None
    ) -> Work[tuple[Text, tuple[LanguageModel, list[int], State], tuple[int, ...]]]:
        """The text of a question; the model, the symbols still to be read and the state before them at its position.

        `after` are the symbols that follow the text, where what comes next is asked for: then a blank at the end of a
        text in subwords begins the next word, so that it is not read, and last come the symbols that may follow; none:
        all may.
        """
        adapted = tab.find(self.name, Adapted)
        text = read_text(self.run, question.text, known_only=adapted is not None)
        position, blank = place_in(question.position, text.length), self.run.vocabulary.ids.get(SPACE)
        ends = after is not None and 1 < position == text.length and text.symbols.ids[-1] == blank
        first = self.run.spaces if ends and (not after or after[0] in self.run.spaces) else ()
        position -= bool(first)
        if adapted is None:
            unread, state = yield from self.prefixes(tab).place(text.symbols, position)
            return text, (text.symbols.model, unread, state), first
        yield from adapted.read(text.symbols.ids)
        unread, state = yield from self._fresh().place(text.symbols._replace(model=adapted.model), position)
        return text, (adapted.model, unread, state), first

    def scored(self, text: Text, tab: Tab) -> Work[list[Scored]]:
        """How the tokens of a text were predicted, by the model as it was trained."""
        return (yield from self.prefixes(tab).read(text.symbols))
