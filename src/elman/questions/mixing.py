"""How a language model's score is weighed against those that hypotheses came with, and how the weights are tuned."""

import dataclasses
import math
from collections.abc import Iterator, Sequence

import msgspec
import numpy as np
import numpy.typing as npt

from elman.data.nbest import Hypothesis, by_utterance
from elman.evaluation.edit_distance import edit_distance


class Mix(msgspec.Struct, frozen=True, kw_only=True):
    """score = sum_j given_weights[j] given_j + weight log p(text) - word_penalty words.

    Attributes:
        weight: of the language model's log-probability (nats), the "language model scale".
        word_penalty: taken off for every word.
        given_weights: one for each given score; None: all 1.

    """

    weight: float = 1.0
    word_penalty: float = 0.0
    given_weights: tuple[float, ...] | None = None

    def score(self, hypothesis: Hypothesis, log_prob: float) -> float:
        """The score of a hypothesis, given its log-probability."""
        weights = self.weights_of(len(hypothesis.scores))
        given = sum(weight * score for weight, score in zip(weights, hypothesis.scores, strict=True))
        return given + self.weight * log_prob - self.word_penalty * len(hypothesis.text.split())

    def weights_of(self, count: int) -> tuple[float, ...]:
        """The weights of so many given scores."""
        return (1.0,) * count if self.given_weights is None else self.given_weights


class Grid(msgspec.Struct, frozen=True, kw_only=True):
    """Where a mix is looked for.

    Attributes:
        weights, penalties: tried together.
        given: for the weight of each given score from the second on, one after another; empty: they stay.

    """

    weights: tuple[float, ...] = (*(step / 20 for step in range(41)), *(step / 2 for step in range(5, 41)))
    penalties: tuple[float, ...] = (0.0, -1.0, -0.5, 0.5, 1.0)
    given: tuple[float, ...] = tuple(step / 10 for step in range(21))


def ranked(hypotheses: Sequence[Hypothesis], log_probs: Sequence[float], mix: Mix) -> Iterator[tuple[str, list[int]]]:
    """The numbers of each utterance's hypotheses, the best first; equals keep their order."""
    scores = [mix.score(one, log_prob) for one, log_prob in zip(hypotheses, log_probs, strict=True)]
    for utterance, group in by_utterance(hypotheses).items():
        yield utterance, sorted(group, key=lambda index: -scores[index])


@dataclasses.dataclass
class Trial:
    """Hypotheses that are held against references.

    Args:
        hypotheses: of all utterances.
        log_probs: of each (nats), [N].
        references: the right text of every utterance.

    """

    hypotheses: Sequence[Hypothesis]
    log_probs: Sequence[float]
    references: dict[str, str]

    def __post_init__(self) -> None:
        groups = by_utterance(self.hypotheses)
        self._order = np.concatenate([np.array(group) for group in groups.values()])
        self._starts = np.cumsum([0, *map(len, groups.values())])[:-1]
        self._sizes = np.array([len(group) for group in groups.values()])
        rows = [
            (*one.scores, log_prob, -len(one.text.split()))
            for one, log_prob in zip(self.hypotheses, self.log_probs, strict=True)
        ]
        self._features = np.array(rows, dtype=np.float64)[self._order]
        self._words = sum(len(self.references[name].split()) for name in groups)
        self._errors: dict[int, int] = {}

    def error_rate(self, mix: Mix) -> float:
        """The word error rate of what a mix chooses; NaN where the references have no words."""
        errors = sum(self._errors_of(index) for index in self._chosen(mix).tolist())
        return errors / self._words if self._words else math.nan

    def tuned(self, mix: Mix, grid: Grid) -> tuple[Mix, float]:
        """The mix of lowest word error rate, and that rate; of equals the one nearest the given scores alone.

        Weight and penalty are looked for together, then each further given weight, and so on until nothing is gained.
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
        """The number of the best hypothesis of every utterance, the first of equals."""
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
