"""TensorBoard, Weights & Biases, MLflow and trackio: how each keeps a run, and the trackers of an experiment by name.

A package is imported when its tracker opens a run. Of steps that a resumed run trains again, TensorBoard replaces the
values of before, wandb keeps them, MLflow and trackio keep both.
"""

import contextlib
import json
import os
import secrets
import sys
import time
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from elman.config.toml import dump_recipe
from elman.errors import UserError, did_you_mean, notice
from elman.tasks.experiment import Experiment
from elman.tasks.tracking.tracker import PROJECT, Status, TrackedRun, Tracker, closing

FOLDER = "tensorboard"


class TensorBoard(Tracker):
    """Scalars, events and the recipe as text, in event files in RUN/tensorboard (`tensorboard --logdir RUN`)."""

    name = "tensorboard"

    def _open(self, known: dict[str, str], step: int) -> dict[str, str]:
        from torch.utils.tensorboard import SummaryWriter

        self._writer: Any = SummaryWriter(str(self.run.folder / FOLDER), purge_step=step + 1 if step else None)
        if not known or step:
            self._writer.add_text("recipe", f"```toml\n{dump_recipe(self.run.recipe)}\n```", step)
        return {"folder": FOLDER}

    def _send(self, values: dict[str, float], step: int) -> None:
        for key, value in values.items():
            self._writer.add_scalar(key, value, step)

    def _tell(self, message: str, step: int) -> None:
        self._writer.add_text("event", message, step)

    def _keep(self, path: Path) -> None:
        self._writer.add_text("files", path.name, self._step)

    def _close(self, status: Status) -> None:  # noqa: ARG002 - it has no place for one
        self._writer.close()


class WeightsAndBiases(Tracker):
    """Metrics by step, the recipe as config, the final figures as summary, the report among the files.

    The run belongs to the project WANDB_PROJECT, online or, with WANDB_MODE=offline, in RUN/wandb.
    """

    name = "wandb"

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


STATUS: dict[Status, str] = {"finished": "FINISHED", "stopped": "KILLED", "failed": "FAILED"}

AT_ONCE, LONGEST = 100, 500  # parameters in one call, and characters of a value, that every store accepts


class MLflow(Tracker):
    """Metrics by step, the recipe as parameters, the final figures as metrics, the report as an artifact.

    The run belongs to the experiment MLFLOW_EXPERIMENT_NAME in the store that MLFLOW_TRACKING_URI names. The client is
    used directly, so that no run of the caller's is touched. Parameters cannot change in MLflow: keys that a resumed
    run changes are tags `resumed.KEY`.
    """

    name = "mlflow"

    def _open(self, known: dict[str, str], step: int) -> dict[str, str]:  # noqa: ARG002 - values have their own step
        import mlflow

        self._client: Any = mlflow.MlflowClient()
        settings = {key: _text(value) for key, value in self.run.settings.items()}
        if (found := self._known(known.get("run_id"), mlflow.get_tracking_uri())) is None:
            self._id: str = self._create()
            told = dict[str, str]()
        else:
            self._id, told = found.info.run_id, found.data.params
            self._client.update_run(self._id, status="RUNNING")
        self._add_params({key: value for key, value in settings.items() if key not in told})
        for key, value in settings.items():
            if key in told and told[key] != value:
                self._client.set_tag(self._id, f"resumed.{key}", value)
        return {"run_id": self._id}

    def _known(self, run_id: str | None, uri: str) -> Any:
        """The run of this id; None where there is none, or the store has it no more."""
        from mlflow.exceptions import MlflowException

        if run_id is None:
            return None
        try:
            return self._client.get_run(run_id)
        except MlflowException:
            notice(f"--track mlflow: the run {run_id} of {self.run.folder} is not in {uri}; a new one begins")
            return None

    def _create(self) -> str:
        from mlflow.exceptions import MlflowException

        name = os.environ.get("MLFLOW_EXPERIMENT_NAME", PROJECT)
        if (experiment := self._client.get_experiment_by_name(name)) is not None:
            place = experiment.experiment_id
        else:
            try:
                place = self._client.create_experiment(name)
            except MlflowException:  # another process has just made it
                if (experiment := self._client.get_experiment_by_name(name)) is None:
                    raise
                place = experiment.experiment_id
        tags = {"mlflow.source.name": "elman", "folder": str(self.run.folder)}
        tags |= {} if self.run.group is None else {"group": self.run.group}
        return str(self._client.create_run(place, run_name=self.run.folder.name, tags=tags).info.run_id)

    def _add_params(self, settings: dict[str, str]) -> None:
        from mlflow.entities import Param

        params = [Param(key, value) for key, value in settings.items()]
        for start in range(0, len(params), AT_ONCE):
            self._client.log_batch(self._id, params=params[start : start + AT_ONCE])

    def _send(self, values: dict[str, float], step: int) -> None:
        from mlflow.entities import Metric

        now = int(time.time() * 1000)
        self._client.log_batch(self._id, metrics=[Metric(key, value, now, step) for key, value in values.items()])

    def _tell(self, message: str, step: int) -> None:
        self._client.set_tag(self._id, f"event.{step}", message[:LONGEST])

    def _keep(self, path: Path) -> None:
        self._client.log_artifact(self._id, str(path))

    def _close(self, status: Status) -> None:
        self._client.set_terminated(self._id, STATUS[status])


