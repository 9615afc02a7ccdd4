"""Statements about the figures of the arms of a claim, which judge themselves."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal

import msgspec

from elman.errors import UserError
from elman.study.statistics import LEVEL, MOST_SEEDS, Answer, Judgement, figure, judge, judge_spread, plain, spread_text

Figures = Mapping[str, Sequence[Mapping[str, float]]]
"""Arm -> for each seed, in the same order for all arms, metric -> value."""


class ByToken(msgspec.Struct, frozen=True):
    """The same ratio judged by token: a t test over `blocks` of the `tokens` of the test text (`measures.compare`)."""

    tokens: int
    blocks: int
    judgement: Judgement


class Verdict(msgspec.Struct, frozen=True):
    """The answer to a comparison or to a whole claim (the statement), with the deciding figures in words.

    Attributes:
        direction: the answer that the means alone would give; undecided where there are none.
        needs: the number of seeds that would decide it.
        judgement: the paired test on differences of logarithms by seed; None for a bound on every seed.
        bound: where there is no difference: the fraction above which it is excluded.
        apart: where it is undecided: the largest fraction by which the ratios may differ either way, by two one-sided
            tests at the 5 % level; None where that is not known.
        whole: of a whole claim, the p-value of its verdict (`together`).
        by_token: the test by token of the same ratio, where the nats of every token are known.
        indicative: at the scale quick, the answer is only indicated (`indication`).
    """

    statement: str
    answer: Answer
    figures: str
    direction: Answer
    needs: int | None = None
    judgement: Judgement | None = None
    by_token: ByToken | None = None
    bound: float | None = None
    apart: float | None = None
    whole: float | None = None
    indicative: bool = False

    @property
    def line(self) -> str:
        if self.bound is not None:
            return f"no difference above {_percent_up(self.bound)} %"
        if self.indicative:
            return "indicates nothing" if self.answer == "undecided" else f"indicates that it {self.answer}"
        if self.answer != "undecided":
            return self.answer
        parts = [] if self.apart is None else [f"at most {_percent_up(self.apart)} % either way"]
        more = " or more" if self.needs == MOST_SEEDS else ""
        parts += [] if self.needs is None else [f"needs {self.needs:,} seeds{more}"]
        parts += [] if self.direction == "undecided" else [f"so far it points to {self.direction}"]
        return f"undecided ({'; '.join(parts)})" if parts else "undecided"

    @property
    def p_value(self) -> float | None:
        """The p-value of the deciding test; None for a bound on every seed, and where there was no test."""
        found = self.judgement
        if self.bound is not None and found is not None:
            return found.equivalence()
        if self.indicative and found is not None and found.answer == "undecided":
            found = None if self.by_token is None else self.by_token.judgement
        return None if found is None or math.isnan(found.p_value) else found.p_value


@dataclass(frozen=True)
class Ratio:
    """The geometric mean over seeds of metric(a) / metric(b) lies between `low` and `high`.

    Judged by a paired t test on the logarithms, for perplexities nats per token; metrics are 0 or more. `b_metric` is
    the metric of b if it is another one, as when two metrics of one arm are compared. Two zeros are equal, two
    infinities need not be: the logarithm of their ratio is NaN.
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
        return self.a, self.b

    @property
    def interval(self) -> tuple[float, float]:
        """The bounds of the logarithm of the ratio."""
        return _log(self.low), math.log(self.high)

    def verdict(self, figures: Figures) -> Verdict:
        a = [seed[self.metric] for seed in figures[self.a]]
        b = [seed[self.b_metric or self.metric] for seed in figures[self.b]]
        found = judge([0.0 if x == y == 0 else _log(x) - _log(y) for x, y in zip(a, b, strict=True)], *self.interval)
        names = (self.a, self.b) if self.b_metric is None else (f"{self.a} {self.metric}", f"{self.b} {self.b_metric}")
        words = f"{names[0]} {spread_text(a)}; {names[1]} {spread_text(b)}; {described(found)}"
        return Verdict(self.statement, found.answer, words, found.direction, found.needs, found)


