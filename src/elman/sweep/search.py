"""Which runs a sweep trains: all settings of a list, or those that Optuna proposes, some of which are pruned."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Protocol

from elman.errors import UserError
from elman.jobs.launching import Tell
from elman.reproduce.planned import PlannedRun
from elman.sweep.proposals import Proposals
from elman.sweep.question import Sweep
from elman.sweep.space import Setting
from elman.sweep.tried import Tried


class Search(Protocol):
    """A `Programme` that knows the settings that it has tried."""

    tried: list[Tried]

    def more(self, room: int, /) -> Sequence[PlannedRun]:
        """See `Programme`."""

    def ended(self, run: PlannedRun, failure: str | None, /) -> None:
        """See `Programme`."""

    def unwanted(self, running: Sequence[PlannedRun], /) -> Iterable[PlannedRun]:
        """See `Programme`."""

    def later(self) -> int:
        """See `Programme`."""


class Everything:
    """All runs of a list of settings: the first seed of each, then the second, and so on."""

    def __init__(self, sweep: Sweep, settings: Sequence[Setting]) -> None:
        """Raise UserError where a setting gives no recipe, or two give the same."""
        self.tried = [Tried(setting, sweep.runs(setting)) for setting in settings]
        self._left = [run for each in zip(*(one.runs for one in self.tried), strict=True) for run in each]
        places = dict[Path, str]()
        for one in self.tried:
            first = one.runs[0]
            if first.folder in places:
                raise UserError(f"{places[first.folder]} and {first.label} are the same recipe; leave one of them out")
            places[first.folder] = first.label

    def more(self, _: int) -> Sequence[PlannedRun]:
        """All of them, once."""
        runs, self._left = self._left, []
        return runs

    def ended(self, run: PlannedRun, failure: str | None) -> None:
        """Note a failure."""
        if failure is not None:
            next(one for one in self.tried if run.folder in one.folders).fail(run, failure)

    def unwanted(self, _: Sequence[PlannedRun]) -> Iterable[PlannedRun]:
        """None."""
        return ()

    def later(self) -> int:
        """Those that have not been given, none after the first time."""
        return len(self._left)


def search_of(sweep: Sweep, tell: Tell) -> Search:
    """The search of a sweep; raises UserError where a setting gives no recipe, or Optuna is missing."""
    if sweep.question.search == "optuna":
        return Proposals(sweep, tell)
    return Everything(sweep, sweep.question.settings())
