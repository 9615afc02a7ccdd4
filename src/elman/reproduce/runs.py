"""Runs that are kept by what they are: the same recipe, seed and text are trained once, whoever asks."""

import functools
import hashlib
import json
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

import msgspec
import torch

from elman.config.recipe import Recipe
from elman.config.toml import dump_recipe
from elman.errors import UserError
from elman.files import write_atomic
from elman.reproduce.claim import Claim, ClaimMeasure, Computation, Measurement, Scale, recipe_of
from elman.tasks.estimate import estimate
from elman.tasks.open import open_task, source_of


# FOLDED reproduce/essence.py: What a recipe says, as far as it changes anything.
def essence(value: Any) -> Any:
    """A record as plain values, without what it leaves at its default: a new key with a default changes no digest."""
    if not isinstance(value, msgspec.Struct):
        return msgspec.to_builtins(value, str_keys=True)
    kept: dict[str, Any] = {"kind": value.__struct_config__.tag}
    for field in msgspec.structs.fields(value):
        default = field.default if field.default_factory is msgspec.NODEFAULT else field.default_factory()
        found = getattr(value, field.name)
        if found != default:
            kept[field.encode_name] = essence(found)
    return kept


# FOLDED reproduce/computed.py: Figures are made once and kept with their constants; those that need no trained run are computed.
@dataclass(frozen=True)
class PlannedComputation:
    """One computation.

    Attributes:
        label: of the arm.
        seed, data: what it is computed from; --data, or None.
        computation: the function.
        metrics: the figures that it is computed for.
        path: where its result is kept; remove the file, and it is computed anew.

    """

    label: str
    seed: int
    data: str | None
    computation: Computation
    metrics: tuple[str, ...]
    path: Path

    @property
    def name(self) -> str:
        """In messages."""
        return f"{self.label}, seed {self.seed}"

    @property
    def done(self) -> bool:
        """Whether its result is there, made with the same constants."""
        return _read(self.path, self.computation.constants, self.metrics) is not None

    def result(self) -> Measurement:
        """The result, computed if it is not there."""
        constants = self.computation.constants
        return kept_or_made(self.path, constants, self.metrics, lambda: self.computation.function(self.seed, self.data))


def kept_or_made(
    path: Path, constants: Mapping[str, Any], metrics: Collection[str], make: Callable[[], Measurement]
) -> Measurement:
    """The measurement that `path` holds if it was made with these constants and has these figures, else a new one.

    The new one is kept, with its constants, unless a figure of it is not finite.
    """
    kept = _read(path, constants, metrics)
    if kept is not None:
        return kept
    made = make()
    if all(map(math.isfinite, made.figures.values())):
        write_atomic(path, json.dumps({"constants": constants, **made._asdict()}) + "\n")
    return made


def _read(path: Path, constants: Mapping[str, Any], metrics: Collection[str]) -> Measurement | None:
    if not path.is_file():
        return None
    found = json.loads(path.read_text(encoding="utf-8"))
    fits = found.get("constants", {}) == json.loads(json.dumps(constants)) and found["figures"].keys() >= set(metrics)
    return Measurement(found["figures"], found["curves"]) if fits else None


# TARGET
_SAID = ("title", "notes", "citation", "expected")
"""Keys of a recipe that say something about it and change nothing."""


class Status(Enum):
    """How far a run is."""

    MISSING = "not trained"
    INTERRUPTED = "interrupted"
    DIVERGED = "diverged"
    DONE = "done"


@dataclass(frozen=True)
class PlannedRun:
    """One training: the recipe with its seed, and the folder that is its place in the cache.

    Attributes:
        label: of the arm that asked first, for messages.
        recipe: with the seed in it, on the text that is used.
        folder: `runs/LABEL-DIGEST`; runs of equal digest are the same run, whatever the label.

    """

    label: str
    recipe: Recipe
    folder: Path

    @property
    def name(self) -> str:
        """In messages."""
        return f"{self.label}, seed {self.recipe.seed}"

    @property
    def log(self) -> Path:
        """Where the training process writes."""
        return self.folder.parent.parent / "logs" / f"{self.folder.name}.log"

    @property
    def status(self) -> Status:
        """What its folder says."""
        if (self.folder / "results.json").is_file():
            return Status.DONE
        if (self.folder / "diverged.json").is_file():
            return Status.DIVERGED
        return Status.INTERRUPTED if (self.folder / "recipe.toml").is_file() else Status.MISSING


Planned = PlannedRun | PlannedComputation
"""What an arm needs for one seed."""


