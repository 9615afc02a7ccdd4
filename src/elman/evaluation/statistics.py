"""How certain a figure is, and whether two differ.

Means have intervals by Student's t, proportions Wilson's. Measures of output (BLEU, bracket F1) are functions of sums
over sentences (matches, lengths), so that a resample of sentences is a matrix product.
"""

import dataclasses
import math
from collections.abc import Callable, Sequence

import msgspec
import numpy as np
import numpy.typing as npt
from scipy.special import stdtr, stdtrit

from elman.errors import notice
from elman.evaluation.result import Estimate
from elman.objective import perplexity

Floats = npt.NDArray[np.float64]

LEVEL = 0.95  # of all intervals

BLOCK = 100  # neighbouring tokens whose mean is one observation, close to independent of the next

SAMPLES = 1000  # resamples, as is usual in machine translation


@dataclasses.dataclass(frozen=True)
class Proportion:
    """`successes` of `count`."""

    successes: int
    count: int

    @property
    def share(self) -> float:
        """Successes / count; NaN for a count of 0."""
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
        from scipy import stats  # here, since it takes a second and 50 MB

        bounds = stats.binomtest(self.successes, self.count).proportion_ci(LEVEL, method="wilson")
        return float(bounds.low), float(bounds.high)


def t_quantile(count: int) -> float:
    """The two-sided quantile of Student's t for the mean of `count` values: half an interval in standard errors.

    Example:
        >>> round(t_quantile(3), 3), round(t_quantile(1000), 3)
        (4.303, 1.962)
    """
    return float(stdtrit(count - 1, (1 + LEVEL) / 2))


def t_test(distance: float, error: float, count: int) -> float:
    """The two-sided p-value of a mean of `count` values, two or more, at a `distance` from the hypothesis.

    Where the standard error of the mean is 0, p is 1 for a distance of 0, else 0.
    """
    t = abs(distance) / error if error else math.inf if distance else 0.0
    return float(2 * stdtr(count - 1, -t))


def resampling_p_value(observed: float, resampled: npt.ArrayLike) -> float:
    """The two-sided p-value of a randomisation test, (1 + b) / (1 + n); it is never 0.

    The statistic is 0 under the hypothesis; b of n random relabellings are at least as far from 0 as the observed one.

    Example:
        >>> resampling_p_value(5.0, [0.0] * 99)
        0.01
    """
    found = np.abs(np.asarray(resampled, dtype=np.float64))
    return float((1 + (found >= abs(observed) - 1e-12).sum()) / (1 + len(found)))


class Comparison(msgspec.Struct, frozen=True):
    """A paired comparison of two models; differences are NLL(A) - NLL(B), so a positive one favours B.

    `difference` is the mean in nats per token with its 95 % interval, `p_value` two-sided, of no difference,
    `ratio` is perplexity A / B, and `better` the share of tokens that B predicts better.
    """

    tokens: int
    difference: float
    low: float
    high: float
    p_value: float
    ratio: float
    better: float


