"""One experiment from recipe to report: prepare the run folder, train, evaluate, sample."""

import contextlib
import platform
import shlex
from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import torch

import elman
from elman import config
from elman.config import plugins
from elman.data.catalog.prepare import is_known
from elman.errors import UserError, notice
from elman.evaluation.result import RESULTS, Result, figures_of
from elman.files import expanded, require_utf8, require_writable, write_atomic
from elman.formats import parse_json
from elman.jobs.locks import FolderLock
from elman.learning.checkpoint import CHECKPOINT
from elman.learning.log import Watcher
from elman.learning.resumption import described, split_changes
from elman.learning.team import ALONE, Team, launch
from elman.learning.trainer import StopReason, Trainer
from elman.network.device import choose_device, processor_name
from elman.network.fast.preference import automatic
from elman.network.model import LanguageModel
from elman.tasks.hub import fetched
from elman.tasks.open import open_task, recorded_source, source_of
from elman.tasks.run import data_facts
from elman.tasks.task import Task, write_json
from elman.tasks.text.warm_start import arrange_clusters, freeze_all_but_gate

EXTRAS = "extras.json"
"""What else a command computes for a run, such as baselines; a resumed run computes it too."""


class Experiment:
    """A recipe, its data and its run folder; raises UserError where something does not fit, before anything is written.

    `data` is by default that of the run to resume, else the recipe's own, whose digest must be that which the recipe
    gives, if it does. A resumed run may change the keys of `elman.learning.resumption.CHANGEABLE`. `init` is a run
    folder from whose weights to start, words mapped by their spelling; a resumed run has none. `settings` are those by
    which the recipe was changed: a resumed run has the description that they give, else its own. `extras` is kept in
    the folder and joined with that of the run to resume: what else a command computes for the run. `lock` is held while
    it trains and while it writes results, so that one process at a time works in the folder. Of a `team` of processes
    the first one alone writes; the folder must be there for all of them.
    """

    def __init__(
        self,
        recipe: config.Recipe,
        out: Path | str,
        *,
        data: str | Path | None = None,
        device: torch.device | str = "cpu",
        resume: bool = False,
        init: Path | None = None,
        extras: Collection[str] = (),
        settings: Sequence[str] = (),
        progress: Any = None,
        team: Team = ALONE,
    ) -> None:
        out = expanded(out)
        require_utf8(out, "--out")
        require_writable(out)
        self.out, self.device, self.resume, self.team = out, choose_device(device), resume, team
        self.lock = FolderLock(out)
        measured = recipe.training.precision == "auto" and not resume
        recipe = _settled(recipe, out, self.device, resume, team)
        self._before = _require_place(out, recipe, resume)
        if self._before is not None:
            _require_effect(recipe, self._before, settings, init)
        source = str(data) if data is not None else recorded_source(out, recipe) if resume else source_of(recipe)
        # Names stay and paths become absolute, so that the source means the same from every working folder.
        source = source if is_known(source) else str(expanded(source).absolute())
        require_utf8(source, "--data")
        self.task: Task = open_task(recipe, source, progress)
        if measured:
            chosen = f"training.precision = auto: {recipe.training.precision}"
            notice(f"{chosen}, by the speed of products on this machine (elman info --machine)")
        if resume:
            _require_same_data(out, self.task)
        elif data is None:
            _require_recorded_data(recipe, self.task)
        self.recipe = (
            self.task.recorded_recipe() if self._before is None else _of_run(recipe, self._before, source, settings)
        )
        self.extras = sorted({*extras, *(_extras_of(out) if resume else ())})
        torch.manual_seed(recipe.seed)
        self.model: LanguageModel = self.task.build()
        init = None if init is None else fetched(init)
        if not resume:
            if init is None:
                self.task.begin(self.model)
            else:
                self.task.start_from(self.model, init)
            arrange_clusters(recipe.model.output, self.model, init)
        freeze_all_but_gate(recipe.model.output, self.model, init, resume=resume)
        self.model.to(self.device)
        digests = {"vocabulary": self.task.inputs.digest, "data": self.task.digest}
        self.trainer = Trainer(self.recipe, self.model, self.task.windows, self.task.validate, out, digests, team)

    def train(self, watchers: Sequence[Watcher] = (), max_minutes: float | None = None) -> StopReason:
        """Train; see `Trainer.run`. The watchers get the results of `finish` too.

        Raises UserError where another process trains in the folder or has begun a run there, or the loss is not finite.
        """
        self.trainer.log.watchers = tuple(watchers)
        begun = self.resume and (self.trainer.saver.best.exists or (self.out / CHECKPOINT).exists())
        self.team.wait()  # until every process has looked at the folder
        with self.lock if self.team.leads else contextlib.nullcontext():
            if begun:
                self._continue()
            elif self.trainer.progress.step == 0:
                self._begin()
            return self.trainer.run(max_minutes)

    def _begin(self) -> None:
        if self.team.leads:
            _require_place(self.out, self.recipe, self.resume)
            self.task.write(self.out)
            write_json(self.out / "environment.json", environment(self.device))
            self._write_extras()
        self.trainer.begin()
        if self.team.leads:
            # Last, since a folder with a recipe is a run: killed before this, the folder is still free.
            write_atomic(self.out / "recipe.toml", config.dump_recipe(self.recipe))

    def _continue(self) -> None:
        changes = self.trainer.resume()
        if self.team.leads:
            self._write_extras()
            self._write_place()
            if self.recipe != self._before:
                self._report_description()
                write_atomic(self.out / "recipe.toml", config.dump_recipe(self.recipe))
        if changes:
            notice(f"{self.out}: continued with {described(changes)}")
            self.trainer.record_changes(changes)
        if self.team.leads and not self.trainer.progress.finished:
            # Those of an earlier end are not those of the model to come.
            (self.out / RESULTS).unlink(missing_ok=True)

    def _report_description(self) -> None:
        """Report what a resumed run is described by from now on."""
        assert self._before is not None
        changed = [name for name in config.DESCRIPTIVE if getattr(self.recipe, name) != getattr(self._before, name)]
        if changed:
            notice(f"{self.out}: {', '.join(changed)} replaced")

    def finish(self, prompts: Sequence[str] = ("", ""), progress: Any = None) -> list[Result]:
        """Evaluate the best model on the valid and test splits, draw samples, write the results."""
        with self.lock:
            results = self.task.finish(self.out, self.device, prompts, progress)
        self.trainer.log.conclude(figures_of(results))
        return results

    def attach(self, path: Path) -> None:
        """Tell those who watch the training of a file about the run in its folder, such as a report."""
        self.trainer.log.attach(path)

    def baselines(self, order: int = 5, splits: Sequence[str] = ("valid", "test")) -> list[Result]:
        """Unigram and Kneser-Ney n-gram figures on the same splits; also written to baselines.json.

        Raises UserError where the data is not text.
        """
        rows = self.task.baselines(order, splits)
        write_json(self.out / "baselines.json", [one.as_dict() for one in rows])
        return rows

    def _write_extras(self) -> None:
        if self.extras != _extras_of(self.out):
            write_json(self.out / EXTRAS, self.extras)

    def _write_place(self) -> None:
        """Record where the data of a resumed run is now, if it has moved."""
        facts = data_facts(self.out)
        if facts["source"] != self.task.source:
            write_json(self.out / "data.json", facts | {"source": self.task.source})


