"""A run on text as each tab reads it, by the trained model or by one that learns meanwhile, and as a page shows it."""

import codecs
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import torch

from elman.config.inference import RULES
from elman.data.text.reading import Sentence, is_ended
from elman.data.text.utf8 import SPACE, piece_bytes, readable
from elman.data.text.vocabulary import EOS
from elman.evaluation.adaptive_stream import AdaptiveStream
from elman.evaluation.scoring import predict
from elman.evaluation.word_ends import with_word_ends
from elman.network.model import LanguageModel
from elman.network.state import State
from elman.serve import questions
from elman.serve.answers import Mark
from elman.serve.prefixes import Prefixes, Scored, Symbols, scored
from elman.serve.service import Service, place_in
from elman.serve.tabs import Tab
from elman.serve.worker import Work
from elman.tasks.text.run import TextRun


class Text(NamedTuple):
    """A text as a run reads it.

    Attributes:
        symbols: what is read and predicted, [n]; the end of a line that is still being written is left out.
        tokens: as the vocabulary has them, unknown ones too, [n].
        sentences: as they stand in the text.
        notes: what the vocabulary lacks.
    """

    symbols: Symbols
    tokens: list[str]
    sentences: list[Sentence]
    notes: list[str]

    @property
    def length(self) -> int:
        return len(self.tokens)


def read_text(run: TextRun, text: str, *, known_only: bool = False) -> Text:
    """Read a text; symbols that a vocabulary without `<unk>` lacks are left out."""
    reader = run.reader("the text", leave_out=True)
    found = run.reading(text, reader, known_only=known_only)
    items = list(found.items)
    tokens = [token for sentence, _ in items for token in sentence.read]
    ids = [int(one) for sentence, _ in items for one in sentence.ids]
    inputs = [int(one) for _, part in items for one in part]
    length = len(tokens) - (bool(tokens) and tokens[-1] == EOS and not is_ended(text, run.options))
    size = len(run.vocabulary)
    keys = [one if one < size else token for one, token in zip(inputs[:length], tokens, strict=False)]
    symbols = Symbols(found.model, inputs[:length], ids[:length], list(keys))
    return Text(symbols, tokens[:length], [sentence for sentence, _ in items], reader.report())


def marks_of(run: TextRun, text: Text, scored: Sequence[Scored]) -> list[Mark]:
    found, at = list[Mark](), 0
    for shown, tokens, begins, unknown in _shown(text.sentences, in_bytes=run.options.open_vocabulary):
        if at + tokens > text.length:
            break
        part = scored[at : at + tokens]
        found.append(
            Mark(
                text=shown if shown != EOS else "",
                at=at if part else None,
                tokens=tokens,
                begins=begins,
                bits=sum(one.bits for one in part) if part else None,
                entropy=part[0].entropy if part else None,
                rank=part[0].rank if part else None,
                unknown=unknown,
                ends=shown == EOS,
            )
        )
        at += tokens
    return found


def _shown(sentences: Sequence[Sentence], *, in_bytes: bool) -> Iterator[tuple[str, int, bool, bool]]:
    """What is shown in one piece, its tokens, whether it begins a word, and is unknown; bytes make up characters."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    tokens, begun = 0, False
    for sentence in sentences:
        rows = zip(sentence.pieces, sentence.starts, sentence.unknown, strict=True)
        for place, (piece, begins, unknown) in enumerate(rows):
            ends = piece == EOS
            tokens, begun = tokens + (place not in sentence.left_out), begun or begins or (ends and in_bytes)
            if ends:
                decoder.reset()
            if shown := piece if ends or not in_bytes else decoder.decode(piece_bytes(piece)):
                yield shown, tokens, begun, unknown
                tokens, begun = 0, False
    if tokens:
        yield decoder.decode(b"", final=True) or "\ufffd", tokens, begun, False


def token_shown(run: TextRun, token: str) -> str:
    """A token as the page shows it by itself."""
    if not run.options.open_vocabulary or token == EOS:
        return token
    return readable(piece_bytes(token).decode("utf-8", "backslashreplace"))


def words_of(run: TextRun, text: Text, scored: Sequence[Scored]) -> Iterator[tuple[str, float | None, bool]]:
    """The words of a text, without `<eos>`, their bits, None where nothing of one is read, and which are unknown."""
    at = 0
    for sentence in text.sentences:
        read = scored[at : at + len(sentence.read)]
        bits = with_word_ends(
            np.array([one.bits for one in read]), np.array([one.space for one in read]), sentence, run.tokeniser
        )
        for word in sentence.words(run.tokeniser):
            part = bits[word.read]
            if word.text != EOS:
                yield word.text, float(part.sum()) if len(part) else None, word.unknown
        at += len(sentence.read)


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


class TextReader(Service[TextRun]):
    """A run on text, read from where the prefixes of a tab end."""

    kind, foreign = "text", ("roll", "after_roll")

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
        first = self.run.blanks if ends and (not after or after[0] in self.run.blanks) else ()
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
