"""The runner of all studies: work side by side, as a programme gives it, each piece in a process of its own."""

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from elman.errors import UserError
from elman.jobs import listening
from elman.jobs.launching import Crew, Launch, Tell

T = TypeVar("T")


class Stopped(Exception):  # noqa: N818
    """A signal asked to stop; every run is saved."""


@dataclass(frozen=True)
class Work(Generic[T]):
    """A call in a process of its own, of which something is kept in a folder or file, its `place`.

    Attributes:
        of: what is done: a run, a measurement, a trial.
        name: in messages.
        title: for launchers.
        call: a function and its arguments.
        is_open: whether it is still to be done.
        take: receives what the call returned.
        is_taken: whether another process does it now.
        begins, ends: what is reported when it begins, and when it is done after some seconds; empty: nothing.
    """

    of: T
    name: str
    place: Path
    title: str
    call: tuple[Any, ...]
    is_open: Callable[[], bool]
    take: Callable[[Any], None] = lambda _: None
    is_taken: Callable[[], bool] = lambda: False
    begins: str = ""
    ends: Callable[[float], str] = lambda _: ""


class Programme(Generic[T]):
    """What is done: a list, unless a subclass chooses by how other work ends.

    A failure ends the others, which are saved, unless the programme is `lenient`.
    """

    lenient = False

    def __init__(self, pieces: Iterable[T] = ()) -> None:
        self.left = list(pieces)

    def more(self, room: int, /) -> Sequence[T]:  # noqa: ARG002 - for those that choose
        """Pieces beside those so far; asked for again and again, while `room` more may begin at once."""
        pieces, self.left = self.left, []
        return pieces

    def ended(self, piece: T, failure: str | None, /) -> None:
        """Note that a piece is done, failed for the last time, or was not needed any more."""

    def unwanted(self, running: Sequence[T], /) -> Iterable[T]:  # noqa: ARG002 - for those that choose
        """Which of the running pieces are not needed any more."""
        return ()

    def later(self) -> int:
        """How many pieces may follow at most, beside those that `more` has given."""
        return len(self.left)


@dataclass(frozen=True)
class Count(Generic[T]):
    """How far a programme is; `ended` and `failed` count what this command ran, `later` may follow."""

    waiting: int
    later: int
    running: Sequence[T]
    ended: int
    failed: int
    seconds: float

    @property
    def total(self) -> int:
        return self.waiting + self.later + len(self.running) + self.ended

    @property
    def seconds_left(self) -> float | None:
        """Estimated by those that have ended; None before the first."""
        return self.seconds / self.ended * (self.total - self.ended) if self.ended else None


def carry_out(
    programme: Programme[T],
    work: Callable[[T], Work[T]],
    launch: Launch,
    tell: Tell,
    watch: Callable[[Count[T]], None] = lambda _: None,
) -> None:
    """Do the open work of a programme, as many pieces at a time as the launch permits, each as a job of its own.

    What another command is doing in the same place is waited for; interrupted runs are resumed, and one that diverges
    does not stop the others. `tell` is called with a line when a piece begins or ends, and `watch` often, with how far
    all are. Raises Stopped where SIGINT or SIGTERM arrived (the runs have been saved), UserError where the launcher
    cannot be used, or a piece failed that must not, and what the programme raises.
    """
    waiting, known, elsewhere, started = list[Work[T]](), dict[Path, Work[T]](), set[Path](), dict[Path, float]()
    begun, ended, failed = time.monotonic(), 0, 0
    with listening() as stop, Crew[Path](launch, tell, lambda place: known[place].name) as crew:
        while True:
            while pieces := programme.more(max(0, crew.room - len(waiting))):
                for one in map(work, pieces):
                    if not one.is_open():
                        programme.ended(one.of, None)
                    elif one.place not in known:
                        waiting.append(one)
                    known[one.place] = one
            for one in [*waiting]:
                if not crew.room:
                    break
                if one.is_taken():
                    if one.place not in elsewhere:
                        elsewhere.add(one.place)
                        tell(f"{one.name}: another process trains it in {one.place}; waiting for that")
                    continue
                waiting.remove(one)
                if one.is_open():
                    crew.start(one.place, one.title, *one.call)
                    started[one.place] = time.monotonic()
                    if one.begins:
                        tell(f"{one.name}: {one.begins}")
                else:
                    tell(f"{one.name}: done by another process")
                    programme.ended(one.of, None)
            if not waiting and not crew.running:
                return
            time.sleep(0.05)
            if stop.is_set():
                raise Stopped
            unwanted = {work(one).place for one in programme.unwanted([known[place].of for place in crew.running])}
            for place in unwanted & {*crew.running}:
                crew.stop(place)
            for place, outcome in crew.ended():
                one = known[place]
                if outcome.failure is None:
                    one.take(outcome.value)
                    if place not in unwanted and one.is_open():
                        waiting.append(one)  # saved after a signal, or another process had just begun it
                        continue
                ended += 1
                log = place.with_suffix(".log") if place.suffix == ".json" else place.with_name(f"{place.name}.log")
                failure = None if place in unwanted or not one.is_open() else outcome.reason(log)
                failed += failure is not None
                seconds = time.monotonic() - started[place]
                if failure is not None:
                    how = f"failed ({failure}) after {seconds:.0f} s"
                else:
                    how = f"stopped after {seconds:.0f} s" if one.is_open() else one.ends(seconds)
                if how:
                    tell(f"{one.name}: {how}")
                if failure is not None and not programme.lenient:
                    raise UserError(f"{one.name}: {failure}")
                programme.ended(one.of, failure)
            running = [known[place].of for place in crew.running]
            watch(Count(len(waiting), programme.later(), running, ended, failed, time.monotonic() - begun))
