"""Long work: signals that end it, calls in several processes, and results that are kept so that none is made twice."""

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from multiprocessing import active_children, get_context, parent_process
from pathlib import Path
from types import FrameType
from typing import Any, Generic, TypeAlias, TypeVar

import msgspec

from elman.errors import UserError
from elman.files import remove_abandoned
from elman.jobs.locks import waiting_for

Advance: TypeAlias = Callable[[int, int], None] | None
"""Called with (parts done, parts in all)."""

Facts = TypeVar("Facts")
Result = TypeVar("Result")
PartT = TypeVar("PartT")


def advancing(parts: Iterable[PartT], total: int, advance: Advance) -> Iterator[PartT]:
    """The parts; after each `advance` is called with (parts done, total)."""
    for done, part in enumerate(parts, start=1):
        yield part
        if advance is not None:
            advance(done, total)


ENDING = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))
"""Signals by which a machine or a closed terminal ends a process."""


@contextlib.contextmanager
def handling(receive: Callable[[int, FrameType | None], Any], *numbers: int) -> Iterator[None]:
    """Within the block signals are received, in the main thread; a SIGHUP that is ignored (nohup) stays ignored."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in numbers}
    for number, handler in before.items():
        if not (handler is signal.SIG_IGN and number in ENDING):
            signal.signal(number, receive)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class Stop:
    """Whether to stop; unlike an event of `threading` it has no lock, which a handler of signals would wait for."""

    def __init__(self) -> None:
        self._asked = False

    def set(self) -> None:
        self._asked = True

    def is_set(self) -> bool:
        return self._asked


@contextlib.contextmanager
def listening() -> Iterator[Stop]:
    """Within the block Ctrl-C, SIGTERM and SIGHUP ask to stop, in the main thread; a second Ctrl-C interrupts."""
    stop = Stop()

    def receive(number: int, _: FrameType | None) -> None:
        if stop.is_set() and number == signal.SIGINT:
            raise KeyboardInterrupt
        stop.set()

    with handling(receive, signal.SIGINT, *ENDING):
        yield stop


def interrupt(*_: object) -> None:
    """What a handler of signals does that ends a block as Ctrl-C would."""
    raise KeyboardInterrupt


@contextlib.contextmanager
def processes(
    jobs: int, prepare: Callable[..., object] | None = None, *given: Any, option: str = "--jobs"
) -> Iterator[ProcessPoolExecutor]:
    """An executor of `jobs` spawned processes, which have no locks or threads of their parent's torch.

    Each calls `prepare` with what is `given` when it begins. `option` is where users set their number.

    If the block ends by an exception, SIGTERM goes to its processes, and they are waited for: a training saves itself,
    other calls end at once. The same happens to them when this process is killed. Between trainings they ignore Ctrl-C,
    which also reaches this process.

    Raises:
        UserError: a process was killed from outside, for example because memory ran out.
    """
    others = set(active_children())
    executor = ProcessPoolExecutor(jobs, get_context("spawn"), begin_worker, (prepare, *given))
    try:
        yield executor
    except BrokenProcessPool:
        raise UserError(f"{option}: a process was killed from outside; try fewer jobs, finished work is kept") from None
    except BaseException:
        for process in set(active_children()) - others:
            process.terminate()
        raise
    finally:
        executor.shutdown(cancel_futures=True)


def begin_worker(prepare: Callable[..., object] | None = None, *given: Any) -> None:
    """Prepare a spawned process: it ignores Ctrl-C between trainings, and ends when its parent is gone.

    `prepare` is called last with what is `given`.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    if prepare is not None:
        prepare(*given)


def _end_with_parent() -> None:
    """When the parent of this process is gone, end this process as SIGTERM does: a training saves itself."""
    if (parent := parent_process()) is None:
        return
    parent.join()
    while True:  # a process that has saved its training waits for more work: the next signal ends it
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(1.0)


@dataclass(frozen=True)
class Kept(Generic[Result, Facts]):
    """A result in a file together with the facts it was computed from.

    Attributes:
        path: of the file; remove it, and the result is computed again.
        facts: what the result depends on.
        load: from the path to (result, facts); raises where the file is missing, damaged or of another form.
        save: writes (path, result, facts).
    """

    path: Path
    facts: Facts
    load: Callable[[Path], tuple[Result, Facts]]
    save: Callable[[Path, Result, Facts], object]

    def find(self) -> Result | None:
        """The result, if the file holds one computed from the same facts; what killed processes left is removed."""
        remove_abandoned(self.path.parent)
        try:
            result, facts = self.load(self.path)
        except (UserError, OSError, ValueError, KeyError, msgspec.MsgspecError):
            return None
        return result if facts == self.facts else None

    def keep(self, result: Result) -> None:
        self.save(self.path, result, self.facts)

    def made(self, make: Callable[[], Result], lasting: Callable[[Result], bool] = lambda _: True) -> Result:
        """The result that is kept, or else a new one, which is kept if it is `lasting`; one process at a time makes it.

        Raises UserError where the folder cannot be written.
        """
        if (found := self.find()) is None:
            with waiting_for(self.path):
                if (found := self.find()) is None:
                    found = make()
                    if lasting(found):
                        self.keep(found)
        return found
