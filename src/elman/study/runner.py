"""The runner of all studies: work side by side, as a programme gives it, each piece in a process of its own."""

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from elman.errors import UserError
from elman.jobs import listening
from elman.jobs.launching import Crew, Tell
from elman.study.runs import Machine, PlannedRun


class Stopped(Exception):  # noqa: N818
    """A signal asked to stop; every run is saved."""


class Work(Protocol):
    """A training, a measurement or a trial, of which something is kept."""

    @property
    def name(self) -> str:
        """In messages."""

    @property
    def place(self) -> Path:
        """The folder or file of what is kept; work of the same place is the same."""

    @property
    def is_open(self) -> bool:
        """Whether it is still to be done."""

    @property
    def is_taken(self) -> bool:
        """Whether another process does it now."""

    def job(self, machine: Machine, /) -> tuple[str, Callable[..., Any], tuple[Any, ...]]:
        """The name of the job, its function and arguments."""

    def beginning(self) -> str:
        """What is told when it begins, after its name; empty: nothing."""

    def take(self, value: Any, /) -> None:
        """Receive what the function returned."""

    def ending(self, seconds: float, /) -> str:
        """What is told when it is done; empty: nothing."""


WorkT = TypeVar("WorkT", bound=Work)


class Programme(Generic[WorkT]):
    """Which work is done: a list, unless a subclass chooses by how other work ends.

    The first piece of a list that fails ends the others, which are saved.
    """

    def __init__(self, work: Iterable[WorkT] = ()) -> None:
        self.left = list(work)

    def more(self, room: int, /) -> Sequence[WorkT]:  # noqa: ARG002 - for those that choose
        """Work beside that so far; asked for again and again, while `room` more may begin at once."""
        work, self.left = self.left, []
        return work

    def ended(self, work: WorkT, failure: str | None, /) -> None:
        """A piece is done, failed for the last time, or was not needed any more; may raise UserError for a failure."""
        if failure is not None:
            raise UserError(f"{work.name}: {failure}")

    def unwanted(self, running: Sequence[WorkT], /) -> Iterable[WorkT]:  # noqa: ARG002 - for those that choose
        """Which of the running pieces are not needed any more."""
        return ()

    def later(self) -> int:
        """How many pieces may follow at most, beside those that `more` has given."""
        return len(self.left)


@dataclass(frozen=True)
class Count(Generic[WorkT]):
    """How far a programme is; `ended` and `failed` are those of this command, `later` may follow."""

    waiting: int
    later: int
    running: Sequence[WorkT]
    ended: int
    failed: int
    seconds: float

    @property
    def total(self) -> int:
        """Pieces that this command has to do, at most."""
        return self.waiting + self.later + len(self.running) + self.ended

    @property
    def seconds_left(self) -> float | None:
        """Estimated by those that have ended; None before the first."""
        return self.seconds / self.ended * (self.total - self.ended) if self.ended else None


Watch = Callable[[Count[PlannedRun]], None]


def reporting(tell: Tell, every: float = 30.0) -> Watch:
    """Report how far the training of many runs is, every so many seconds."""
    last = time.monotonic()

    def watch(count: Count[PlannedRun]) -> None:
        nonlocal last
        if time.monotonic() - last > every:
            last = time.monotonic()
            failed = f", {count.failed} failed" if count.failed else ""
            left = "" if count.seconds_left is None else f", about {count.seconds_left / 60:.1f} minutes left"
            running = "; ".join(run.progress for run in count.running)
            tell(f"{count.ended} of {count.total} runs done{failed}{left}; {running}")

    return watch


def train_all(runs: Sequence[PlannedRun], machine: Machine, tell: Tell, every: float = 30.0) -> None:
    """Train the runs that are not trained yet, as `carry_out`; raises UserError where one of them failed."""
    carry_out(Programme(runs), machine, tell, reporting(tell, every))


def carry_out(
    programme: Programme[WorkT], machine: Machine, tell: Tell, watch: Callable[[Count[WorkT]], None] = lambda _: None
) -> None:
    """Do the open work of a programme, as many pieces at a time as the launch permits, each as a job of its own.

    What another command is doing in the same place is waited for; interrupted runs are resumed, and one that diverges
    does not stop the others. `tell` is called with a line when a piece begins or ends, and `watch` often, with how far
    all are. Raises Stopped where SIGINT or SIGTERM arrived (the runs have been saved), UserError where the launcher
    cannot be used, and what the programme raises.
    """
    waiting, known, elsewhere, started = list[WorkT](), dict[Path, WorkT](), set[Path](), dict[Path, float]()
    begun, ended, failed = time.monotonic(), 0, 0
    with listening() as stop, Crew[Path](machine.launch, tell, lambda place: known[place].name) as crew:
        while True:
            while work := programme.more(max(0, crew.room - len(waiting))):
                for one in work:
                    if not one.is_open:
                        programme.ended(one, None)
                    elif one.place not in known:
                        waiting.append(one)
                    known.setdefault(one.place, one)
            while crew.room and (free := _first_free(waiting, elsewhere, tell)) is not None:
                if free.is_open:
                    name, function, arguments = free.job(machine)
                    crew.start(free.place, name, function, *arguments)
                    started[free.place] = time.monotonic()
                    if beginning := free.beginning():
                        tell(f"{free.name}: {beginning}")
                else:
                    tell(f"{free.name}: done by another process")
                    programme.ended(free, None)
            if not waiting and not crew.running:
                return
            time.sleep(0.05)
            if stop.is_set():
                raise Stopped
            unwanted = {one.place for one in programme.unwanted([known[place] for place in crew.running])}
            for place in unwanted & {*crew.running}:
                crew.stop(place)
            for place, outcome in crew.ended():
                one = known[place]
                if outcome.failure is None:
                    one.take(outcome.value)
                if place not in unwanted and outcome.failure is None and one.is_open:
                    waiting.append(one)  # saved after a signal, or another process had just begun it
                    continue
                ended += 1
                failure = None if place in unwanted or not one.is_open else outcome.reason(_log(place))
                failed += failure is not None
                seconds = time.monotonic() - started[place]
                if failure is not None:
                    tell(f"{one.name}: failed ({failure}) after {seconds:.0f} s")
                elif place in unwanted and one.is_open:
                    tell(f"{one.name}: stopped after {seconds:.0f} s")
                elif ending := one.ending(seconds):
                    tell(f"{one.name}: {ending}")
                programme.ended(one, failure)
            running = [known[place] for place in crew.running]
            watch(Count(len(waiting), programme.later(), running, ended, failed, time.monotonic() - begun))


def _first_free(waiting: list[WorkT], elsewhere: set[Path], tell: Tell) -> WorkT | None:
    """Take the first piece that no other process is doing; each of the others is reported once."""
    for one in waiting:
        if not one.is_taken:
            waiting.remove(one)
            return one
        if one.place not in elsewhere:
            elsewhere.add(one.place)
            tell(f"{one.name}: another process trains it in {one.place}; waiting for that")
    return None


def _log(place: Path) -> Path:
    """Where the trace of an unexpected failure is written: beside a folder, or beside a file without its ending."""
    return place.with_suffix(".log") if place.suffix == ".json" else place.with_name(f"{place.name}.log")
