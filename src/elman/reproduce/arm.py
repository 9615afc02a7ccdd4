"""What a claim compares: arms, each a recipe or a computation at every scale at which it exists."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, get_args

import msgspec

from elman.config.recipe import Recipe
from elman.config.toml import find, load_recipe
from elman.errors import UserError

Scale = Literal["quick", "small", "paper"]
"""Indicative in minutes, decisive on two cores, and as published."""

SCALES: tuple[Scale, ...] = get_args(Scale)


def scale_of(name: str) -> Scale:
    """The scale called `name`; raises UserError if there is none."""
    if name in SCALES:
        return name
    hint = "; lab is now called small" if name == "lab" else ""
    raise UserError(f"--scale {name}: choose {', '.join(SCALES[:-1])} or {SCALES[-1]}{hint}")


def at_scale(name: str, scale: Scale) -> str:
    """A file name without its ending: with the scale unless it is small."""
    return name if scale == "small" else f"{name}-{scale}"


class Grid(NamedTuple):
    """Alternatives, each some settings, of which an arm takes the one with the lowest validation loss.

    They are tried with one seed that the claim does not use, and with the settings `shortened` laid over them.
    """

    alternatives: tuple[tuple[str, ...], ...]
    shortened: tuple[str, ...] = ()


class Source(NamedTuple):
    """A shipped recipe and the settings laid over it (`key.path=value`), and over these the `quick` ones at that scale.

    With a `grid` an alternative of it is laid over too, which is chosen for each arm before its seeds are trained.
    """

    recipe: str
    settings: tuple[str, ...] = ()
    quick: tuple[str, ...] = ()
    grid: Grid | None = None


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
        """Its recipe or computation at a scale; that of `quick` is the small one, shortened."""
        if scale == "paper":
            return self.paper
        if scale == "small" or self.small is None:
            return self.small
        if isinstance(self.small, Computation):
            return self.small.quick or self.small
        return Source(self.small.recipe, (*self.small.settings, *self.small.quick))


def recipe_of(source: Source, seed: int, more: Sequence[str] = ()) -> Recipe:
    """The recipe of a source, with a seed and `more` settings."""
    return load_recipe(find(source.recipe), [*source.settings, *more, f"seed={seed}"])
