"""Where runs and computations are kept: the same recipe, seed and data are trained once, whichever claim needs them."""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import torch

import elman
from elman.config.recipe import Recipe
from elman.config.toml import DESCRIPTIVE, dump_recipe
from elman.errors import UserError
from elman.files import canonical_json, sha256_lines, write_atomic
from elman.formats import read_json
from elman.jobs import Kept
from elman.network.device import processor_name
from elman.reproduce.arm import Computation, Measurement, Scale, Source, at_scale, recipe_of
from elman.reproduce.claim import Claim, ClaimMeasure
from elman.reproduce.grid import Trial, chosen, trial_recipes
from elman.reproduce.planned import Planned, PlannedComputation, PlannedRun, Status
from elman.tasks.estimate import estimate
from elman.tasks.open import open_task, source_of, task_of


class Store:
    """The folder of a reproduction: `runs/`, `computed/` and the results; `data` is --data, if it is given."""

    def __init__(self, out: Path, data: str | None) -> None:
        if out.exists() and not out.is_dir():
            raise UserError(f"{out} is a file; choose a folder for --out")
        self.out, self.data = out, data
        self._data_digests: dict[Any, str] = {}
        self._folders: dict[str, Path] = {}
        self._minutes: dict[str, float] = {}

    def plan(self, claim: Claim, scale: Scale, seeds: Sequence[int]) -> dict[str, list[Planned]]:
        """What every arm needs, in the order of the seeds; raises UserError where scale or data do not fit."""
        if claim.data is not None and self.data is None:
            raise UserError(f"{claim.name} needs --data: {claim.data}")
        sources = {arm.label: claim.origin(arm, scale) for arm in claim.arms}
        recipes = [recipe_of(source, 1) for source in sources.values() if not isinstance(source, Computation)]
        if self.data is not None and len({recipe.data.corpus for recipe in recipes}) > 1:
            raise UserError(f"{claim.name} compares several corpora at --scale {scale}; leave out --data {self.data}")
        folder = self.out / "computed" / at_scale(claim.name, scale)
        suffix = "" if self.data is None else "-" + sha256_lines(self.data)[:8]
        planned = dict[str, list[Planned]]()
        for label, source in sources.items():
            if isinstance(source, Computation):
                paths = {seed: folder / f"{_file_name(label)}-{seed}{suffix}.json" for seed in seeds}
                planned[label] = [PlannedComputation(label, seed, self.data, source, paths[seed]) for seed in seeds]
            else:
                more = chosen(self._trials(label, source))
                planned[label] = [self.place(label, recipe_of(source, seed, more)) for seed in seeds]
        return planned

    def trials(self, claim: Claim, scale: Scale) -> dict[str, list[Trial]]:
        """The trials of every arm that is tuned, by its label."""
        sources = {arm.label: claim.origin(arm, scale) for arm in claim.arms}
        found = {label: self._trials(label, one) for label, one in sources.items() if isinstance(one, Source)}
        return {label: trials for label, trials in found.items() if trials}

    def _trials(self, label: str, source: Source) -> list[Trial]:
        return [Trial(settings, self.place(label, recipe, trial=True)) for settings, recipe in trial_recipes(source)]

    def place(self, label: str, recipe: Recipe, *, trial: bool = False) -> PlannedRun:
        """The run of a recipe, trained or not; a `trial` is not evaluated after its training."""
        recipe = recipe if self.data is None else task_of(recipe).elsewhere(recipe, self.data)
        data = recipe.data
        facts = {key: value for key, value in canonical(recipe).items() if key not in DESCRIPTIVE}
        facts["data"] = {recipe.kind: canonical(data.options), "digest": self._data_digest(recipe)}
        if data.evaluation != type(data.evaluation)():
            facts["evaluation"] = canonical(data.evaluation)
        digest = digest_of(facts)
        if digest not in self._folders:
            existing = sorted((self.out / "runs").glob(f"*-{digest}"))
            self._folders[digest] = existing[0] if existing else self.out / "runs" / f"{_file_name(label)}-{digest}"
        return PlannedRun(label, recipe, self._folders[digest], trial)

    def minutes_of(self, run: PlannedRun, device: torch.device) -> float:
        """Minutes to train a run, from a few timed steps; recipes that differ only by seed are timed once."""
        key = dump_recipe(msgspec.structs.replace(run.recipe, seed=0))
        if key not in self._minutes:
            self._minutes[key] = float(estimate(run.recipe, None, device)["minutes"])
        return self._minutes[key]

    def _data_digest(self, recipe: Recipe) -> str:
        source = source_of(recipe)
        key = source, msgspec.json.encode(recipe.data)
        if key not in self._data_digests:
            self._data_digests[key] = open_task(recipe, source).digest
        return self._data_digests[key]


