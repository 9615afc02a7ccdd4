"""Answers of a run on text: how a text is predicted, what may follow, and what is drawn."""

import math
import secrets
from collections.abc import Sequence

import torch
from torch import Generator, Tensor

from elman.config.inference import Sampling
from elman.data.text.tokeniser import Detokeniser
from elman.data.text.utf8 import readable
from elman.decoding.sampling import among, draw, read, weighed
from elman.errors import UserError
from elman.network.model import LanguageModel
from elman.network.state import State
from elman.objective import perplexity
from elman.serve import answers, questions
from elman.serve.limits import Limits, busy
from elman.serve.service import Answer, place_in
from elman.serve.tabs import Tab
from elman.serve.text_reader import Adapted, marks_of, read_text, token_shown
from elman.serve.text_views import TextViews
from elman.serve.worker import Stream, Work
from elman.tasks.text.run import TextRun


class TextService(TextViews):
    """A run on text.

    A tab that adapts is scored word by word as its model learns; other questions are answered by the adapted model as
    it then is, which reads the text from its beginning.
    """

    static = "elman.serve.static_text:write_text"

    def __init__(self, name: str, run: TextRun, limits: Limits) -> None:
        super().__init__(name, run, limits)
        own: dict[str, Answer] = {
            "score": self.score,
            "next": self.next,
            "generate": self.generate,
            "adapt": self.adapt,
        }
        self.answers = own | self.answers

    def facts(self) -> answers.RunFacts:
        options = self.run.options
        letters = ["letters"] if options.tokenisation in ("characters", "bytes") else []
        return self._facts(
            len(self.run.vocabulary),
            panels=[*self.answers, *letters],
            layers=self.num_layers,
            tokenisation=options.tokenisation,
            spelt=options.spelt,
            lowercase=options.lowercase,
        )

    def score(self, question: questions.Score, tab: Tab) -> Work[answers.TextScore]:
        """Every token of a text with its surprisal, the entropy before it and its rank."""
        adapted = tab.find(self.name, Adapted)
        text = read_text(self.run, question.text, known_only=adapted is not None)
        if adapted is None:
            prefixes = self.prefixes(tab)
            before = prefixes.computed
            scored = yield from prefixes.read(text.symbols)
            computed = prefixes.computed - before
        else:
            scored, computed = yield from adapted.read(text.symbols.ids)
        bits = sum(one.bits for one in scored)
        return answers.TextScore(
            marks=marks_of(self.run, text, scored),
            tokens=text.length,
            bits=bits,
            perplexity=_finite(perplexity(bits * math.log(2) / text.length)) if text.length else None,
            computed=computed,
            adapted=adapted is not None,
            notes=text.notes,
        )

    def next(self, question: questions.Next, tab: Tab) -> Work[answers.NextWords]:
        """The distribution of the token at a position."""
        text, place, first = yield from self.placed(question, tab, ())
        model, unread, state = place
        log_probs, _ = read(model, unread, state)
        log_probs = among(log_probs, first) if first else log_probs
        yield
        position, sampling = place_in(question.position, text.length), self.sampling(question)
        actual = text.symbols.ids[position] if position < text.length else None
        return self._next(log_probs, sampling, question.count, position, actual)

    @torch.inference_mode()
    def _next(
        self, log_probs: Tensor, sampling: Sampling, count: int, position: int, actual: int | None
    ) -> answers.NextWords:
        probs = log_probs[0].double().exp()
        scores = weighed(log_probs, sampling)[0].double()
        drawn = scores.softmax(-1)
        if sampling.temperature == 0:
            drawn = torch.zeros_like(drawn).index_fill_(0, scores.argmax(), 1.0)
        best = probs.topk(min(count, len(probs))).indices

        def candidate(number: int) -> answers.Candidate:
            token = token_shown(self.run, self.run.vocabulary.words[number])
            return answers.Candidate(
                token=token, id=number, probability=float(probs[number]), drawn=float(drawn[number])
            )

        return answers.NextWords(
            words=[candidate(number) for number in best.tolist()],
            entropy=float(torch.special.entr(probs).sum() / math.log(2)),
            position=position,
            actual=None if actual is None else candidate(actual),
            left=max(0.0, 1.0 - float(probs[best].sum())),
        )

    def generate(self, question: questions.Generate, tab: Tab) -> Stream[object]:
        """Tokens that continue a text, one event each; a blank at its end is not repeated before a word."""
        text, (model, unread, state), first = yield from self.placed(question, tab, question.after)
        size = len(self.run.vocabulary)
        if (wrong := next((one for one in question.after if one >= size), None)) is not None:
            raise UserError(f"after has {wrong}, and the vocabulary has {size:,} tokens, numbered from 0")
        sampling = self.sampling(question)
        seed = secrets.randbits(48) if question.seed is None else question.seed
        generator, words = Generator(self.run.device).manual_seed(seed), self.run.vocabulary.words
        undo = Detokeniser(self.run.options)
        for token in (*text.tokens[: -1 if first else question.position], *self.run.vocabulary.decode(question.after)):
            undo.add(token)
        unread, first = [*unread, *question.after], () if question.after else first
        at_end = not question.after and place_in(question.position, text.length) == text.length
        blank = " " * (bool(first) or (at_end and not self.run.options.spelt and question.text.endswith(" ")))
        yield answers.Begun(seed=seed)
        for _ in range(question.drawn):
            symbol, log_prob, state = _draw(model, unread, state, sampling, generator, first)
            token = words[symbol]
            added = undo.add(token).removeprefix(blank)
            unread, first, blank = [symbol], (), ""
            yield answers.Drawn(
                id=symbol, token=token_shown(self.run, token), text=readable(added), bits=-log_prob / math.log(2)
            )
        yield answers.Ended(reason="length")

    def adapt(self, question: questions.Adapt, tab: Tab) -> Work[answers.Adapting]:
        """Let the weights follow the text of a tab, or no longer."""
        if question.tab is None:
            raise UserError("adapt needs a tab, whose text is learnt")
        if not question.on:
            tab.drop(self.name, Adapted)
        else:
            if tab.find(self.name, Adapted) is None and tab.holding(Adapted) >= self.limits.adapted:
                raise busy(f"{self.limits.adapted} tabs adapt already", 30)
            tab.drop(self.name, Adapted)
            tab.keep(self.name, Adapted, lambda: Adapted(self.run, question.rate))
        yield
        return answers.Adapting(on=question.on)

    def sampling(self, question: questions.Weighed) -> Sampling:
        """The settings of draws; raises UserError where one is out of range."""
        forbidden = () if question.unk else self.run.unspeakable
        found = Sampling(
            temperature=question.temperature, top_k=question.top_k, top_p=question.top_p, forbidden=forbidden
        )
        found.check()
        return found


def _draw(
    model: LanguageModel,
    unread: list[int],
    state: State,
    sampling: Sampling,
    generator: Generator,
    first: Sequence[int] = (),
) -> tuple[int, float, State]:
    """Read symbols and draw the next: its number, its log-probability (nats) and the state before it is read."""
    log_probs, state = read(model, unread, state)
    log_probs = among(log_probs, first) if first else log_probs
    with torch.inference_mode():
        symbol = int(draw(log_probs, sampling, generator))
    return symbol, float(log_probs[0, symbol]), state


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
