"""Where runs and computations are kept: the same recipe, seed and data are trained once, whichever claim needs them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import torch

from elman.config.recipe import Recipe
from elman.config.toml import DESCRIPTIVE, dump_recipe
from elman.errors import UserError
from elman.files import canonical_json, sha256_lines
from elman.study.claim import Claim, Computation, Scale, Source, at_scale
from elman.study.runs import PlannedRun
from elman.tasks.estimate import estimate
from elman.tasks.open import open_task, source_of, task_of


@dataclass(frozen=True)
class PlannedComputation:
    """One computation of an arm, its arguments (`data` is --data or None), and where its result is kept."""

    label: str
    seed: int
    data: str | None
    computation: Computation
    path: Path

    @property
    def name(self) -> str:
        return f"{self.label}, seed {self.seed}"

    measuring = "computing"


Planned = PlannedRun | PlannedComputation  # the run or computation of an arm for one seed
SEED = 0  # of all trials; claims begin with seed 1


@dataclass(frozen=True)
class Trial:
    settings: tuple[str, ...]
    run: PlannedRun

    @property
    def loss(self) -> float | None:
        """Nats per token of the validation text; infinite where the training diverged, None before it."""
        return None if self.run.is_open else self.run.valid_nll


def trial_recipes(source: Source) -> list[tuple[tuple[str, ...], Recipe]]:
    """The alternatives of a source with their recipes; none where there is no grid."""
    if source.grid is None:
        return []
    alternatives, shortened = source.grid
    return [(settings, source.at(SEED, (*settings, *shortened))) for settings in alternatives]


def chosen(trials: Sequence[Trial]) -> tuple[str, ...]:
    """The settings with the lowest loss; of the first trial while one is not trained, none without trials."""
    known = [loss for trial in trials if (loss := trial.loss) is not None]
    if not trials or len(known) < len(trials):
        return trials[0].settings if trials else ()
    return trials[known.index(min(known))].settings


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
        recipes = [source.at(1) for source in sources.values() if not isinstance(source, Computation)]
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
                planned[label] = [self.place(label, source.at(seed, more)) for seed in seeds]
        return planned

    def trials(self, claim: Claim, scale: Scale) -> dict[str, list[Trial]]:
        sources = {arm.label: claim.origin(arm, scale) for arm in claim.arms}
        found = {label: self._trials(label, one) for label, one in sources.items() if isinstance(one, Source)}
        return {label: trials for label, trials in found.items() if trials}

    def _trials(self, label: str, source: Source) -> list[Trial]:
        return [Trial(settings, self.place(label, recipe, trial=True)) for settings, recipe in trial_recipes(source)]

    def place(self, label: str, recipe: Recipe, *, trial: bool = False) -> PlannedRun:
        """The run of a recipe, trained or not; a `trial` is not evaluated after its training."""
        recipe = recipe if self.data is None else task_of(recipe).elsewhere(recipe, self.data)
        data, source = recipe.data, source_of(recipe)
        if (key := (source, msgspec.json.encode(data))) not in self._data_digests:
            self._data_digests[key] = open_task(recipe, source).digest
        facts = {key: value for key, value in canonical(recipe).items() if key not in DESCRIPTIVE}
        facts["data"] = {recipe.kind: canonical(data.options), "digest": self._data_digests[key]}
        if data.evaluation != type(data.evaluation)():
            facts["evaluation"] = canonical(data.evaluation)
        digest = sha256_lines(canonical_json(facts))[:12]  # runs of equal digest have equal results
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


def canonical(value: Any) -> Any:
    """A record as plain values without those equal to their defaults: a new key with a default changes no digest."""
    if not isinstance(value, msgspec.Struct):
        return msgspec.to_builtins(value, str_keys=True)
    kept: dict[str, Any] = {"kind": value.__struct_config__.tag}
    for field in msgspec.structs.fields(value):
        default = field.default if field.default_factory is msgspec.NODEFAULT else field.default_factory()
        if (found := getattr(value, field.name)) != default:
            kept[field.encode_name] = canonical(found)
    return kept


def _file_name(label: str) -> str:
    return label.replace("/", " over ")


def untrained(planned: Iterable[Planned]) -> list[PlannedRun]:
    return [one for one in planned if isinstance(one, PlannedRun) and one.is_open]


@dataclass(frozen=True)
class Plan:
    """What the reproduction of a claim needs: the runs or computations of every arm, in the order of the seeds.

    `trials` belong to the arms that are tuned; while they are not trained, `runs` have the first alternative of each
    grid. `training` are the minutes of each untrained run, by its folder; `measuring` those in which all measurements
    and computations that are not kept are made.
    """

    claim: Claim
    scale: Scale
    seeds: tuple[int, ...]
    runs: dict[str, list[Planned]]
    trials: dict[str, list[Trial]]
    training: dict[Path, float]
    measuring: float

    @property
    def waiting(self) -> list[PlannedRun]:
        return [*self.untried, *(run for each in self.runs.values() for run in untrained(each))]

    @property
    def untried(self) -> list[PlannedRun]:
        return [run for trials in self.trials.values() for run in untrained(trial.run for trial in trials)]

    @property
    def name(self) -> str:
        """Of its files: the name of the claim, with the scale unless it is small."""
        return at_scale(self.claim.name, self.scale)
