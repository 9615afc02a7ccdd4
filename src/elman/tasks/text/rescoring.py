"""Rescoring of the n best hypotheses of a recogniser by a language model."""

import dataclasses
import math
from collections.abc import Iterator, Sequence

import msgspec
import numpy as np
import numpy.typing as npt
import torch

from elman.data.batches import stack_sequences
from elman.data.hypotheses import Hypothesis, by_utterance
from elman.data.text.reading import Sentence, TextReader
from elman.errors import UserError
from elman.evaluation.measures import edit_distance
from elman.evaluation.perplexity import NOT_FINITE
from elman.evaluation.scoring import Sentences, Unknown
from elman.network.state import select
from elman.tasks.text.run import TextRun


class Mix(msgspec.Struct, frozen=True, kw_only=True):
    """score = sum_j given_weights[j] given_j + weight log p(text) - word_penalty words.

    `weight`, of the language model's log-probability (nats), is the "language model scale"; `given_weights` None: all
    1.
    """

    weight: float = 1.0
    word_penalty: float = 0.0
    given_weights: tuple[float, ...] | None = None

    def score(self, hypothesis: Hypothesis, log_prob: float) -> float:
        weights = self.weights_of(len(hypothesis.scores))
        given = sum(weight * score for weight, score in zip(weights, hypothesis.scores, strict=True))
        return given + self.weight * log_prob - self.word_penalty * len(hypothesis.text.split())

    def weights_of(self, count: int) -> tuple[float, ...]:
        return (1.0,) * count if self.given_weights is None else self.given_weights


class Grid(msgspec.Struct, frozen=True, kw_only=True):
    """The points at which a mix is tuned: weights and penalties are tried together.

    `given` are weights of each given score from the second on, tried one after another; empty: they are not tuned.
    """

    weights: tuple[float, ...] = (*(step / 20 for step in range(41)), *(step / 2 for step in range(5, 41)))
    penalties: tuple[float, ...] = (0.0, -1.0, -0.5, 0.5, 1.0)
    given: tuple[float, ...] = tuple(step / 10 for step in range(21))


def ranked(hypotheses: Sequence[Hypothesis], log_probs: Sequence[float], mix: Mix) -> Iterator[tuple[str, list[int]]]:
    """The numbers of each utterance's hypotheses, the best first; ties keep their order."""
    scores = [mix.score(one, log_prob) for one, log_prob in zip(hypotheses, log_probs, strict=True)]
    for utterance, group in by_utterance(hypotheses).items():
        yield utterance, sorted(group, key=lambda index: -scores[index])


@dataclasses.dataclass
class Trial:
    """Hypotheses with the log-probability of each (nats), [N], and the references of all utterances, for tuning a mix.

    Where a reference has no hypothesis its words count as deleted, whatever the mix.
    """

    hypotheses: Sequence[Hypothesis]
    log_probs: Sequence[float]
    references: dict[str, str]

    def __post_init__(self) -> None:
        groups = by_utterance(self.hypotheses)
        self._order = np.concatenate([np.array(group) for group in groups.values()])
        self._starts = np.cumsum([0, *map(len, groups.values())])[:-1]
        self._sizes = np.array([len(group) for group in groups.values()])
        scored = zip(self.hypotheses, self.log_probs, strict=True)
        rows = [(*one.scores, log_prob, -len(one.text.split())) for one, log_prob in scored]
        self._features = np.array(rows, dtype=np.float64)[self._order]
        lengths = {name: len(text.split()) for name, text in self.references.items()}
        self._words = sum(lengths.values())
        self.without_hypothesis = [name for name in lengths if name not in groups]
        self.deleted = sum(lengths[name] for name in self.without_hypothesis)
        self._errors: dict[int, int] = {}

    def error_rate(self, mix: Mix) -> float:
        """The word error rate of the hypotheses that a mix chooses; NaN where the references have no words."""
        errors = self.deleted + sum(self._errors_of(index) for index in self._chosen(mix).tolist())
        return errors / self._words if self._words else math.nan

    def tuned(self, mix: Mix, grid: Grid) -> tuple[Mix, float]:
        """The mix of lowest word error rate, and that rate; ties go to the smallest weight and penalty.

        Weight and penalty are tuned together, then each further given weight, and so on until nothing improves.
        """
        best, lowest = mix, math.inf
        while True:
            before = lowest
            pairs = [(weight, penalty) for weight in grid.weights for penalty in sorted(grid.penalties, key=abs)]
            mixes = [msgspec.structs.replace(best, weight=weight, word_penalty=penalty) for weight, penalty in pairs]
            best, lowest = self._better(best, lowest, mixes)
            given = best.weights_of(self._features.shape[1] - 2)
            for index in range(1, len(given) if grid.given else 1):
                given = best.weights_of(len(given))
                mixes = [
                    msgspec.structs.replace(best, given_weights=(*given[:index], weight, *given[index + 1 :]))
                    for weight in grid.given
                ]
                best, lowest = self._better(best, lowest, mixes)
            if not lowest < before:
                return best, lowest

    def _better(self, best: Mix, lowest: float, mixes: Sequence[Mix]) -> tuple[Mix, float]:
        for mix in mixes:
            rate = self.error_rate(mix)
            if rate < lowest:
                best, lowest = mix, rate
        return best, lowest

    def _chosen(self, mix: Mix) -> npt.NDArray[np.intp]:
        """The number of the best hypothesis of every utterance; ties go to the first."""
        given = mix.weights_of(self._features.shape[1] - 2)
        scores = self._features @ np.array([*given, mix.weight, mix.word_penalty])
        best = np.repeat(np.maximum.reduceat(scores, self._starts), self._sizes)
        places = np.flatnonzero(scores == best)
        return self._order[places[np.searchsorted(places, self._starts)]]

    def _errors_of(self, index: int) -> int:
        if index not in self._errors:
            one = self.hypotheses[index]
            self._errors[index] = edit_distance(one.text.split(), self.references[one.utterance].split())
        return self._errors[index]


