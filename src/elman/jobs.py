"""Long work: calls in several processes at once, and results that are kept so that nothing is computed twice."""

import contextlib
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from multiprocessing import active_children, get_context
from pathlib import Path
from typing import Generic, TypeAlias, TypeVar

import msgspec

from elman.errors import UserError

Advance: TypeAlias = Callable[[int, int], None] | None
"""Called with (parts done, parts in all)."""

Facts = TypeVar("Facts")
Result = TypeVar("Result")


@contextlib.contextmanager
def processes(jobs: int) -> Iterator[ProcessPoolExecutor]:
    """An executor of `jobs` spawned processes, which have no locks or threads of their parent's torch.

    If the block ends by an exception, SIGTERM goes to its processes, and they are waited for: a training saves itself,
    other calls end at once. Between trainings they ignore Ctrl-C, which also reaches this process.

    Raises:
        UserError: a process was killed from outside, for example because memory ran out.
    """
    others = set(active_children())
    executor = ProcessPoolExecutor(jobs, get_context("spawn"), signal.signal, (signal.SIGINT, signal.SIG_IGN))
    try:
        yield executor
    except BrokenProcessPool:
        raise UserError("--jobs: a process was killed from outside; try fewer jobs, finished work is kept") from None
    except BaseException:
        for process in set(active_children()) - others:
            process.terminate()
        raise
    finally:
        executor.shutdown(cancel_futures=True)


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
        """The result, if the file holds one computed from the same facts."""
        try:
            result, facts = self.load(self.path)
        except (UserError, OSError, ValueError, KeyError, msgspec.MsgspecError):
            return None
        return result if facts == self.facts else None

    def keep(self, result: Result) -> None:
        """Write the result with its facts."""
        self.save(self.path, result, self.facts)