def _text(value: Any) -> str:
    return (value if isinstance(value, str) else json.dumps(value))[:LONGEST]


class Trackio(Tracker):
    """Metrics by step, the recipe as config, the final figures at the last step, the report as an artifact.

    The run belongs to the project TRACKIO_PROJECT, kept on this machine unless trackio's own variables name a Space.
    trackio finds a run by its name, so that the folder's name has a random ending.
    """

    name = "trackio"

    def _open(self, known: dict[str, str], step: int) -> dict[str, str]:  # noqa: ARG002 - values have their own step
        import trackio

        names = known or {
            "project": os.environ.get("TRACKIO_PROJECT", PROJECT),
            "name": f"{self.run.folder.name}-{secrets.token_hex(3)}",
        }
        with contextlib.redirect_stdout(sys.stderr):  # results alone go to standard output
            self._run: Any = trackio.init(
                **names, group=self.run.group, config=self.run.settings, resume="allow", embed=False
            )
        return names

    def _send(self, values: dict[str, float], step: int) -> None:
        self._run.log(values, step=step)

    def _keep(self, path: Path) -> None:
        with contextlib.redirect_stdout(sys.stderr):
            self._run.log_artifact(str(path), name=path.name, type="report")

    def _close(self, status: Status) -> None:  # noqa: ARG002 - it has no place for one
        import trackio

        with contextlib.redirect_stdout(sys.stderr):
            trackio.finish()  # not the run's own method, after which trackio would end it once more at exit


TRACKERS: dict[str, type[Tracker]] = {one.name: one for one in (TensorBoard, WeightsAndBiases, MLflow, Trackio)}
"""By name."""

OFF = "none"  # the name that stands for no tracker, whatever the run remembers


def names_of(track: str) -> tuple[str, ...]:
    """The names in `NAME[,NAME]`; raises UserError where one is unknown or its package is missing.

    >>> names_of("none")
    ()
    """
    names = tuple(dict.fromkeys(name.strip() for name in track.split(",")))
    if names == (OFF,):
        return ()
    for name in names:
        if name not in TRACKERS:
            known = ", ".join(TRACKERS)
            raise UserError(f"--track {name}: no such tracker{did_you_mean(name, TRACKERS)}; choose among {known}")
        TRACKERS[name].require()
    return names


def tracked(
    experiment: Experiment, group: str | None = None, *, off: bool = False
) -> AbstractContextManager[list[Tracker]]:
    """The trackers among the extras of an experiment, closed after the block; none with `off`.

    One that the run remembers, and whose package is missing here, is left out with a notice.
    """
    model, task = experiment.model, experiment.task
    parameters = sum(parameter.numel() for parameter in model.parameters())
    facts = {"parameters": parameters, "data_digest": task.digest, "device": str(experiment.device)}
    run, trackers = TrackedRun(experiment.out, experiment.recipe, facts, group), list[Tracker]()
    for name in experiment.extras if not off else ():
        if name in TRACKERS:
            try:
                trackers.append(TRACKERS[name](run))
            except UserError as error:
                notice(f"{error}; {experiment.out} continues without this tracker")
    return closing(trackers)
