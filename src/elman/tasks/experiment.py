"""One experiment from recipe to report: prepare the run folder, train, evaluate, sample."""

import platform
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import torch

import elman
from elman import config
from elman.data.catalog.prepare import is_known
from elman.errors import UserError
from elman.evaluation.result import Result
from elman.files import FolderLock, write_atomic
from elman.learning.log import Watcher
from elman.learning.trainer import StopReason, Trainer
from elman.network.device import processor_name
from elman.network.model import LanguageModel
from elman.tasks.open import open_task, source_of, task_of
from elman.tasks.run import data_facts
from elman.tasks.task import Task, write_json
from elman.tasks.text.warm_start import arrange_clusters


class Experiment:
    """A recipe, its data and its run folder; raises UserError where something does not fit, before anything is written.

    `data` is by default that of the run to resume, else the recipe's own. `init` is a run folder from whose weights to
    start, words mapped by their spelling. `lock` is held while it trains and while it writes results, so that one
    process at a time works in the folder.
    """

    def __init__(
        self,
        recipe: config.Recipe,
        out: Path,
        *,
        data: str | Path | None = None,
        device: torch.device | str = "cpu",
        resume: bool = False,
        init: Path | None = None,
        progress: Any = None,
    ) -> None:
        self.recipe, self.out, self.device, self.resume = recipe, out, torch.device(device), resume
        self.lock = FolderLock(out)
        _require_place(out, recipe, resume)
        source = data
        if source is None:
            source = task_of(recipe).run.recorded_source(out, recipe) if resume else source_of(recipe)
        if source is None:
            raise UserError("no data to train on: give --data, or a recipe with data.corpus or data.grammar")
        # Names stay and paths become absolute, so that the source means the same from every working folder.
        source = str(source) if is_known(str(source)) else str(Path(source).absolute())
        self.task: Task = open_task(recipe, source, progress)
        if resume:
            _require_same_data(out, self.task)
        torch.manual_seed(recipe.seed)
        self.model: LanguageModel = self.task.build()
        if init is not None and not resume:
            self.task.start_from(self.model, init)
        if not resume:
            arrange_clusters(recipe.model.output, self.model, init)
        self.model.to(self.device)
        digests = {"vocabulary": self.task.inputs.digest, "data": self.task.digest}
        self.trainer = Trainer(recipe, self.model, self.task.windows, self.task.validate, out, digests)

    def train(self, watchers: Sequence[Watcher] = (), max_minutes: float | None = None) -> StopReason:
        """Train; see `Trainer.run`.

        Raises UserError where another process trains in the folder or has begun a run there, or the loss is not finite.
        """
        self.trainer.log.watchers = tuple(watchers)
        with self.lock:
            if self.resume and (self.out / "checkpoint.safetensors").exists():
                self.trainer.resume()
            elif self.trainer.progress.step == 0:
                _require_place(self.out, self.recipe, self.resume)
                self.task.write(self.out)
                write_json(self.out / "environment.json", environment(self.device))
                # Last, since a folder with a recipe is a run: killed before this, the folder is still free.
                write_atomic(self.out / "recipe.toml", config.dump_recipe(self.recipe))
            return self.trainer.run(max_minutes)

    def finish(self, prompts: Sequence[str] = ("", ""), progress: Any = None) -> list[Result]:
        """Evaluate the best model on the valid and test splits, draw samples, write the results."""
        with self.lock:
            return self.task.finish(self.out, self.device, prompts, progress)

    def baselines(self, order: int = 5, splits: Sequence[str] = ("valid", "test")) -> list[Result]:
        """Unigram and Kneser-Ney n-gram figures on the same splits; also written to baselines.json.

        Raises UserError where the data is not text.
        """
        rows = self.task.baselines(order, splits)
        write_json(self.out / "baselines.json", msgspec.to_builtins(rows))
        return rows


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
    }


def _require_place(out: Path, recipe: config.Recipe, resume: bool) -> None:
    existing = out / "recipe.toml"
    if not resume:
        if existing.exists():
            raise UserError(f"{out} already holds a run; add --resume to continue it, or choose another --out")
        if out.exists() and not out.is_dir():
            raise UserError(f"{out} is a file; choose a folder for --out")
        return
    if not existing.exists():
        raise UserError(f"{out} is not a run folder: it has no recipe.toml; nothing to resume, leave out --resume")
    changed = config.changed_keys(config.load_recipe(existing), recipe)
    changed = [key for key in changed if key.partition(".")[0] not in config.toml.OWN]
    if changed:
        raise UserError(
            f"--resume with a changed recipe: {', '.join(changed)} differ from {existing}; resume with the recipe of"
            " the run (leave RECIPE and --set out), or start a new run with --init"
        )


def _require_same_data(out: Path, task: Task) -> None:
    facts = data_facts(out)
    if facts["digest"] != task.digest:
        raise UserError(
            f"--resume with other data: the {task.kind} of {task.source} has changed since {out} was started (its"
            f" digest is {task.digest[:12]}, it was {facts['digest'][:12]});"
            " give the same --data, or start a new run with --init"
        )
