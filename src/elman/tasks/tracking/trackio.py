"""trackio: a run of the project TRACKIO_PROJECT, kept on this machine unless trackio's own variables name a Space."""

import contextlib
import os
import secrets
import sys
from pathlib import Path
from typing import Any, ClassVar

from elman.tasks.tracking.tracker import PROJECT, Status, Tracker


class Trackio(Tracker):
    """Metrics by step, the recipe as config, the final figures at the last step, the report as an artifact.

    trackio finds a run by its name, so that the folder's name has a random ending. Of steps that a resumed run trains
    again, trackio keeps both values.
    """

    name: ClassVar[str] = "trackio"
    package: ClassVar[str] = "trackio"

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

    def _summarise(self, figures: dict[str, float]) -> None:
        self._send(figures, self._step)

    def _keep(self, path: Path) -> None:
        with contextlib.redirect_stdout(sys.stderr):
            self._run.log_artifact(str(path), name=path.name, type="report")

    def _close(self, status: Status) -> None:  # noqa: ARG002 - it has no place for one
        import trackio

        with contextlib.redirect_stdout(sys.stderr):
            trackio.finish()  # not the run's own method, after which trackio would end it once more at exit
