"""What every tracker does: continue its run, send the metrics, and never stop the training."""

import contextlib
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple

import msgspec

from elman.config.recipe import Recipe
from elman.config.toml import flatten
from elman.errors import UserError, first_line, notice
from elman.files import json_text, write_atomic
from elman.formats import parse_json
from elman.learning.folder import Watcher
from elman.learning.progress import Progress

STATE = "tracking.json"  # the file of a run folder with what each tracker calls the run, by the name of the tracker
PROJECT = "elman"  # the project of the runs, unless the tracker's own environment variable names another
Status = Literal["finished", "stopped", "failed"]
"""How a tracked run ended: evaluated, stopped before that (it can be resumed), or by an error."""


class TrackedRun(NamedTuple):
    """What trackers are given of a run.

    Attributes:
        folder: the run folder, whose name is given by the run.
        recipe: the recipe, whose keys are the hyperparameters.
        facts: more of them: the number of parameters, the digest of the data, the device.
        group: what the run belongs to, such as the claim that it is trained for.
    """

    folder: Path
    recipe: Recipe
    facts: Mapping[str, Any]
    group: str | None = None

    @property
    def settings(self) -> dict[str, Any]:
        given = [*flatten(msgspec.to_builtins(self.recipe, str_keys=True)), *self.facts.items()]
        return {key: value for key, value in given if value is not None}


class Tracker(Watcher, ABC):
    """A watcher that sends what a training reports to another program.

    Where that fails, that is reported once and the training continues without it. The package that it needs and
    elman's extra have the name of the tracker. Raises UserError where the package is missing.
    """

    name: ClassVar[str]

    def __init__(self, run: TrackedRun) -> None:
        self.require()
        self.run, self.concluded = run, False
        self._step, self._opened, self._failed = 0, False, False

    @classmethod
    def require(cls) -> None:
        if find_spec(cls.name) is None:
            raise UserError(f"--track {cls.name} needs the package {cls.name}: pip install 'elman[{cls.name}]'")

    def begin(self, epochs: int, windows: int, progress: Progress) -> None:  # noqa: ARG002 - trackers count steps
        self._step = progress.step
        self._attempt(lambda: None)

    def record(self, record: dict[str, Any]) -> None:
        """Send the numbers of a line of metrics under `KIND/KEY`; those that are not finite are left out."""
        self._step, kind = record["step"], record["kind"]
        place = {"step", "phase"} | ({"epoch", "seconds"} if kind == "event" else set())
        values = {
            f"{kind}/{key}": float(value)
            for key, value in record.items()
            if key not in place and isinstance(value, int | float) and math.isfinite(value)
        }
        if values:
            self._attempt(lambda: self._send(values, self._step))
        if kind == "event":
            self._attempt(lambda: self._tell(f"{record['event']}: {record['message']}", self._step))

    def conclude(self, figures: Mapping[str, float]) -> None:
        self.concluded = True
        finite = {f"final/{key}": value for key, value in figures.items() if math.isfinite(value)}
        self._attempt(lambda: self._summarise(finite))

    def attach(self, path: Path) -> None:
        self._attempt(lambda: self._keep(path))

    def close(self, status: Status) -> None:
        """End the session; what is not sent yet is sent."""
        if self._opened:
            self._attempt(lambda: self._close(status))

    def _begin(self) -> None:
        path = self.run.folder / STATE
        kept = _kept(path)
        known = kept.get(self.name)
        known = known if isinstance(known, dict) and all(isinstance(one, str) for one in known.values()) else {}
        names = self._open(known, self._step)
        self._opened = True
        if names != known:
            write_atomic(path, json_text(kept | {self.name: names}, indent=1) + "\n")

    def _attempt(self, action: Callable[[], None]) -> None:
        if self._failed:
            return
        try:
            if not self._opened:  # a resumed run reports that before its training begins
                self._begin()
            action()
        except Exception as error:  # whatever goes wrong in another program
            self._failed = True
            notice(f"--track {self.name}: {first_line(error)}; {self.run.folder} continues without this tracker")

    @abstractmethod
    def _open(self, known: dict[str, str], step: int) -> dict[str, str]:
        """Open a run at `step`, or continue the `known` one; what it is called, for the next time."""

    @abstractmethod
    def _send(self, values: dict[str, float], step: int) -> None: ...

    def _tell(self, message: str, step: int) -> None:
        """Send an event, where the tracker shows text."""

    def _summarise(self, figures: dict[str, float]) -> None:
        """Send the final figures, by default as numbers of the last step."""
        self._send(figures, self._step)

    @abstractmethod
    def _keep(self, path: Path) -> None: ...

    @abstractmethod
    def _close(self, status: Status) -> None: ...


def _kept(path: Path) -> dict[str, Any]:
    """The names in the run folder; a file that is missing or damaged holds none, and the tracker begins a new run."""
    try:
        found = parse_json(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


@contextlib.contextmanager
def closing(trackers: list[Tracker]) -> Iterator[list[Tracker]]:
    """Trackers that are closed after the block, each with the way in which it ended."""
    status: Status = "failed"
    try:
        yield trackers
        status = "stopped"
    except KeyboardInterrupt:
        status = "stopped"
        raise
    finally:
        for tracker in trackers:
            tracker.close("finished" if tracker.concluded and status == "stopped" else status)
