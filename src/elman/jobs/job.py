"""A job and how it ends, whichever launcher begins it."""

import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from elman.errors import UserError, first_line
from elman.files import write_atomic


class Outcome(NamedTuple):
    """How a job ended: with a value, or with a failure in one line; `trace` is that of an unexpected one."""

    value: Any = None
    failure: str | None = None
    trace: str = ""

    def reason(self, log: Path) -> str:
        """Why it failed, in one line; the trace of an unexpected failure is written to `log`."""
        if not self.trace:
            return str(self.failure)
        write_atomic(log, self.trace)
        return f"{self.failure}; see {log}"


class Job(Protocol):
    """A call that was begun elsewhere."""

    def done(self) -> bool:
        """Whether it has ended, without waiting."""

    def outcome(self) -> Outcome:
        """How it ended; asked for once, when it is done."""

    def stop(self) -> None:
        """Ask it to end soon: a training saves itself, another call is broken off."""


class Launcher(Protocol):
    """Begins jobs."""

    def start(self, name: str, function: Callable[..., Any], /, *arguments: Any) -> Job:
        """Begin a call of a module's function; the name identifies it to the user, and to a later process."""

    def close(self) -> None:
        """Wait for the jobs that were asked to stop, and free everything."""


def attempt(function: Callable[..., Any], /, *arguments: Any) -> Outcome:
    """The outcome of a call, made where the job runs, so that failures look alike whichever launcher carries them."""
    try:
        return Outcome(function(*arguments))
    except UserError as error:
        return Outcome(failure=first_line(error))
    except Exception as error:
        return Outcome(failure=f"{type(error).__name__}: {first_line(error)}", trace=traceback.format_exc())
