"""How sure a measure of many sentences is, and whether two systems differ: resampling of sentences.

A measure is a function of sums over sentences (matches, lengths), so a resample is a matrix product.
"""

import dataclasses
import math
from collections.abc import Callable

import msgspec
import numpy as np
import numpy.typing as npt

# FOLDED evaluation/proportion.py: A share of successes with its confidence interval.
Z = 1.959963984540054
"""Standard normal quantile of a two-sided 95 % interval."""


@dataclasses.dataclass(frozen=True)
class Proportion:
    """`successes` of `count`."""

    successes: int
    count: int

    @property
    def share(self) -> float:
        """Successes / count; NaN of nothing."""
        return self.successes / self.count if self.count else math.nan

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval of Wilson 1927, which stays within [0, 1] and holds for shares near 0 and 1.

        Example:
            >>> tuple(round(bound, 4) for bound in Proportion(10, 10).interval)
            (0.7225, 1.0)

        """
        if not self.count:
            return 0.0, 1.0
        n, p = self.count, self.share
        centre = (p + Z * Z / (2 * n)) / (1 + Z * Z / n)
        half = Z / (1 + Z * Z / n) * math.sqrt(p * (1 - p) / n + Z * Z / (4 * n * n))
        return max(0.0, centre - half), min(1.0, centre + half)


# FOLDED evaluation/comparison.py: Is one model really better than another? A paired test on the tokens of one text.
class Comparison(msgspec.Struct, frozen=True):
    """What a paired comparison of models A and B found; differences are NLL(A) - NLL(B), so positive means B is better.

    Attributes:
        tokens: how many tokens were compared.
        difference: mean difference in nats a token.
        low, high: its 95 % interval.
        p_value: two-sided, of no difference.
        ratio: perplexity(A) / perplexity(B).
        better: the share of tokens that B predicts better.

    """

    tokens: int
    difference: float
    low: float
    high: float
    p_value: float
    ratio: float
    better: float


def compare(a: np.ndarray, b: np.ndarray, block: int = 100) -> Comparison:
    """Compare per-token log-probabilities (nats) of one text under two models.

    Neighbouring tokens share their context, so the test is on the means of blocks of tokens, which are close to
    independent; with many blocks their mean is normal.

    Args:
        a: log-probabilities [n] under A.
        b: log-probabilities [n] of the same tokens under B.
        block: tokens a block; shorter texts are cut into at least thirty blocks.

    """
    assert a.shape == b.shape
    counted = ~(np.isnan(a) | np.isnan(b))
    differences = (b.astype(np.float64) - a.astype(np.float64))[counted]
    blocks = np.array_split(differences, max(2, min(len(differences), max(30, len(differences) // block))))
    means = np.array([part.mean() for part in blocks])
    mean = float(differences.mean())
    error = float(means.std(ddof=1) / math.sqrt(len(means)))
    z = abs(mean) / error if error else (0.0 if mean == 0 else math.inf)
    return Comparison(
        tokens=len(differences),
        difference=mean,
        low=mean - 1.96 * error,
        high=mean + 1.96 * error,
        p_value=math.erfc(z / math.sqrt(2)),
        ratio=math.exp(mean),
        better=float((differences > 0).mean()),
    )


# TARGET
Floats = npt.NDArray[np.float64]

SAMPLES = 1000
"""Resamples, as usual in machine translation."""


@dataclasses.dataclass(frozen=True)
class Measure:
    """A measure of a system's output.

    Attributes:
        name: such as `BLEU`.
        statistics: what is summed over sentences, [n, k].
        figure: the measure of the sums [k].
        signature: how it was computed, as published figures should say it.

    """

    name: str
    statistics: Floats
    figure: Callable[[Floats], float]
    signature: str = ""

    @property
    def value(self) -> float:
        """The measure of all sentences."""
        return self.figure(self.statistics.sum(axis=0))


class Figure(msgspec.Struct, frozen=True):
    """A measure's value with its 95 % bootstrap interval."""

    name: str
    value: float
    low: float
    high: float
    signature: str = ""


class Difference(msgspec.Struct, frozen=True):
    """How two systems differ by a measure.

    Attributes:
        name: of the measure.
        a, b: the values of both.
        difference: b - a.
        low, high: 95 % interval of the difference, by the paired bootstrap.
        p_value: of no difference, two-sided, by approximate randomisation.

    """

    name: str
    a: float
    b: float
    difference: float
    low: float
    high: float
    p_value: float


def interval(measure: Measure, samples: int = SAMPLES, seed: int = 0) -> Figure:
    """The value and its percentile bootstrap interval (Koehn 2004, Significance tests for MT)."""
    values = _figures(measure, _draws(len(measure.statistics), samples, seed) @ measure.statistics)
    low, high = np.percentile(values, [2.5, 97.5])
    return Figure(measure.name, measure.value, float(low), float(high), measure.signature)


def difference(a: Measure, b: Measure, samples: int = SAMPLES, seed: int = 0) -> Difference:
    """Compare two systems on the same sentences.

    The interval is of the paired bootstrap (Koehn 2004). The p-value is of approximate randomisation: the outputs of
    each sentence change sides with probability 1/2, and p is the share, (1 + count) / (1 + samples), of such worlds
    whose difference is no smaller than the real one (Riezler & Maxwell 2005, On some pitfalls in automatic evaluation).
    """
    assert a.name == b.name
    assert a.statistics.shape == b.statistics.shape, "the same sentences"
    draws = _draws(len(a.statistics), samples, seed)
    resampled = _figures(b, draws @ b.statistics) - _figures(a, draws @ a.statistics)
    low, high = np.percentile(resampled, [2.5, 97.5])
    swaps = np.random.default_rng([seed, 1]).integers(0, 2, size=draws.shape).astype(np.float64)
    moved = swaps @ (b.statistics - a.statistics)
    worlds = _figures(b, b.statistics.sum(axis=0) - moved) - _figures(a, a.statistics.sum(axis=0) + moved)
    real = b.value - a.value
    extreme = int((np.abs(worlds) >= abs(real) - 1e-12).sum())
    return Difference(a.name, a.value, b.value, real, float(low), float(high), (extreme + 1) / (samples + 1))


def _draws(sentences: int, samples: int, seed: int) -> Floats:
    """How often each sentence is in each resample, [samples, n]."""
    share = np.full(sentences, 1 / sentences)
    return np.random.default_rng(seed).multinomial(sentences, share, size=samples).astype(np.float64)


def _figures(measure: Measure, sums: Floats) -> Floats:
    return np.array([measure.figure(row) for row in sums])