class Store:
    """The folder of a reproduction: `runs/`, `recipes/`, `logs/`, `computed/` and the results.

    Args:
        out: the folder.
        data: --data, or None for the recipes' own corpora.

    Raises:
        UserError: `out` is a file.

    """

    def __init__(self, out: Path, data: str | None) -> None:
        if out.exists() and not out.is_dir():
            raise UserError(f"{out} is a file; choose a folder for --out")
        self.out, self.data = out, data
        self._digests: dict[Any, str] = {}
        self._folders: dict[str, Path] = {}
        self._minutes: dict[str, float] = {}

    def plan(self, claim: Claim, scale: Scale, seeds: Sequence[int]) -> dict[str, list[Planned]]:
        """What every arm needs, in the order of the seeds.

        Raises:
            UserError: nothing at this scale, or the text cannot be used.

        """
        if claim.data is not None and self.data is None:
            raise UserError(f"{claim.name} needs --data: {claim.data}")
        sources = {arm.label: claim.origin(arm, scale) for arm in claim.arms}
        recipes = [recipe_of(source, 1) for source in sources.values() if not isinstance(source, Computation)]
        if self.data is not None and len({recipe.data.corpus for recipe in recipes}) > 1:
            raise UserError(f"{claim.name} compares several corpora at --scale {scale}; leave out --data {self.data}")
        planned = dict[str, list[Planned]]()
        for label, source in sources.items():
            if isinstance(source, Computation):
                planned[label] = [self._computation(claim, scale, label, seed, source) for seed in seeds]
            else:
                planned[label] = [self.place(label, recipe_of(source, seed)) for seed in seeds]
        return planned

    def _computation(
        self, claim: Claim, scale: Scale, label: str, seed: int, computation: Computation
    ) -> PlannedComputation:
        """A computation, and where its result is kept: apart for each scale and --data."""
        folder = self.out / "computed" / (claim.name if scale == "small" else f"{claim.name}-{scale}")
        digest = "" if self.data is None else "-" + hashlib.sha256(self.data.encode()).hexdigest()[:8]
        path = folder / f"{_file_name(label)}-{seed}{digest}.json"
        return PlannedComputation(label, seed, self.data, computation, tuple(claim.measure.metrics), path)

    def place(self, label: str, recipe: Recipe) -> PlannedRun:
        """Where the run of a recipe is or will be."""
        recipe = on_text(recipe, self.data)
        facts = {key: value for key, value in essence(recipe).items() if key not in _SAID}
        read = {"pairs": recipe.data.pairs} if recipe.of_pairs else {"text": recipe.data.text}
        facts["data"] = {**{name: essence(one) for name, one in read.items()}, "digest": self._digest_of(recipe)}
        digest = hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:12]
        if digest not in self._folders:
            existing = sorted((self.out / "runs").glob(f"*-{digest}"))
            self._folders[digest] = existing[0] if existing else self.out / "runs" / f"{_file_name(label)}-{digest}"
        return PlannedRun(label, recipe, self._folders[digest])

    def minutes_of(self, run: PlannedRun, device: torch.device) -> float:
        """Minutes to train a run, from a few timed steps; recipes that differ only by seed are timed once."""
        key = dump_recipe(msgspec.structs.replace(run.recipe, seed=0))
        if key not in self._minutes:
            self._minutes[key] = float(estimate(run.recipe, None, device)["minutes"])
        return self._minutes[key]

    def recipe_file(self, run: PlannedRun) -> Path:
        """The recipe of a run as a file to train from."""
        path = self.out / "recipes" / f"{run.folder.name}.toml"
        write_atomic(path, dump_recipe(run.recipe))
        return path

    def _digest_of(self, recipe: Recipe) -> str:
        source = source_of(recipe)
        assert source is not None
        key = source, msgspec.json.encode(recipe.data)
        if key not in self._digests:
            self._digests[key] = open_task(recipe, source).digest
        return self._digests[key]


def on_text(recipe: Recipe, data: str | None) -> Recipe:
    """The recipe on the text of --data, which is read as tokenised already where the recipe reads raw text.

    What a grammar makes stays what it is.
    """
    if data is None or data == recipe.data.corpus or recipe.data.grammar is not None:
        return recipe
    text = recipe.data.text
    if text.tokenisation == "raw":
        text = msgspec.structs.replace(text, tokenisation="words")
    return msgspec.structs.replace(recipe, data=msgspec.structs.replace(recipe.data, corpus=data, text=text))


def measured(planned: Planned, measure: ClaimMeasure) -> Measurement:
    """The measurement of a finished run or computation, from what is kept if it was made before.

    Raises:
        UserError: the training diverged and the measure has no figures for that.

    """
    if isinstance(planned, PlannedComputation):
        measurement = planned.result()
    elif planned.status is Status.DIVERGED:
        if measure.diverged is None:
            raise UserError(
                f"{planned.name}: the training diverged (see {planned.log}), which leaves nothing to measure"
            )
        measurement = Measurement(dict(measure.diverged), {})
    else:
        path = planned.folder / f"measured-{measure.name}.json"
        make = functools.partial(measure.of, planned.folder)
        measurement = kept_or_made(path, measure.constants, measure.metrics, make)
    assert set(measurement.figures) >= set(measure.metrics), "a measure gives the figures that it names"
    return measurement


def _file_name(label: str) -> str:
    """A label without what a folder's name should not hold."""
    return label.replace("/", " over ")
