"""Weights & Biases: a run of the project WANDB_PROJECT, online or, with WANDB_MODE=offline, in RUN/wandb."""

import os
from pathlib import Path
from typing import Any, ClassVar

from elman.tasks.tracking.tracker import PROJECT, Status, Tracker


class WeightsAndBiases(Tracker):
    """Metrics by step, the recipe as config, the final figures as summary, the report among the files.

    Of steps that a resumed run trains again, wandb keeps the values of before.
    """

    name: ClassVar[str] = "wandb"
    package: ClassVar[str] = "wandb"

    def _open(self, known: dict[str, str], step: int) -> dict[str, str]:  # noqa: ARG002 - its runs know their step
        import wandb

        self._run: Any = wandb.init(
            project=known.get("project") or os.environ.get("WANDB_PROJECT", PROJECT),
            id=known.get("id"),
            resume="allow",
            name=self.run.folder.name,
            group=self.run.group,
            dir=os.environ.get("WANDB_DIR", str(self.run.folder)),
            settings=wandb.Settings(console="off", quiet=True),
        )
        self._run.config.update(self.run.settings, allow_val_change=True)
        return {"id": self._run.id, "project": self._run.project}

    def _send(self, values: dict[str, float], step: int) -> None:
        self._run.log(values, step=step)

    def _summarise(self, figures: dict[str, float]) -> None:
        self._run.summary.update(figures)

    def _keep(self, path: Path) -> None:
        self._run.save(str(path), base_path=str(self.run.folder), policy="now")

    def _close(self, status: Status) -> None:
        self._run.finish(exit_code=1 if status == "failed" else 0)
