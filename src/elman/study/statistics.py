"""Judgements of differences paired by seed: the mean, its interval, and how many seeds would decide."""

import math
import statistics
from bisect import bisect_left
from collections.abc import Sequence
from typing import Literal

import msgspec
from scipy import stats
from scipy.optimize import brentq

from elman.evaluation.statistics import t_quantile, t_test

Answer = Literal["holds", "does not hold", "no difference", "undecided"]

LEVEL = 0.05  # of all tests
POWER = 0.8  # the power for which a number of seeds is planned
MOST_SEEDS = 1000  # the largest number of seeds that is reported
MARGIN = 0.02  # a ratio that differs from 1 by less is called no difference, of whichever claim


class Judgement(msgspec.Struct, frozen=True):
    """Whether the mean of differences paired by seed lies in the interval in question.

    `deviation` is their sample standard deviation (n - 1), NaN for a single seed; `low` to `high` the 95 % interval of
    the mean (Student's t); `p_value`: by the two-sided paired t test of the mean being on the nearest bound of the
    interval in question; `needs` the number of seeds that would decide, if undecided. `inside`: whether the mean itself
    lies in the interval in question, None where there is none. `count`: of the differences, 0 where they are not
    judged by their mean.
    """

    answer: Answer
    mean: float
    deviation: float
    low: float
    high: float
    p_value: float
    needs: int | None = None
    inside: bool | None = None
    count: int = 0

    @property
    def direction(self) -> Answer:
        """The answer that the mean alone would give, whatever its interval."""
        return "undecided" if self.inside is None else "holds" if self.inside else "does not hold"

    def equivalence(self, margin: float = MARGIN) -> float:
        """The p-value of two one-sided t tests (Schuirmann 1987) of the mean being log(1 + margin) or more from 0."""
        return equivalence(self.mean, self.deviation, self.count, math.log1p(margin))

    def seeds(self, tests: int) -> int:
        """The seeds that would decide it as one of several `tests`, by the effect observed."""
        if not self.count or math.isnan(self.p_value):
            return self.needs or MOST_SEEDS
        size = float(stats.t.isf(self.p_value / 2, self.count - 1)) / math.sqrt(self.count)
        return max(self.count + 1, seeds_needed(size, 1.0, tests))

    def bound(self, level: float) -> float:
        """The smallest margin (a fraction) for which the p-value of `equivalence` is `level` or less."""
        spread = self.deviation / math.sqrt(self.count) * float(stats.t.isf(level, self.count - 1))
        return math.expm1(abs(self.mean) + spread)


def judge(differences: Sequence[float], low: float = -math.inf, high: float = math.inf) -> Judgement:
    """Whether the mean of paired differences lies between `low` and `high`.

    It holds if the 95 % interval of the mean lies within, does not hold if that interval lies outside, and is undecided
    otherwise: for one bound the two-sided paired t test at 5 %, for two a test of equivalence; one seed decides
    nothing. Infinite differences (a training that diverged) decide if all seeds lie on one side, of which finite ones
    must be decided by themselves; NaN (both diverged) lies on none.

    Example:
        >>> judge([-0.11, -0.10, -0.09], high=0.0).answer
        'holds'
        >>> judgement = judge([-0.3, 0.1, -0.1], high=0.0)
        >>> judgement.answer, judgement.needs
        ('undecided', 34)
    """
    assert differences
    if not all(map(math.isfinite, differences)):
        return _judge_infinite(differences, low, high)
    mean = statistics.fmean(differences)
    bound = low if abs(mean - low) < abs(mean - high) else high
    if len(differences) < 2:
        return Judgement("undecided", mean, math.nan, -math.inf, math.inf, math.nan, 3, low < mean < high)
    deviation = statistics.stdev(differences)
    error = deviation / math.sqrt(len(differences))
    margin = t_quantile(len(differences)) * error
    p_value = t_test(mean - bound, error, len(differences))
    if low < mean - margin and mean + margin < high:
        answer: Answer = "holds"
    elif mean + margin < low or mean - margin > high:
        answer = "does not hold"
    else:
        answer = "undecided"
    needs = max(len(differences) + 1, seeds_needed(mean - bound, deviation)) if answer == "undecided" else None
    inside, count = low < mean < high, len(differences)
    return Judgement(answer, mean, deviation, mean - margin, mean + margin, p_value, needs, inside, count)


def judge_spread(a: Sequence[float], b: Sequence[float]) -> Judgement:
    """Whether the values `a` vary less than `b`, by the two-sided F test of their variances.

    The mean of the judgement is the logarithm of the ratio of the standard deviations, a / b, with its 95 % interval;
    it must be below 0, and is 0 where neither varies. The test supposes normal values.

    Example:
        >>> judge_spread([1.0, 1.1, 0.9, 1.0], [1.0, 3.0, -1.0, 1.2]).answer
        'holds'
    """
    count = len(a)
    assert count == len(b)
    if count < 2 or not all(map(math.isfinite, (*a, *b))):
        return Judgement("undecided", math.nan, math.nan, -math.inf, math.inf, math.nan, max(3, count + 1))
    over, under = statistics.variance(a), statistics.variance(b)
    ratio = over / under if under else math.inf if over else 1.0
    free = count - 1
    low, high = (ratio / float(stats.f.ppf(level, free, free)) for level in (1 - LEVEL / 2, LEVEL / 2))
    p_value = min(1.0, 2 * float(min(stats.f.cdf(ratio, free, free), stats.f.sf(ratio, free, free))))
    mean, low, high = (math.log(each) / 2 if each > 0 else -math.inf for each in (ratio, low, high))
    answer: Answer = "holds" if high < 0 else "does not hold" if low > 0 else "undecided"

    def power_of(count: int) -> float:
        """Of the F test with this number of seeds, for standard deviations of the observed ratio."""
        critical = stats.f.ppf(1 - LEVEL / 2, count - 1, count - 1)
        return float(stats.f.sf(critical * math.exp(-2 * abs(mean)), count - 1, count - 1))

    more = 2 + bisect_left(range(2, MOST_SEEDS), POWER, key=power_of) if answer == "undecided" else 0
    needs = max(count + 1, more) if answer == "undecided" else None
    return Judgement(answer, mean, math.nan, low, high, p_value, needs, mean < 0)