def environment(device: torch.device) -> dict[str, Any]:
    """The software and the machine, as environment.json holds them."""
    return {
        "elman": elman.__version__,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": np.__version__,
        "platform": platform.platform(),
        "processor": processor_name(device),
        "threads": torch.get_num_threads(),
        "device": str(device),
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        **({} if (name := launch()) is None else {"torchrun": name}),
        **({"plugins": [source._asdict() for source in plugins.loaded]} if plugins.loaded else {}),
    }


def require_free(out: Path) -> None:
    """Raise UserError where a new run cannot be in the folder `out`, since a run or a file is there."""
    out = expanded(out)
    if (out / "recipe.toml").exists():
        raise UserError(f"{out} already holds a run; add --resume to continue it, or choose another --out")
    if out.exists() and not out.is_dir():
        raise UserError(f"{out} is a file; choose a folder for --out")


def _require_place(out: Path, recipe: config.Recipe, resume: bool) -> config.Recipe | None:
    """The recipe of the run to resume; raises UserError where the folder or the recipe does not suit."""
    existing = out / "recipe.toml"
    if not resume:
        require_free(out)
        return None
    if not existing.exists():
        raise UserError(f"{out} is not a run folder: it has no recipe.toml; nothing to resume, leave out --resume")
    before = config.load_recipe(existing)
    _, changed = split_changes(before, recipe)
    if changed:
        raise UserError(
            f"--resume with a changed recipe: {', '.join(changed)} differ from {existing}, and only epochs, rates,"
            " schedules and the like may change; resume with the recipe of the run (leave RECIPE and --set out), or"
            " start a new run with --init"
        )
    return before