def read_hypotheses(run: TextRun, hypotheses: Sequence[Hypothesis], reader: TextReader | None = None) -> Sentences:
    """Each text read as the training text was, as a sentence of its own; an empty one is `<eos>` alone."""
    read = run.reader("the hypotheses") if reader is None else reader
    text = run.as_read(read.complete(one.text, number) for number, one in enumerate(hypotheses, start=1))
    return Sentences(text.model, list(text.items))


def unknown_types(read: Sentences) -> int:
    """How many different words of the hypotheses the vocabulary lacks."""
    return len({token for sentence, _ in read.items for token in sentence.lacking})


def log_probs_fresh(run: TextRun, read: Sentences, treatment: Unknown, batch_size: int = 32) -> list[float]:
    """The log-probability (nats) of each hypothesis as a text of its own, in batches of similar length."""
    items = list(read.items)
    order = sorted((index for index, (_, ids) in enumerate(items) if len(ids)), key=lambda index: len(items[index][1]))
    totals = [0.0] * len(items)
    ordered = Sentences(read.model, [items[index] for index in order])
    scored = run.score_text(ordered, batch_size=batch_size)
    for index, (sentence, log_probs) in zip(order, scored, strict=True):
        totals[index] = _total(sentence, log_probs, treatment)
    return totals


@torch.inference_mode()
def log_probs_carried(
    run: TextRun, hypotheses: Sequence[Hypothesis], read: Sentences, treatment: Unknown, mix: Mix
) -> list[float]:
    """The log-probability (nats) of each hypothesis, read after the ones chosen for earlier utterances."""
    state, before = read.model.begin(1), run.first
    items = list(read.items)
    totals = [0.0] * len(items)
    for group in by_utterance(hypotheses).values():
        ids = [np.append(items[index][0].ids, run.first) for index in group]
        inputs = [np.append(items[index][1], run.first) for index in group]
        batch, lengths = stack_sequences(ids, before, inputs)
        batch = batch.to(run.device)
        many = select(state, torch.zeros(len(group), dtype=torch.long, device=run.device))
        log_probs = read.model.log_prob(batch.inputs, batch.targets, many)[0].t().float().cpu().numpy()
        for row, (index, length) in enumerate(zip(group, lengths, strict=True)):
            totals[index] = _total(items[index][0], log_probs[row, : length - 1], treatment)
        best = max(group, key=lambda index: mix.score(hypotheses[index], totals[index]))
        if len(chosen := items[best][1]):
            symbols = torch.tensor([before, *chosen[:-1].tolist()], device=run.device).unsqueeze(1)
            _, state = read.model.trace(symbols, state)
            before = int(chosen[-1])
    return totals


def _total(sentence: Sentence, log_probs: np.ndarray, treatment: Unknown) -> float:
    if np.isnan(log_probs).any():
        raise UserError(f"a hypothesis has no probability but NaN; {NOT_FINITE}")
    return float(np.nansum(treatment.apply(log_probs, sentence.unknown_tokens), dtype=np.float64))