def equivalence(mean: float, deviation: float, count: int, margin: float) -> float:
    """The p-value of two one-sided t tests (Schuirmann 1987, J. Pharmacokin. Biopharm. 15, 657-680).

    Of `count` differences with this mean and sample standard deviation: that their true mean is `margin` or more from
    0 on either side. The larger of the two p-values belongs to the side on which the mean lies. NaN where the
    deviation is not known.

    Example:
        >>> round(equivalence(0.0, 0.01, 4, 0.02), 3)
        0.014
    """
    if count < 2 or math.isnan(deviation):
        return math.nan
    distance, error = margin - abs(mean), deviation / math.sqrt(count)
    return float(stats.t.sf(distance / error, count - 1)) if error else float(distance <= 0)


def seeds_needed(effect: float, deviation: float, tests: int = 1) -> int:
    """Seeds with which a two-sided paired t test at the 5 % level detects `effect` with a power of 80 %.

    As one of several `tests`, at 5 % divided by their number.

    Example:
        >>> seeds_needed(1.0, 1.0), seeds_needed(0.0, 1.0)
        (10, 1000)
    """
    if not effect:
        return MOST_SEEDS
    size = abs(effect) / deviation if deviation else math.inf
    return 2 + bisect_left(range(2, MOST_SEEDS), POWER, key=lambda count: power(count, size, tests))


def detectable(count: int, deviation: float) -> float:
    """The effect that this number of seeds, two or more, detects with a power of 80 %.

    Example:
        >>> round(detectable(10, 1.0), 3)
        0.996
    """
    return deviation * float(brentq(lambda size: power(count, size) - POWER, 0.0, 30 / math.sqrt(count)))


def power(count: int, effect: float, tests: int = 1) -> float:
    """The power of the test by the non-central t distribution; `effect` is in standard deviations."""
    centre = effect * math.sqrt(count)
    if centre > 30 * tests:
        return 1.0
    return float(stats.nct.sf(stats.t.isf(LEVEL / 2 / tests, count - 1), count - 1, centre))


def _judge_infinite(differences: Sequence[float], low: float, high: float) -> Judgement:
    def is_inside(value: float) -> bool | None:
        """An infinite value lies inside a half-line that is open on its side, NaN on no side."""
        inside = low < value < high or value == math.inf == high or value == -math.inf == low
        return None if math.isnan(value) else inside

    inside, finite = set(map(is_inside, differences)), list(filter(math.isfinite, differences))
    answer: Answer = "holds" if inside == {True} else "does not hold" if inside == {False} else "undecided"
    if len(differences) < 2 or (finite and judge(finite, low, high).answer != answer):
        answer = "undecided"
    needs = max(3, len(differences) + 1) if answer == "undecided" else None
    infinite = {difference for difference in differences if not math.isfinite(difference)}
    mean = infinite.pop() if len(infinite) == 1 else math.nan
    return Judgement(answer, mean, math.nan, -math.inf, math.inf, math.nan, needs, is_inside(mean))


def spread_text(values: Sequence[float]) -> str:
    """Mean and sample standard deviation as text; digits follow the size of the mean, tiny figures have an exponent.

    Example:
        >>> [spread_text(values) for values in ([150.0, 152.0], [1.5], [402.0, 402.0], [1.0, math.inf], [math.nan])]
        ['151.00 ± 1.41', '1.5000', '402 ± 0', 'inf', 'unknown']
        >>> spread_text([3e-16, 1e-16]), spread_text([98.0, 98.001])
        ('2.0e-16 ± 1.4e-16', '98.00 ± 7.1e-04')
    """
    mean = statistics.fmean(values)
    if not math.isfinite(mean):
        return plain(mean)
    whole = len(set(values)) == 1 and mean.is_integer()
    digits = 0 if whole else 4 if abs(mean) < 10 else 2 if abs(mean) < 10_000 else 0
    deviation = [] if len(values) < 2 else [statistics.stdev(values)]
    return " ± ".join(figure(value, digits) for value in (mean, *deviation))


def plain(value: float) -> str:
    """A number with six digits at most; what was never measured (NaN) is unknown."""
    return "unknown" if math.isnan(value) else f"{value:g}"


def figure(value: float, digits: int = 4) -> str:
    """A number with `digits` decimals, or with an exponent where these would show no significant digit of it.

    Example:
        >>> figure(0.25), figure(3e-16), figure(0.0), figure(1234.5, digits=1)
        ('0.2500', '3.0e-16', '0.0000', '1,234.5')
    """
    return f"{value:.1e}" if 0 < abs(value) < 10.0**-digits else f"{value:,.{digits}f}"
