"""A claim of a paper: which recipes to train, what to measure, and what must come out."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec

from elman.config.recipe import Recipe
from elman.config.toml import find, load_recipe
from elman.errors import UserError
from elman.reproduce.comparison import Comparison

Scale = Literal["lab", "paper"]
SCALES: tuple[Scale, ...] = ("lab", "paper")


class Source(NamedTuple):
    """A shipped recipe, and settings laid over it (`key.path=value`)."""

    recipe: str
    settings: tuple[str, ...] = ()


class Measurement(NamedTuple):
    """What was measured on one run: numbers by name, and curves (such as singular values) by name."""

    figures: dict[str, float]
    curves: dict[str, list[float]]


class Computation(NamedTuple):
    """What needs no run of a recipe.

    Attributes:
        function: a dataclass that is called with the seed and --data; its fields are all that can be set.
        minutes: about how long it takes.

    """

    function: Callable[[int, str | None], Measurement]
    minutes: float

    @property
    def constants(self) -> dict[str, Any]:
        """The fields of `function`, defaults too; a result that was made with others is not used."""
        fields: dict[str, Any] = msgspec.to_builtins(self.function)
        return fields


@dataclass(frozen=True)
class Arm:
    """One of the things that a claim compares: a label, and a recipe or a computation for each scale, or neither."""

    label: str
    lab: Source | Computation | None = None
    paper: Source | Computation | None = None

    def source(self, scale: Scale) -> Source | Computation | None:
        """Where its figures come from at a scale."""
        return self.lab if scale == "lab" else self.paper


class Axes(NamedTuple):
    """How a curve of a measurement is drawn.

    Attributes:
        name: of the curve.
        across: label of the horizontal axis.
        relative: whether each line is divided by its first value.
        logarithmic: the vertical axis.

    """

    name: str
    across: str
    relative: bool = True
    logarithmic: bool = True


@dataclass(frozen=True)
class Measure:
    """What is measured, and how on a finished run.

    Attributes:
        name: measurements are kept beside a run under this name.
        metrics: the names of the figures, with what they are in words, in the order of the table.
        function: from a run folder, and the constants by name, to its measurement; None where the arms are
            computations.
        constants: what `function` is called with; a measurement that was made with others is not used.
        minutes: about how long it takes at lab scale.
        curve: the curve to draw.
        diverged: the figures of a training whose loss ceased to be finite; None makes that an error.

    """

    name: str
    metrics: Mapping[str, str]
    function: Callable[..., Measurement] | None = None
    constants: Mapping[str, Any] = field(default_factory=dict)
    minutes: float = 0.0
    curve: Axes | None = None
    diverged: Mapping[str, float] | None = None

    def of(self, folder: Path) -> Measurement:
        """The measurement of a finished run."""
        assert self.function is not None, "runs are measured by a function"
        return self.function(folder, **self.constants)


@dataclass(frozen=True)
class Claim:
    """One published claim.

    Attributes:
        name: what it is called on the command line.
        sentence: what is claimed.
        source: the table or figure it stands in.
        arms: what is trained or computed.
        measure: what is measured on every run.
        comparisons: what must hold, all of it.
        published: the published figure of an arm, in words.
        metric: the metric that the published figures are of.
        seeds: how many seeds are trained unless --seeds says.
        notes: how the lab scale differs from the paper's, and other things to know.
        data: what --data must be, in words, where the recipes name no corpus; None where they do.
        needs: known sets of minimal pairs that have to be there.

    """

    name: str
    sentence: str
    source: str
    arms: tuple[Arm, ...]
    measure: Measure
    comparisons: tuple[Comparison, ...]
    metric: str
    published: Mapping[str, str] = field(default_factory=dict)
    seeds: int = 3
    notes: str = ""
    data: str | None = None
    needs: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        labels = [arm.label for arm in self.arms]
        assert len(set(labels)) == len(labels), f"{self.name}: two arms of one label"
        needed = {arm for comparison in self.comparisons for arm in comparison.arms} | set(self.published)
        assert needed <= set(labels), f"{self.name}: no arm is called {needed - set(labels)}"
        assert self.metric in self.measure.metrics

    def has(self, scale: Scale) -> bool:
        """Whether all arms can be had at a scale."""
        return all(arm.source(scale) is not None for arm in self.arms)

    def origin(self, arm: Arm, scale: Scale) -> Source | Computation:
        """Where the figures of an arm come from.

        Raises:
            UserError: it has nothing at this scale.

        """
        source = arm.source(scale)
        if source is None:
            other = next(name for name in SCALES if name != scale)
            raise UserError(f"{self.name} has no recipes at --scale {scale}; use --scale {other}")
        return source


def recipe_of(source: Source, seed: int) -> Recipe:
    """The recipe of a source with a seed."""
    return load_recipe(find(source.recipe), [*source.settings, f"seed={seed}"])
