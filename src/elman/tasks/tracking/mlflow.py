"""MLflow: a run of the experiment MLFLOW_EXPERIMENT_NAME in the store that MLFLOW_TRACKING_URI names."""

import json
import os
import time
from pathlib import Path
from typing import Any, ClassVar

from elman.errors import notice
from elman.tasks.tracking.tracker import PROJECT, Status, Tracker

STATUS: dict[Status, str] = {"finished": "FINISHED", "stopped": "KILLED", "failed": "FAILED"}

AT_ONCE, LONGEST = 100, 500
"""Parameters in one call, and characters of a value, that every store accepts."""


class MLflow(Tracker):
    """Metrics by step, the recipe as parameters, the final figures as metrics, the report as an artifact.

    The client is used directly, so that no run of the caller's is touched. Parameters cannot change in MLflow: keys
    that a resumed run changes are tags `resumed.KEY`. Of steps that it trains again, MLflow keeps both values.
    """

    name: ClassVar[str] = "mlflow"
    package: ClassVar[str] = "mlflow"

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

    def _summarise(self, figures: dict[str, float]) -> None:
        self._send(figures, self._step)

    def _keep(self, path: Path) -> None:
        self._client.log_artifact(self._id, str(path))

    def _close(self, status: Status) -> None:
        self._client.set_terminated(self._id, STATUS[status])


def _text(value: Any) -> str:
    """A value as MLflow keeps it."""
    return (value if isinstance(value, str) else json.dumps(value))[:LONGEST]
