"""A published claim as a value: the arms it compares, what is measured on them, and what the figures must show."""

import dataclasses
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from elman.errors import UserError
from elman.reproduce.arm import Arm, Computation, Measurement, Scale, Source
from elman.reproduce.comparison import Comparison
from elman.reproduce.statistics import seeds_needed


class Power(NamedTuple):
    """How a number of seeds was planned before training: enough to detect `effect` with a power of 80 %.

    Both are of logarithms: .02 is a ratio of 1.02. `deviation` is the sample standard deviation of the differences
    paired by seed in a pilot.
    """

    effect: float
    deviation: float


class CurveAxes(NamedTuple):
    """How the curve `name` of a measurement is drawn over an axis labelled `across`.

    `relative` divides each line by its first value; `logarithmic` is the vertical axis.
    """

    name: str
    across: str
    relative: bool = True
    logarithmic: bool = True


@dataclass(frozen=True)
class ClaimMeasure:
    """What a claim measures on each of its arms, kept beside a run under `name`, and what is drawn of it.

    Attributes:
        metrics: the names of the figures and their descriptions.
        function: computes them from a run folder and `constants`; None where the arms are computations.
        constants: a measurement made with others is not reused.
        minutes: approximate duration at small scale.
        timed: it measures times, so that no two are made at once.
        curve: a curve of a measurement to draw, a line per seed.
        diverged: the figures of a training that diverged; None makes that an error.
        cost: a metric against which that of the published figures is drawn.
        course: two curves of a measurement; the second is drawn against the first, an arm's mean over its seeds.
    """

    name: str
    metrics: Mapping[str, str]
    function: Callable[..., Measurement] | None = None
    constants: Mapping[str, Any] = field(default_factory=dict)
    minutes: float = 0.0
    timed: bool = False
    curve: CurveAxes | None = None
    diverged: Mapping[str, float] | None = None
    cost: str | None = None
    course: tuple[str, str] | None = None


@dataclass(frozen=True)
class Claim:
    """One published claim; `source` is the table or figure that supports it in the paper, all `comparisons` must hold.

    Attributes:
        metric: the metric of the published figures; the default is that of the first comparison.
        seeds: the number of seeds unless --seeds is given, or how it was planned.
        notes: how the small scale differs from the paper's, and other remarks.
        data: what --data must be, where the recipes name no corpus; None where they do.
        needs: known sets of minimal pairs that must be prepared.
    """

    name: str
    sentence: str
    source: str
    arms: tuple[Arm, ...]
    measure: ClaimMeasure
    comparisons: tuple[Comparison, ...]
    metric: str | None = None
    published: Mapping[str, str] = field(default_factory=dict)
    seeds: int | Power = 3
    notes: str = ""
    data: str | None = None
    needs: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        labels = [arm.label for arm in self.arms]
        assert len(set(labels)) == len(labels), f"{self.name}: two arms share a label"
        needed = {arm for comparison in self.comparisons for arm in comparison.arms} | set(self.published)
        assert needed <= set(labels), f"{self.name}: there is no arm {needed - set(labels)}"
        assert self.headline in self.measure.metrics, f"{self.name}: {self.headline} is not measured"

    @property
    def headline(self) -> str:
        """The metric of the published figures."""
        return self.metric or self.comparisons[0].metric

    def among(self, labels: Collection[str]) -> "Claim":
        """These arms alone, with the comparisons between them and a name of their own.

        Raises UserError where there is no such arm, or nothing to compare.
        """
        known = [arm.label for arm in self.arms]
        if unknown := [label for label in labels if label not in known]:
            raise UserError(f"--arm {unknown[0]}: {self.name} has the arms {'; '.join(known)}")
        if set(labels) == set(known):
            return self
        comparisons = tuple(one for one in self.comparisons if set(one.arms) <= set(labels))
        if not comparisons:
            pairs = {" and ".join(one.arms) for one in self.comparisons}
            raise UserError(f"--arm: {self.name} compares none of these; it compares {'; '.join(sorted(pairs))}")
        arms = tuple(arm for arm in self.arms if arm.label in labels)
        return dataclasses.replace(
            self,
            name="-".join([self.name, *(re.sub(r"[^\w.]+", "-", arm.label) for arm in arms)]),
            arms=arms,
            comparisons=comparisons,
            metric=self.headline,
            published={label: figure for label, figure in self.published.items() if label in labels},
        )

    def has(self, scale: Scale) -> bool:
        """Whether every arm exists at a scale."""
        return all(arm.at(scale) is not None for arm in self.arms)

    def num_seeds(self, scale: Scale) -> int:
        """How many seeds are trained unless --seeds is given."""
        if scale == "quick":
            return 1
        return max(2, seeds_needed(*self.seeds)) if isinstance(self.seeds, Power) else self.seeds

    def origin(self, arm: Arm, scale: Scale) -> Source | Computation:
        """The recipe or computation of an arm; raises UserError if it has none at this scale."""
        source = arm.at(scale)
        if source is None:
            other = "small" if scale == "paper" else "paper"
            raise UserError(f"{self.name} has no recipes at --scale {scale}; use --scale {other}")
        return source