def _settled(recipe: config.Recipe, out: Path, device: torch.device, resume: bool, team: Team) -> config.Recipe:
    """A recipe whose precision is settled: by that of the run to resume, else by the speed of the first machine."""
    if recipe.training.precision != "auto":
        return recipe
    existing = out / "recipe.toml"
    if resume and existing.exists():
        settled = config.load_recipe(existing).training.precision
    else:
        settled = "bf16" if team.from_first(automatic(device) == "bf16") else "float32"
    return msgspec.structs.replace(recipe, training=msgspec.structs.replace(recipe.training, precision=settled))


def _require_effect(recipe: config.Recipe, before: config.Recipe, settings: Sequence[str], init: Path | None) -> None:
    """Raise UserError where a run that is resumed would not use what is asked for."""
    if init is not None:
        raise UserError(
            "--init gives the weights from which a run begins, and --resume continues with its own; leave one of them"
            " out"
        )
    for key in ("corpus", "digest"):
        if f"data.{key}" in config.set_keys(settings) and getattr(recipe.data, key) != getattr(before.data, key):
            raise UserError(
                f"--resume with --set data.{key}: a run is continued on the data that it was begun with; leave it out,"
                " and give --data where they are in another place now"
            )


def _of_run(recipe: config.Recipe, before: config.Recipe, source: str, settings: Sequence[str] = ()) -> config.Recipe:
    """A recipe with the description of the run that it resumes, and with its data, which may have moved to `source`.

    A description that is among the `settings` is that of the recipe.
    """
    set_here = {key.partition(".")[0] for key in config.set_keys(settings)}
    described = {name: getattr(before, name) for name in config.DESCRIPTIVE if name not in set_here}
    named = before.data.digest is not None and before.data.corpus is not None
    data = before.data.changed(corpus=source) if named else before.data
    return msgspec.structs.replace(recipe, data=data, **described)


def _extras_of(out: Path) -> list[str]:
    try:
        found = parse_json((out / EXTRAS).read_bytes())
    except (OSError, ValueError):
        return []
    return [one for one in found if isinstance(one, str)] if isinstance(found, list) else []


def _require_recorded_data(recipe: config.Recipe, task: Task) -> None:
    if recipe.data.digest not in (None, task.digest):
        raise UserError(
            f"the {task.kind} of {task.source} has changed since the run of this recipe was trained on it (its digest"
            f" is {task.digest:.12}, data.digest is {recipe.data.digest:.12}); restore it, or accept it as it is"
            f" now with --data {shlex.quote(task.source)}"
        )


def _require_same_data(out: Path, task: Task) -> None:
    facts = data_facts(out)
    if facts["digest"] != task.digest:
        raise UserError(
            f"--resume with other data: the {task.kind} of {task.source} has changed since {out} was started (its"
            f" digest is {task.digest[:12]}, it was {facts['digest'][:12]});"
            " give the same --data, or start a new run with --init"
        )