def in_blocks(values: Floats, block: int = BLOCK) -> list[Floats]:
    """Consecutive blocks of about `block` values; a short text is cut into thirty where it has as many tokens.

    Example:
        >>> len(in_blocks(np.zeros(10_050))), len(in_blocks(np.zeros(500)))
        (100, 30)
    """
    return np.array_split(values, max(2, min(len(values), max(30, len(values) // block))))


def compare(a: npt.NDArray[np.floating], b: npt.NDArray[np.floating], block: int = BLOCK) -> Comparison:
    """Compare the log-probabilities (nats) of the tokens of one text under two models.

    Neighbouring tokens share their context, so this is a t test on the means of blocks of tokens, which are close to
    independent. NaN is not compared.
    """
    assert a.shape == b.shape
    counted = ~(np.isnan(a) | np.isnan(b))
    differences = (b.astype(np.float64) - a.astype(np.float64))[counted]
    blocks = in_blocks(differences, block)
    mean = float(differences.mean())
    error = float(np.std([part.mean() for part in blocks], ddof=1) / math.sqrt(len(blocks)))
    margin = t_quantile(len(blocks)) * error
    return Comparison(
        tokens=len(differences),
        difference=mean,
        low=mean - margin,
        high=mean + margin,
        p_value=t_test(mean, error, len(blocks)),
        ratio=perplexity(mean),
        better=float((differences > 0).mean()),
    )


@dataclasses.dataclass(frozen=True)
class Measure:
    """A measure of a system's output, as a function `of_sums` [k] of statistics that are summed over sentences, [n, k].

    The signature states how it was computed, as publications report it.
    """

    name: str
    statistics: Floats
    of_sums: Callable[[Floats], float]
    signature: str = ""

    @property
    def value(self) -> float:
        """The measure of all sentences."""
        return self.of_sums(self.statistics.sum(axis=0))

    @property
    def counted(self) -> int:
        """The number of sentences that change a sum."""
        return int(self.statistics.any(axis=1).sum())

    def of_each(self, sums: Floats) -> Floats:
        """The measure of several sums [r, k], [r]."""
        return np.array([self.of_sums(row) for row in sums])


def precision(sums: Floats) -> float:
    """The first of some sums in percent of the second, such as right ones of those found; 0 where that is 0."""
    return _percent(sums[0], sums[1])


def recall(sums: Floats) -> float:
    """The first of some sums in percent of the third, such as right ones of those given; 0 where that is 0."""
    return _percent(sums[0], sums[2])


def f1(sums: Floats) -> float:
    """The harmonic mean of precision and recall of some sums, in percent: right ones, those found, those given."""
    return _percent(2 * sums[0], sums[1] + sums[2])


def _percent(part: float, whole: float) -> float:
    return float(100 * part / whole) if whole else 0.0


class Difference(msgspec.Struct, frozen=True):
    """How two systems differ by a measure: their values, and b - a with its 95 % interval, by the paired bootstrap.

    The interval is None where fewer than two sentences count. The p-value of no difference is two-sided, by approximate
    randomisation.
    """

    name: str
    a: float
    b: float
    difference: float
    low: float | None
    high: float | None
    p_value: float


def estimate(measure: Measure, samples: int = SAMPLES, seed: int = 0) -> Estimate:
    """The value and its percentile bootstrap interval (Koehn 2004, Significance tests for MT).

    Where fewer than two sentences count there is no interval, which a notice reports.
    """
    values = measure.of_each(_draws(len(measure.statistics), samples, seed) @ measure.statistics)
    low, high = _interval(values, measure)
    return Estimate(measure.name, measure.value, low, high, measure.signature)


def _interval(values: Floats, *measures: Measure) -> tuple[float, float] | tuple[None, None]:
    """Of 95 % of the values of resamples; those in which a measure is not defined (NaN) are left out.

    None where fewer than two sentences count for the measures: all resamples have the same value then.
    """
    defined = values[~np.isnan(values)]
    if max(one.counted for one in measures) < 2 or not len(defined):
        notice(f"{measures[0].name}: no interval, since resampling needs two sentences or more that count")
        return None, None
    low, high = np.percentile(defined, [2.5, 97.5])
    return float(low), float(high)


def estimates(measures: Sequence[Measure], samples: int = SAMPLES, seed: int = 0) -> list[Estimate]:
    """Each measure with its interval."""
    return [estimate(measure, samples, seed) for measure in measures]


def difference(a: Measure, b: Measure, samples: int = SAMPLES, seed: int = 0) -> Difference:
    """Compare two systems on the same sentences.

    The interval comes from the paired bootstrap (Koehn 2004), the p-value from approximate randomisation: the
    outputs of each sentence are exchanged with probability 1/2, and p counts the relabellings whose difference is at
    least as large as the real one (Riezler & Maxwell 2005, On some pitfalls in automatic evaluation).
    """
    assert a.name == b.name
    assert a.statistics.shape == b.statistics.shape, "the same sentences"
    draws = _draws(len(a.statistics), samples, seed)
    low, high = _interval(b.of_each(draws @ b.statistics) - a.of_each(draws @ a.statistics), a, b)
    swaps = np.random.default_rng([seed, 1]).integers(0, 2, size=draws.shape).astype(np.float64)
    moved = swaps @ (b.statistics - a.statistics)
    relabelled = b.of_each(b.statistics.sum(axis=0) - moved) - a.of_each(a.statistics.sum(axis=0) + moved)
    real = b.value - a.value
    p_value = resampling_p_value(real, relabelled)
    return Difference(a.name, a.value, b.value, real, low, high, p_value)


def differences(a: Sequence[Measure], b: Sequence[Measure], samples: int = SAMPLES, seed: int = 0) -> list[Difference]:
    """Compare two systems on the same sentences, measure by measure."""
    return [difference(one, other, samples, seed) for one, other in zip(a, b, strict=True)]


def _draws(sentences: int, samples: int, seed: int) -> Floats:
    """How often each sentence is in each resample, [samples, n]."""
    share = np.full(sentences, 1 / sentences)
    return np.random.default_rng(seed).multinomial(sentences, share, size=samples).astype(np.float64)
