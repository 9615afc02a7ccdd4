"""A published claim as a value: the arms it compares, what is measured on them, and what the figures must show."""

import dataclasses
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, get_args

import msgspec

from elman.config.recipe import Recipe
from elman.config.toml import find, load_recipe
from elman.errors import UserError
from elman.study.comparison import Comparison
from elman.study.statistics import seeds_needed

Scale = Literal["quick", "small", "paper"]  # indicative in minutes, decisive on two cores, and as published

SCALES: tuple[Scale, ...] = get_args(Scale)


def scale_of(name: str) -> Scale:
    if name in SCALES:
        return name
    raise UserError(f"--scale {name}: choose {', '.join(SCALES[:-1])} or {SCALES[-1]}")


def at_scale(name: str, scale: Scale) -> str:
    """A file name without its ending: with the scale unless it is small."""
    return name if scale == "small" else f"{name}-{scale}"


class Grid(NamedTuple):
    """Alternatives, each some settings, of which an arm takes the one with the lowest validation loss.

    They are tried with one seed that the claim does not use, and with the settings `shortened` laid over them.
    """

    alternatives: tuple[tuple[str, ...], ...]
    shortened: tuple[str, ...] = ()


def rates(*values: float, shortened: tuple[str, ...] = (), of: Sequence[str] = ("training.optimiser.lr",)) -> Grid:
    """The grid of some values, of the learning rate or of all the keys `of` alike."""
    return Grid(tuple(tuple(f"{key}={value}" for key in of) for value in values), shortened)


class Source(NamedTuple):
    """A shipped recipe and the settings laid over it (`key.path=value`), and over these the `quick` ones at that scale.

    With a `grid` an alternative of it is laid over too, which is chosen for each arm before its seeds are trained.
    """

    recipe: str
    settings: tuple[str, ...] = ()
    quick: tuple[str, ...] = ()
    grid: Grid | None = None

    def at(self, seed: int, more: Sequence[str] = ()) -> Recipe:
        return load_recipe(find(self.recipe), [*self.settings, *more, f"seed={seed}"])

    def arm(self, label: str, *settings: str, paper: "Source | str | None" = None) -> "Arm":
        """An arm: this recipe with more settings, and a recipe of the paper's size."""
        source = Source(paper) if isinstance(paper, str) else paper
        return Arm(label, self._replace(settings=(*self.settings, *settings)), source)


class Measurement(NamedTuple):
    """What was measured on one run: numbers by name, and curves (such as singular values) by name."""

    figures: dict[str, float]
    curves: dict[str, list[float]]


class Computation(NamedTuple):
    """An arm that needs no training of a recipe, and its approximate duration.

    `function` is a dataclass called with the seed and --data; its fields are all that can be set. `quick` is the
    shorter one of that scale, None: the same.
    """

    function: Callable[[int, str | None], Measurement]
    minutes: float
    quick: "Computation | None" = None

    @property
    def constants(self) -> dict[str, Any]:
        """The fields of `function`, defaults included; a result computed with others is not reused."""
        fields: dict[str, Any] = msgspec.to_builtins(self.function)
        return fields


@dataclass(frozen=True)
class Arm:
    """One of the things that a claim compares: its label, and a recipe or a computation for each scale it exists at.

    Arms of one `series`, such as a network in several sizes, are joined where figures are drawn against costs.
    """

    label: str
    small: Source | Computation | None = None
    paper: Source | Computation | None = None
    series: str | None = None

    def at(self, scale: Scale) -> Source | Computation | None:
        """Its recipe or computation at a scale; at the scale quick the small one, shortened."""
        if scale == "paper":
            return self.paper
        if scale == "small" or self.small is None:
            return self.small
        if isinstance(self.small, Computation):
            return self.small.quick or self.small
        return Source(self.small.recipe, (*self.small.settings, *self.small.quick))


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
        cost: a metric against which the one of the published figures is drawn.
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
        metric: the metric of the published figures; by default the metric of the first comparison.
        seeds: the number of seeds unless --seeds is given, or how it was planned.
        notes: how the small scale differs from the paper's, and other remarks.
        data: what --data must be, where the recipes name no corpus; None where they do.
        needs: known sets of minimal pairs that must be prepared.
        text, published_text: the texts of our figures and of the published ones, where the recipes do not tell.
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
    text: str = ""
    published_text: str = ""

    def __post_init__(self) -> None:
        labels = [arm.label for arm in self.arms]
        assert len(set(labels)) == len(labels), f"{self.name}: two arms share a label"
        needed = {arm for comparison in self.comparisons for arm in comparison.arms} | set(self.published)
        assert needed <= set(labels), f"{self.name}: there is no arm {needed - set(labels)}"
        assert self.headline in self.measure.metrics, f"{self.name}: {self.headline} is not measured"

    @property
    def headline(self) -> str:
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
        name = "-".join([self.name, *(re.sub(r"[^\w.]+", "-", arm.label) for arm in arms)])
        published = {label: figure for label, figure in self.published.items() if label in labels}
        return dataclasses.replace(
            self, name=name, arms=arms, comparisons=comparisons, metric=self.headline, published=published
        )

    def has(self, scale: Scale) -> bool:
        return all(arm.at(scale) is not None for arm in self.arms)

    def num_seeds(self, scale: Scale) -> int:
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
