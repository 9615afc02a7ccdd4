"""Statements about the figures of the arms of a claim, which judge themselves."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec

from elman.reproduce.statistics import Answer, Judgement, figure, judge, spread

Figures = Mapping[str, Sequence[Mapping[str, float]]]
"""Arm -> for each seed, in the same order for all arms, metric -> value."""


class Verdict(msgspec.Struct, frozen=True):
    """The answer to a comparison or to a whole claim (the statement), with the deciding figures in words.

    `needs` is the number of seeds that would decide it, `judgement` the paired test on differences of logarithms; None
    for a bound on every seed.
    """

    statement: str
    answer: Answer
    figures: str
    needs: int | None = None
    judgement: Judgement | None = None

    @property
    def line(self) -> str:
        """The answer as the last line of the command shows it."""
        return f"undecided (needs {self.needs} seeds)" if self.answer == "undecided" else self.answer


@dataclass(frozen=True)
class Ratio:
    """The geometric mean over seeds of metric(a) / metric(b) lies between `low` and `high`.

    Judged by a paired t test on the logarithms, for perplexities nats per token. `b_metric` is the metric of b if it
    is another one, as when two metrics of one arm are compared.
    """

    statement: str
    metric: str
    a: str
    b: str
    low: float = 0.0
    high: float = math.inf
    b_metric: str | None = None

    @property
    def arms(self) -> tuple[str, ...]:
        """The labels of both."""
        return self.a, self.b

    def verdict(self, figures: Figures) -> Verdict:
        """The verdict on the differences of logarithms, paired by seed."""
        a = [seed[self.metric] for seed in figures[self.a]]
        b = [seed[self.b_metric or self.metric] for seed in figures[self.b]]
        differences = [math.log(x) - math.log(y) for x, y in zip(a, b, strict=True)]
        found = judge(differences, math.log(self.low) if self.low else -math.inf, math.log(self.high))
        names = (self.a, self.b) if self.b_metric is None else (f"{self.a} {self.metric}", f"{self.b} {self.b_metric}")
        parts = [f"{names[0]} {spread(a)}", f"{names[1]} {spread(b)}", f"ratio {_exp(found.mean)}"]
        if math.isfinite(found.low):
            parts.append(f"95 % interval {_exp(found.low)} to {_exp(found.high)}, p = {found.p_value:.2g}")
        return Verdict(self.statement, found.answer, "; ".join(parts), found.needs, found)


@dataclass(frozen=True)
class Bound:
    """In every seed the metric of an arm is at most `limit`, or, with `exceeds`, greater.

    `limit` is a number, or the name of another metric of the same arm and seed.
    """

    metric: str
    arm: str
    limit: str | float
    exceeds: bool = False

    @property
    def arms(self) -> tuple[str, ...]:
        """The label of the one."""
        return (self.arm,)

    def verdict(self, figures: Figures) -> Verdict:
        """The verdict on every seed."""
        limits = [seed[self.limit] if isinstance(self.limit, str) else self.limit for seed in figures[self.arm]]
        rows = [(seed[self.metric], limit) for seed, limit in zip(figures[self.arm], limits, strict=True)]
        kept = [value > limit if self.exceeds else value <= limit for value, limit in rows]
        sign = ">" if self.exceeds else "<="
        shown = ", ".join(f"{value:g} against {limit:g}" for value, limit in rows)
        statement = f"{self.metric} of {self.arm} {sign} {self.limit} in every seed"
        return Verdict(statement, "holds" if all(kept) else "does not hold", f"{self.arm} {shown}")


Comparison = Ratio | Bound
"""A statement about one metric."""


def lower(metric: str, a: str, b: str) -> Ratio:
    """The metric of `a` is lower than that of `b`."""
    return Ratio(f"{metric} of {a} is lower than of {b}", metric, a, b, high=1.0)


def higher(metric: str, a: str, b: str) -> Ratio:
    """The metric of `a` is higher than that of `b`."""
    return Ratio(f"{metric} of {a} is higher than of {b}", metric, a, b, low=1.0)


def no_higher(metric: str, a: str, b: str, margin: float) -> Ratio:
    """The metric of `a` exceeds that of `b` by at most the fraction `margin`."""
    return Ratio(f"{metric} of {a} is no higher than of {b} (within {margin:.1%})", metric, a, b, high=1 + margin)


def no_difference(metric: str, a: str, b: str, margin: float) -> Ratio:
    """The metrics of `a` and `b` differ by less than the fraction `margin`."""
    statement = f"{metric} of {a} and of {b} do not differ (within {margin:.1%})"
    return Ratio(statement, metric, a, b, low=1 / (1 + margin), high=1 + margin)


def times(metric: str, a: str, b: str, factor: float, b_metric: str | None = None) -> Ratio:
    """The metric of `a` is more than `factor` times that of `b`, or than another metric of `b`."""
    other = "that" if b_metric is None else b_metric
    statement = f"{metric} of {a} is more than {factor:g} times {other} of {b}"
    return Ratio(statement, metric, a, b, low=factor, b_metric=b_metric)


def together(sentence: str, verdicts: Sequence[Verdict]) -> Verdict:
    """The verdict on a claim: it holds if all its comparisons hold, and does not hold if one of them does not."""
    answers = {verdict.answer for verdict in verdicts}
    worst_first: tuple[Answer, ...] = ("does not hold", "undecided", "holds")
    answer: Answer = next((one for one in worst_first if one in answers), "holds")
    needs = max((verdict.needs or 0 for verdict in verdicts), default=0) if answer == "undecided" else None
    return Verdict(sentence, answer, " | ".join(verdict.figures for verdict in verdicts), needs)


def _exp(value: float) -> str:
    return "unknown" if math.isnan(value) else figure(math.exp(min(value, 700)))
