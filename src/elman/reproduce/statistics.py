"""From figures paired by seed to a judgement: the mean, its interval, and how many seeds would settle it."""

import math
import statistics
from collections.abc import Sequence
from typing import Literal

import msgspec
from scipy import stats

Answer = Literal["holds", "does not hold", "undecided"]

LEVEL, POWER = 0.05, 0.8
"""The level of the test and the power that a number of seeds is planned for."""

MOST_SEEDS = 1000
"""A difference that would need more seeds than this is said to need this many."""


class Judgement(msgspec.Struct, frozen=True):
    """What differences paired by seed say about where their mean lies.

    Attributes:
        answer: whether the mean lies in the interval that was asked about.
        mean, deviation: of the differences; the sample standard deviation (n - 1), NaN for a single seed.
        low, high: the 95 % interval of the mean (Student's t).
        p_value: two-sided paired t test of the mean being on the interval's nearest bound.
        needs: seeds that would decide it, where it is undecided.

    """

    answer: Answer
    mean: float
    deviation: float
    low: float
    high: float
    p_value: float
    needs: int | None = None


def judge(differences: Sequence[float], low: float = -math.inf, high: float = math.inf) -> Judgement:
    """Whether the mean of paired differences lies between `low` and `high`.

    It holds if the 95 % interval of the mean lies within, it does not hold if that interval lies outside, and else it
    is undecided. For one bound this is the two-sided paired t test at 5 %; for two it is the test of equivalence by
    intervals. Infinite differences (a training that diverged) decide if those of all seeds lie on one side.

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
        return Judgement("undecided", mean, math.nan, -math.inf, math.inf, math.nan, needs=3)
    deviation = statistics.stdev(differences)
    error = deviation / math.sqrt(len(differences))
    margin = float(stats.t.ppf(1 - LEVEL / 2, len(differences) - 1)) * error
    distance = abs(mean - bound) / error if error else math.inf if mean != bound else 0.0
    p_value = float(2 * stats.t.sf(distance, len(differences) - 1))
    if low < mean - margin and mean + margin < high:
        answer: Answer = "holds"
    elif mean + margin < low or mean - margin > high or (not error and not low < mean < high):
        answer = "does not hold"
    else:
        answer = "undecided"
    needs = max(len(differences) + 1, seeds_needed(mean - bound, deviation)) if answer == "undecided" else None
    return Judgement(answer, mean, deviation, mean - margin, mean + margin, p_value, needs)


def seeds_needed(effect: float, deviation: float) -> int:
    """Seeds for a two-sided paired t test to find `effect` at the 5 % level with a power of 80 %.

    Example:
        >>> seeds_needed(1.0, 1.0), seeds_needed(0.0, 1.0)
        (10, 1000)

    """
    if not effect:
        return MOST_SEEDS
    low, high = 2, MOST_SEEDS
    while low < high:
        middle = (low + high) // 2
        if _power(middle, abs(effect) / deviation if deviation else math.inf) >= POWER:
            high = middle
        else:
            low = middle + 1
    return low


def _power(count: int, effect: float) -> float:
    """The power of the test by the non-central t distribution; `effect` is in standard deviations."""
    centre = effect * math.sqrt(count)
    if centre > 30:
        return 1.0
    critical = stats.t.ppf(1 - LEVEL / 2, count - 1)
    return float(stats.nct.sf(critical, count - 1, centre))


def _judge_infinite(differences: Sequence[float], low: float, high: float) -> Judgement:
    inside = [low < difference < high or _reaches(difference, low, high) for difference in differences]
    answer: Answer = "holds" if all(inside) else "undecided" if any(inside) else "does not hold"
    needs = len(differences) + 1 if answer == "undecided" else None
    infinite = {difference for difference in differences if not math.isfinite(difference)}
    mean = infinite.pop() if len(infinite) == 1 else math.nan
    return Judgement(answer, mean, math.nan, -math.inf, math.inf, math.nan, needs)


def _reaches(difference: float, low: float, high: float) -> bool:
    """Whether an infinite difference lies on the open side of a half-line."""
    return (difference == math.inf == high) or (difference == -math.inf == low)


def spread(values: Sequence[float]) -> str:
    """Mean and standard deviation in words, with as many digits as the mean's size asks for.

    Example:
        >>> spread([150.0, 152.0]), spread([1.5]), spread([402.0, 402.0]), spread([1.0, math.inf])
        ('151.00 ± 1.41', '1.5000', '402 ± 0', 'inf')

    """
    mean = statistics.fmean(values)
    if not math.isfinite(mean):
        return "inf"
    whole = len(set(values)) == 1 and mean.is_integer()
    digits = 0 if whole else 4 if abs(mean) < 10 else 2 if abs(mean) < 10_000 else 0
    shown = f"{mean:,.{digits}f}"
    return shown if len(values) < 2 else f"{shown} ± {statistics.stdev(values):,.{digits}f}"
