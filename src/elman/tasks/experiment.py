"""One experiment from plan to report: build its parts, train, evaluate, sample."""

import contextlib
import platform
from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

import elman
from elman import config
from elman.config import plugins
from elman.data.text import encodings
from elman.data.text.vocabulary import words_of
from elman.errors import notice
from elman.evaluation.result import RESULTS, Result, figures_of
from elman.files import write_atomic
from elman.jobs.locks import FolderLock
from elman.learning.folder import Folder, Watcher
from elman.learning.progress import described
from elman.learning.team import ALONE, Team, launch
from elman.learning.trainer import StopReason, Trainer
from elman.learning.update import Update, build_update
from elman.network.device import processor_name
from elman.network.model import LanguageModel
from elman.tasks.open import open_task
from elman.tasks.plan import EXTRAS, Plan, extras_of, require_free
from elman.tasks.run import data_facts
from elman.tasks.task import Task, write_json


class Parts(NamedTuple):
    """What a plan makes: its recipe as the run folder holds it, its data, the network, and what changes its weights."""

    recipe: config.Recipe
    task: Task
    model: LanguageModel
    update: Update


def build(plan: Plan, progress: Any = None) -> Parts:
    """Read the data, and build the network with the weights from which training starts, on the device.

    The weights of a run that is resumed are still to be read; a trial's are random. Raises UserError where the
    data cannot be used, are others than planned, or do not fit the recipe or the run to start from.
    """
    resumed = plan.out if plan.before is not None else None
    facts = {} if resumed is None else data_facts(resumed)
    with encodings.remembered(facts.get("encoding")), words_of(resumed or plan.init):
        task = open_task(plan.recipe, plan.source, progress)
    if plan.measured:
        chosen = f"training.precision = auto: {plan.recipe.training.precision}"
        notice(f"{chosen}, by the speed of products on this machine (elman info --machine)")
    plan.require_data(task)
    recipe = plan.recipe if plan.out is None or plan.before is not None else task.recorded_recipe()
    torch.manual_seed(recipe.seed)
    model = task.build()
    if plan.out is not None and plan.before is None:
        if plan.init is None:
            task.begin(model)
        else:
            task.start_from(model, plan.init)
        if plan.by_similarity:
            from elman.tasks.text.warm_start import arrange_clusters

            arrange_clusters(model)
    if recipe.model.output.gate is not None and recipe.model.output.gate.alone:
        from elman.network.output.input_gate import train_alone

        train_alone(model)
    return Parts(recipe, task, model, build_update(recipe, model.to(plan.device), plan.team))


class Experiment:
    """A recipe, its data and its run folder; raises UserError where something does not fit, before anything is written.

    The arguments are as for `Plan.new` or, with `resume` or without a recipe, of `Plan.resume`. `settings` are those
    by which the recipe was changed, `init` is a run folder from whose weights to start, words mapped by their spelling;
    a resumed run has none. `extras` is kept in the folder: what else a command computes for the run. `lock` is held
    while it trains and while it writes results, so that one process at a time works in the folder. Of a `team` of
    processes the first one alone writes; the folder must be there for all of them.
    """

    def __init__(
        self,
        recipe: config.Recipe | None,
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
        how: dict[str, Any] = {"device": device, "init": init, "extras": extras, "team": team}
        if recipe is None or resume:
            self.plan = Plan.resume(recipe, out, data, settings=settings, **how)
        else:
            self.plan = Plan.new(recipe, out, data, **how)
        assert self.plan.out is not None
        self.out, self.device, self.team, self.extras = self.plan.out, self.plan.device, team, list(self.plan.extras)
        self.recipe, self.task, self.model, update = build(self.plan, progress)
        self.lock = FolderLock(self.out)
        digests = {"vocabulary": self.task.inputs.digest, "data": self.task.digest}
        self.folder = Folder(self.out, self.device, {**digests, "recipe": config.decisive(self.recipe)}, team)
        self.trainer = Trainer(self.recipe, update, self.task.windows, self.task.validate, self.folder)

    def train(self, watchers: Sequence[Watcher] = (), max_minutes: float | None = None) -> StopReason:
        """Train; see `Trainer.run`. The watchers get the results of `finish` too.

        Raises UserError where another process trains in the folder or has begun a run there, or the loss is not finite.
        """
        self.folder.watchers = tuple(watchers)
        begun = self.plan.before is not None and self.folder.begun
        self.team.wait()  # until every process has looked at the folder
        with self.lock if self.team.leads else contextlib.nullcontext():
            if begun:
                self._continue()
            elif self.trainer.progress.step == 0:
                self._begin()
            return self.trainer.run(max_minutes)

    def _begin(self) -> None:
        if self.team.leads:
            if self.plan.before is None:
                require_free(self.out)  # still
            self.task.write(self.out)
            write_json(self.out / "environment.json", environment(self.device))
            self._write_extras()
        self.trainer.begin()
        if self.team.leads:
            # Last, since a folder with a recipe is a run: killed before this, the folder is still free.
            write_atomic(self.out / "recipe.toml", config.dump_recipe(self.recipe))

    def _continue(self) -> None:
        changes, before = self.trainer.resume(), self.plan.before
        if self.team.leads:
            self._write_extras()
            if (facts := data_facts(self.out))["source"] != self.task.source:  # the data have moved
                write_json(self.out / "data.json", facts | {"source": self.task.source})
            if self.recipe != before:
                if told := [key for key in config.DESCRIPTIVE if getattr(self.recipe, key) != getattr(before, key)]:
                    notice(f"{self.out}: {', '.join(told)} replaced")
                write_atomic(self.out / "recipe.toml", config.dump_recipe(self.recipe))
        if changes:
            notice(f"{self.out}: continued with {(message := described(changes))}")
            self.trainer.record_changes(changes, message)
        if self.team.leads and not self.trainer.progress.finished:
            # Results of an earlier end do not belong to the model to come.
            (self.out / RESULTS).unlink(missing_ok=True)

    def finish(self, prompts: Sequence[str] = ("", ""), progress: Any = None) -> list[Result]:
        """Evaluate the best model on the valid and test splits, draw samples, write the results."""
        with self.lock:
            results = self.task.finish(self.out, self.device, prompts, progress)
        for watcher in self.folder.watchers:
            watcher.conclude(figures_of(results))
        return results

    def attach(self, path: Path) -> None:
        for watcher in self.folder.watchers:
            watcher.attach(path)

    def baselines(self, order: int | None = None, splits: Sequence[str] = ("valid", "test")) -> list[Result]:
        """The baselines of the kind of data on the same splits; also written to baselines.json.

        Of texts unigrams and Kneser-Ney n-grams of this order (None: 5, or 8 of characters and bytes).
        """
        rows = self.task.baselines(order, splits)
        write_json(self.out / "baselines.json", [one.as_dict() for one in rows])
        return rows

    def mixed(self, results: Sequence[Result], baselines: Sequence[Result]) -> list[Result]:
        """The model together with a baseline that is as good, on the splits of both."""
        return self.task.mixed(self.out, self.device, results, baselines) if baselines else []

    def _write_extras(self) -> None:
        if self.extras != extras_of(self.out):
            write_json(self.out / EXTRAS, self.extras)


def environment(device: torch.device) -> dict[str, Any]:
    """The software and the machine, as environment.json holds them."""
    found = {
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
    }
    if plugins.loaded:
        from elman.config.remembered import recorded

        found["plugins"] = recorded(plugins.loaded)
    return found
