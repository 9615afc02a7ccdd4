"""A published claim as a value: the arms it compares, what is measured on them, and what the figures must show."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

import msgspec

from elman.config.recipe import Recipe
from elman.config.toml import find, load_recipe
from elman.errors import UserError
from elman.evaluation.result import RESULTS
from elman.formats import read_json
from elman.reproduce.comparison import Comparison

Scale = Literal["small", "paper"]
SCALES: tuple[Scale, ...] = get_args(Scale)


def scale_of(name: str) -> Scale:
    """The scale called `name`; raises UserError if there is none."""
    if name in SCALES:
        return name
    hint = "; lab is now called small" if name == "lab" else ""
    raise UserError(f"--scale {name}: choose {' or '.join(SCALES)}{hint}")


class Source(NamedTuple):
    """A shipped recipe and the settings laid over it (`key.path=value`)."""

    recipe: str
    settings: tuple[str, ...] = ()


class Measurement(NamedTuple):
    """What was measured on one run: numbers by name, and curves (such as singular values) by name."""

    figures: dict[str, float]
    curves: dict[str, list[float]]


class Computation(NamedTuple):
    """An arm that needs no training of a recipe, and its approximate duration.

    `function` is a dataclass called with the seed and --data; its fields are all that can be set.
    """

    function: Callable[[int, str | None], Measurement]
    minutes: float

    @property
    def constants(self) -> dict[str, Any]:
        """The fields of `function`, defaults included; a result computed with others is not reused."""
        fields: dict[str, Any] = msgspec.to_builtins(self.function)
        return fields


@dataclass(frozen=True)
class Arm:
    """One of the things that a claim compares: its label, and a recipe or a computation for each scale it exists at."""

    label: str
    small: Source | Computation | None = None
    paper: Source | Computation | None = None


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
    """What a claim measures on each of its arms (kept beside a run under `name`), and the curve that is drawn.

    `metrics` are the names of the figures and their descriptions; `function` computes them from a run folder and
    `constants` (a measurement made with others is not reused), None where the arms are computations; `minutes` is the
    approximate duration at small scale; `diverged` holds the figures of a training that diverged, None makes that an
    error.
    """

    name: str
    metrics: Mapping[str, str]
    function: Callable[..., Measurement] | None = None
    constants: Mapping[str, Any] = field(default_factory=dict)
    minutes: float = 0.0
    curve: CurveAxes | None = None
    diverged: Mapping[str, float] | None = None


@dataclass(frozen=True)
class Claim:
    """One published claim; `source` is the table or figure that supports it in the paper, all `comparisons` must hold.

    Attributes:
        metric: the metric of the published figures; the default is that of the first comparison.
        seeds: the number of seeds unless --seeds is given.
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
    seeds: int = 3
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

    def has(self, scale: Scale) -> bool:
        """Whether every arm exists at a scale."""
        return all(arm.small if scale == "small" else arm.paper for arm in self.arms)

    def origin(self, arm: Arm, scale: Scale) -> Source | Computation:
        """The recipe or computation of an arm; raises UserError if it has none at this scale."""
        source, other = (arm.small, "paper") if scale == "small" else (arm.paper, "small")
        if source is None:
            raise UserError(f"{self.name} has no recipes at --scale {scale}; use --scale {other}")
        return source


def recipe_of(source: Source, seed: int) -> Recipe:
    """The recipe of a source, with a seed."""
    return load_recipe(find(source.recipe), [*source.settings, f"seed={seed}"])


FIGURES = {"perplexity": "perplexity", "bits per character": "bits_per_character", "nats per step": "nll"}
"""Figures of results.json, by their names here."""


def results(folder: Path) -> Measurement:
    """The figures of each split in results.json; measures of the test output, and `MEASURE, baseline` beside them."""
    rows = {row["split"]: row for row in read_json(folder / RESULTS)}
    figures = {
        f"{split} {name}": float(row[key])
        for split, row in rows.items()
        for name, key in FIGURES.items()
        if row.get(key) is not None
    }
    output = rows["test"].get("output", {})
    figures |= {one["name"]: float(one["value"]) for one in output.get("measures", [])}
    figures |= {f"{one['name']}, baseline": float(one["value"]) for one in output.get("baseline", [])}
    return Measurement(figures, {})


def by_split(name: str, figure: str) -> ClaimMeasure:
    """One of `FIGURES` on the validation and the test split."""
    metrics = {f"{split} {figure}": f"{figure}, {split}" for split in ("valid", "test")}
    return ClaimMeasure(name, metrics, results, diverged=dict.fromkeys(metrics, math.inf))


PERPLEXITY = by_split("perplexity", "perplexity")
BITS = by_split("bits", "bits per character")