@dataclass(frozen=True)
class Bound:
    """In every seed the metric of an arm is at most `limit`, or, with `exceeds`, greater.

    `limit` is a number, or the name of another metric of the same arm and seed. Undecided where a figure is unknown
    (NaN) and no seed breaks it.
    """

    metric: str
    arm: str
    limit: str | float
    exceeds: bool = False

    @property
    def arms(self) -> tuple[str, ...]:
        return (self.arm,)

    def verdict(self, figures: Figures) -> Verdict:
        rows = [
            (seed[self.metric], seed[self.limit] if isinstance(self.limit, str) else self.limit)
            for seed in figures[self.arm]
        ]
        kept = [value > limit if self.exceeds else value <= limit for value, limit in rows]
        known = [not math.isnan(value) and not math.isnan(limit) for value, limit in rows]
        shown = ", ".join(f"{plain(value)} against {plain(limit)}" for value, limit in rows)
        statement = f"{self.metric} of {self.arm} {'>' if self.exceeds else '<='} {self.limit} in every seed"
        broken = any(one and not other for one, other in zip(known, kept, strict=True))
        answer: Answer = "holds" if all(kept) else "does not hold" if broken else "undecided"
        return Verdict(statement, answer, f"{self.arm} {shown}", answer)


@dataclass(frozen=True)
class Steadier:
    """A metric of `a` varies less from seed to seed than for `b`: the standard deviations of their logarithms."""

    metric: str
    a: str
    b: str

    @property
    def arms(self) -> tuple[str, ...]:
        return self.a, self.b

    def verdict(self, figures: Figures) -> Verdict:
        values = {arm: [seed[self.metric] for seed in figures[arm]] for arm in self.arms}
        found = judge_spread(*([_log(value) for value in values[arm]] for arm in self.arms))
        parts = [f"{arm} {spread_text(values[arm])}" for arm in self.arms]
        statement = f"{self.metric} of {self.a} varies less over seeds than of {self.b}"
        words = "; ".join([*parts, f"standard deviations, {described(found)}"])
        return Verdict(statement, found.answer, words, found.direction, found.needs, found)


Comparison = Ratio | Bound | Steadier  # a statement about one metric


def lower(metric: str, a: str, b: str) -> Ratio:
    return Ratio(f"{metric} of {a} is lower than of {b}", metric, a, b, high=1.0)


def higher(metric: str, a: str, b: str) -> Ratio:
    return Ratio(f"{metric} of {a} is higher than of {b}", metric, a, b, low=1.0)


def no_higher(metric: str, a: str, b: str, margin: float) -> Ratio:
    """The metric of `a` exceeds the metric of `b` by at most the fraction `margin`."""
    return Ratio(f"{metric} of {a} is no higher than of {b} (within {margin:.1%})", metric, a, b, high=1 + margin)


def no_difference(metric: str, a: str, b: str, margin: float, b_metric: str | None = None) -> Ratio:
    """The metrics of `a` and `b`, of `b` perhaps another metric, differ by less than the fraction `margin`."""
    other = "" if b_metric is None else f"{b_metric} "
    statement = f"{metric} of {a} and {other}of {b} do not differ (within {margin:.1%})"
    return Ratio(statement, metric, a, b, low=1 / (1 + margin), high=1 + margin, b_metric=b_metric)


def times(metric: str, a: str, b: str, factor: float, b_metric: str | None = None) -> Ratio:
    """The metric of `a` is more than `factor` times a metric of `b`: the same or another one."""
    statement = f"{metric} of {a} is more than {factor:g} times {b_metric or 'that'} of {b}"
    return Ratio(statement, metric, a, b, low=factor, b_metric=b_metric)


def bounded(verdict: Verdict) -> Verdict:
    """The verdict; an undecided ratio with the bound of its distance from 1, or as no difference below `MARGIN`.

    By two one-sided tests (`Judgement.equivalence`) at the 5 % level; the bound is the smallest that they give.
    """
    found, most = verdict.judgement, _most(verdict.judgement)
    if verdict.answer != "undecided" or found is None or most is None:
        return verdict
    if found.equivalence() < LEVEL:
        return msgspec.structs.replace(verdict, answer="no difference", needs=None, bound=most)
    return msgspec.structs.replace(verdict, apart=most)


def _most(found: Judgement | None) -> float | None:
    """The fraction by which a ratio differs from 1 at most; None where that may be a factor of 2."""
    if found is None or math.isnan(found.equivalence()):
        return None
    most = found.bound(LEVEL)
    return most if most < 1 else None


