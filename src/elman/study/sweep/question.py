"""What a sweep asks, as its folder records it: the recipe, what is varied, the seeds, the data, the search."""

import dataclasses
import re
from pathlib import Path
from typing import Any, Literal, TypeAlias

import msgspec
import tomli_w

from elman.config.plugins import resuming
from elman.config.recipe import Recipe
from elman.config.toml import DESCRIPTIVE, flatten, read_tables, set_recipe
from elman.errors import UserError
from elman.files import require_own, write_atomic
from elman.formats import read_json
from elman.study.runs import PlannedRun
from elman.study.store import Store
from elman.study.sweep.space import Setting, Space, Values
from elman.tasks.open import entitled

SearchName: TypeAlias = Literal["grid", "random", "optuna"]

BASE, RECORD = "base.toml", "sweep.json"
"""In the folder of a sweep: the recipe with nothing set, and the question with what has been found so far."""

TRIALS = 20  # settings that are tried at random or by Optuna


class Question(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a sweep asks, beside its recipe.

    Attributes:
        space: what is set, and what is varied.
        search: grid (every combination), random or optuna.
        trials: how many settings a search tries; None for a grid.
        seeds: of the runs, the same for every setting.
        sampler_seed: of the search.
        data: as --data, None: as the recipe says.
    """

    space: Space
    search: SearchName = "grid"
    trials: int | None = None
    seeds: tuple[int, ...] = (1,)
    sampler_seed: int = 0
    data: str | None = None

    def settings(self) -> list[Setting]:
        """All that are known before training: of Optuna's those at the ends of all ranges."""
        if self.search == "random":
            return self.space.drawn(self.sampler_seed, self.trials or TRIALS)
        return self.space.grid() if self.search == "grid" else self.space.extremes()


class Sweep:
    def __init__(self, out: Path, tables: dict[str, Any], question: Question, name: str) -> None:
        self.out, self.tables, self.question, self.name = out, tables, question, name
        self.store = Store(out, question.data)

    def recipe(self, setting: Setting, seed: int) -> Recipe:
        settings = [*self.question.space.fixed, *setting.settings, f"seed={seed}"]
        settings.sort(key=lambda one: one.partition("=")[0].count("."))  # so that no table replaces a key set within it
        source = self.name if not setting.values else f"{self.name}, {self.label(setting)}"
        return entitled(set_recipe(self.tables, settings, source), self.question.data, settings)

    def label(self, setting: Setting) -> str:
        return self.question.space.label(setting)

    def run(self, setting: Setting, seed: int) -> PlannedRun:
        """The run of a setting and a seed, trained or not; its folder is named by both."""
        label = self.label(setting)
        short = re.sub(r"[^\w.=+-]+", "_", f"{label},seed={seed}")[:80]
        return dataclasses.replace(self.store.place(short, self.recipe(setting, seed)), label=label)

    def runs(self, setting: Setting) -> list[PlannedRun]:
        return [self.run(setting, seed) for seed in self.question.seeds]


def open_sweep(out: Path, recipe: Path, question: Question) -> Sweep:
    """The sweep of a question; raises UserError where the folder holds another, or the recipe cannot be read."""
    sweep = Sweep(out, read_tables(recipe), question, str(recipe))
    if (out / RECORD).is_file():
        _require_same(reopen_sweep(out), sweep)
    elif (out / "recipe.toml").is_file():
        raise UserError(f"{out} is a run folder; choose another --out for the sweep")
    else:
        require_own(out, BASE)
    return sweep


class _Asked(msgspec.Struct):
    question: Question


def reopen_sweep(out: Path) -> Sweep:
    """The sweep that a folder holds; raises UserError where it holds none, or its record is damaged."""
    if not (out / RECORD).is_file() or not (out / BASE).is_file():
        raise UserError(f"{out} holds no sweep: it has no {RECORD} and {BASE}; give the RECIPE and --set to begin one")
    record: _Asked = read_json(out / RECORD, _Asked, "restore it, or choose another --out")
    return Sweep(out, read_tables(out / BASE), record.question, str(out / BASE))


def write_question(sweep: Sweep, found: dict[str, Any]) -> None:
    """Write the recipe and the record: the question, and what has been found so far."""
    if not (sweep.out / BASE).is_file():
        write_atomic(sweep.out / BASE, tomli_w.dumps(sweep.tables))
    record = {"question": msgspec.to_builtins(sweep.question), **found}
    write_atomic(sweep.out / RECORD, msgspec.json.format(msgspec.json.encode(record), indent=1) + b"\n")


def left_out(sweep: Sweep) -> list[str]:
    """Seeds and values that the record of its folder has and the sweep lacks."""
    if not (sweep.out / RECORD).is_file():
        return []
    old, new = reopen_sweep(sweep.out).question, sweep.question
    found = [f"seed {seed}" for seed in old.seeds if seed not in new.seeds]
    for key, axis in old.space.axes.items():
        kept = new.space.axes.get(key)
        if isinstance(axis, Values) and isinstance(kept, Values):
            found += [f"{key}={text}" for text in axis.texts if text not in kept.texts]
    return found


def _require_same(known: Sweep, asked: Sweep) -> None:
    """Raise UserError where the folder has another question; more seeds, values and trials are the same one."""
    before, now = (
        dict(flatten({key: part for key, part in one.tables.items() if key not in DESCRIPTIVE}))
        for one in (known, asked)
    )
    changed = sorted(key for key in before.keys() | now.keys() if before.get(key) != now.get(key))
    old, new = known.question, asked.question
    axes = ", ".join(old.space.axes)
    differences = {
        "the recipe": ", ".join(changed[:3]),
        "--set": ", ".join(sorted({*old.space.fixed} ^ {*new.space.fixed})),
        "the keys that are varied": "" if {*old.space.axes} == {*new.space.axes} else axes,
        "--search": "" if old.search == new.search else old.search,
        "--data": "" if old.data == new.data else str(old.data),
    }
    if old.search != "grid":
        differences["the ranges"] = "" if old.space.axes == new.space.axes else axes
        differences["--seed"] = "" if old.sampler_seed == new.sampler_seed else str(old.sampler_seed)
    if old.search == "optuna":
        differences["--seeds"] = "" if old.seeds == new.seeds else ",".join(map(str, old.seeds))
    for what, found in differences.items():
        if found:
            raise UserError(
                f"{asked.out} holds another sweep: {what} differ ({found}); choose another --out, or continue that one"
                f" with {resuming('sweep', asked.out)}"
            )


def with_more(sweep: Sweep, seeds: tuple[int, ...] | None, trials: int | None) -> Sweep:
    """The sweep with other seeds or another number of trials."""
    question = sweep.question
    if trials is not None and question.search == "grid":
        raise UserError("--trials belongs to --search random or optuna; a grid tries every combination")
    if seeds is not None and question.search == "optuna" and seeds != question.seeds:
        raise UserError("--seeds: the trials of Optuna have the seeds with which the sweep began; leave it out")
    changed = msgspec.structs.replace(question, seeds=seeds or question.seeds, trials=trials or question.trials)
    return Sweep(sweep.out, sweep.tables, changed, sweep.name)


def parse_seeds(text: str) -> tuple[int, ...]:
    """Seeds such as 1-5 or 1,2,7; raises UserError where they cannot be read.

    Example:
        >>> parse_seeds("1-3,7")
        (1, 2, 3, 7)
    """
    seeds = list[int]()
    for part in text.split(","):
        found = re.fullmatch(r"(\d{1,9})(?:-(\d{1,9}))?", part.strip())
        if found is None or (last := int(found[2] or found[1])) < int(found[1]):
            raise UserError(f"--seeds {text}: write seeds as 1-5 or 1,2,7")
        more = range(int(found[1]), last + 1)
        if len(seeds) + len(more) > 10_000:
            raise UserError(f"--seeds {text}: too many; 10,000 at most")
        seeds += more
    if len(set(seeds)) < len(seeds):
        raise UserError(f"--seeds {text}: a seed is there twice")
    return tuple(seeds)