def canonical(value: Any) -> Any:
    """A record as plain values without those equal to their defaults: a new key with a default changes no digest."""
    if not isinstance(value, msgspec.Struct):
        return msgspec.to_builtins(value, str_keys=True)
    kept: dict[str, Any] = {"kind": value.__struct_config__.tag}
    for field in msgspec.structs.fields(value):
        default = field.default if field.default_factory is msgspec.NODEFAULT else field.default_factory()
        found = getattr(value, field.name)
        if found != default:
            kept[field.encode_name] = canonical(found)
    return kept


def digest_of(facts: Mapping[str, Any]) -> str:
    """The digest in the names of run folders: runs of equal digest have equal results."""
    return sha256_lines(canonical_json(facts))[:12]


def found_measurement(planned: Planned, measure: ClaimMeasure) -> Measurement | None:
    """The measurement that needs no work: one that is kept for the same constants, or that of a diverged training."""
    if isinstance(planned, PlannedRun) and planned.status is Status.DIVERGED and measure.diverged is not None:
        return Measurement(dict(measure.diverged), {})
    return kept_measurement(planned, measure).find()


def measured(planned: Planned, measure: ClaimMeasure) -> Measurement:
    """The measurement of a finished run or a computation, made now unless it is kept.

    It is kept unless one of its figures is not finite; where another process makes it, that is waited for. Raises
    UserError where the training diverged and the measure has no figures for that.
    """
    if (found := found_measurement(planned, measure)) is not None:
        return found
    if isinstance(planned, PlannedRun) and planned.status is Status.DIVERGED:
        raise UserError(f"{planned.name}: the training diverged and cannot be measured (see {planned.folder})")
    return kept_measurement(planned, measure).made(
        lambda: _made(planned, measure), lambda made: all(map(math.isfinite, made.figures.values()))
    )


def _made(planned: Planned, measure: ClaimMeasure) -> Measurement:
    if isinstance(planned, PlannedComputation):
        made = planned.computation.function(planned.seed, planned.data)
    else:
        assert measure.function is not None, "runs are measured by a function"
        made = measure.function(planned.folder, **measure.constants)
    assert made.figures.keys() >= set(measure.metrics), "a measure gives the figures that it names"
    return made


def kept_measurement(planned: Planned, measure: ClaimMeasure) -> Kept[Measurement, Any]:
    """Where the measurement of a run or computation is kept; one without a figure that is measured now is not read.

    Nor is one of times that was made on another processor or by another version.
    """
    if isinstance(planned, PlannedRun):
        path, constants = planned.folder / f"measured-{measure.name}.json", dict(measure.constants)
        if measure.timed:
            constants |= {"elman": elman.__version__, "processor": processor_name(torch.device("cpu"))}
    else:
        path, constants = planned.path, planned.computation.constants
    return Kept(path, json.loads(json.dumps(constants)), partial(_load, measure.metrics), _save)


def _load(metrics: Iterable[str], path: Path) -> tuple[Measurement, Any]:
    found = read_json(path)
    if missing := set(metrics) - found["figures"].keys():
        raise KeyError(*missing)
    return Measurement(found["figures"], found["curves"]), found.get("constants", {})


def _save(path: Path, measurement: Measurement, constants: Any) -> None:
    write_atomic(path, json.dumps({"constants": constants, **measurement._asdict()}) + "\n")


def _file_name(label: str) -> str:
    return label.replace("/", " over ")