def _percent_up(bound: float) -> str:
    """A fraction in percent with two digits, rounded up: what is smaller would be no bound."""
    exact = Decimal(f"{100 * bound:.12g}")  # without the error of a float, which would be rounded up too
    return f"{float(Context(prec=2, rounding=ROUND_CEILING).plus(exact)):g}"


def together(sentence: str, verdicts: Sequence[Verdict]) -> Verdict:
    """The verdict on a claim, and its p-value, by one rule.

    It holds if all its comparisons hold: its p-value is the largest of theirs (an intersection-union test, Berger 1982,
    which needs no adjustment). One comparison that fails, or whose difference is bounded, is enough to refute it: that
    p-value is the smallest of theirs times the number of comparisons tested (Bonferroni), and must be below 5 %, else
    the claim is undecided with that p-value. A bound on every seed that is not kept refutes it without a test.
    """
    tested = max(1, sum(one.judgement is not None for one in verdicts))
    words = " | ".join(verdict.figures for verdict in verdicts)
    indicative = any(one.indicative for one in verdicts)
    worst_first: tuple[Answer, ...] = ("does not hold", "undecided", "holds")
    direction = min((one.direction for one in verdicts), key=worst_first.index, default=worst_first[-1])

    def made(answer: Answer, p_value: float | None, bound: float | None = None) -> Verdict:
        return Verdict(sentence, answer, words, direction, bound=bound, whole=p_value, indicative=indicative)

    def smallest(answer: Answer) -> float:
        """The least p-value of this answer, adjusted; infinite where none has the answer."""
        values = [one.p_value for one in verdicts if one.answer == answer and one.p_value is not None]
        return min(1.0, tested * min(values)) if values else math.inf

    if any(one.answer == "does not hold" and one.p_value is None for one in verdicts):
        return made("does not hold", None)
    if (refuted := smallest("does not hold")) < LEVEL:
        return made("does not hold", refuted)
    if (p_value := smallest("no difference")) < LEVEL:
        judgements = [one.judgement for one in verdicts if one.answer == "no difference" and one.judgement is not None]
        return made("no difference", p_value, min(found.bound(LEVEL / tested) for found in judgements))
    known = [one.p_value for one in verdicts if one.judgement is not None]
    largest = max([value for value in known if value is not None], default=None)
    if all(one.answer == "holds" for one in verdicts):
        return made("holds", largest)
    failing = [one.judgement.seeds(tested) for one in verdicts if one.answer == "does not hold" and one.judgement]
    needs = max([*failing, *(one.needs or 0 for one in verdicts)]) or None
    apart = [_most(one.judgement) for one in verdicts if one.answer != "holds"]
    most = None if None in apart else max(one for one in apart if one is not None)
    refuting = min(refuted, p_value)  # what failed is the reason, with a p-value that is 5 % or more
    undecided = made("undecided", refuting if refuting < math.inf else None if None in known else largest)
    return msgspec.structs.replace(undecided, needs=needs, apart=most)


def indication(verdict: Verdict) -> Verdict:
    """The verdict at the scale quick, whose networks are trained for a short time.

    Where the seeds of a ratio, usually one, do not decide, the test by token answers, or else the mean.
    """
    answer = verdict.answer
    if answer == "undecided" and verdict.judgement is not None:
        answer = verdict.direction if verdict.by_token is None else verdict.by_token.judgement.answer
    return msgspec.structs.replace(verdict, answer=answer, indicative=True)


def described(found: Judgement) -> str:
    """A ratio in words, with its 95 % interval and p-value where it has them."""
    if not math.isfinite(found.low):
        return f"ratio {_exp(found.mean)}"
    interval = f"{_exp(found.low)} to {_exp(found.high)}"
    return f"ratio {_exp(found.mean)}; 95 % interval {interval}, p = {found.p_value:.2g}"


def _log(value: float) -> float:
    if value < 0:
        raise UserError(f"{value:g} has no logarithm: ratios and spreads are judged of metrics that are 0 or more")
    return math.log(value) if value else -math.inf


def _exp(value: float) -> str:
    if not value < 30:
        return "unknown" if math.isnan(value) else "infinite" if math.isinf(value) else f"e^{value:.4g}"
    return figure(math.exp(value))
