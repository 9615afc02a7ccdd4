"""A watcher that ends training in the middle, as a user or a machine would."""

import os
import signal
import sys
import traceback
from pathlib import Path

import pytest

from elman.learning.folder import Watcher

LONGEST = 120
"""Seconds; a child that waits in vain ends then."""


def end_after(seconds):
    """End this process when the time is over, whatever it is doing."""
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(seconds)


def terminate():
    """The signal that a machine sends before it stops a process."""
    _require_posix()
    os.kill(os.getpid(), signal.SIGTERM)


def interrupt():
    """What Ctrl-C raises where no handler is."""
    raise KeyboardInterrupt


def kill():
    """What the kernel does when memory runs out."""
    _require_posix()
    os.kill(os.getpid(), signal.SIGKILL)


def begun(function, log=None):
    """A child of this process, which has everything imported, that ends with the status that the function returns.

    Its output goes to the file `log`, or nowhere.
    """
    _require_posix()
    child = os.fork()
    if child:
        return child
    status = 70
    try:
        end_after(LONGEST)
        sys.stdout = sys.stderr = Path(log or os.devnull).open("w", buffering=1, encoding="utf-8")  # noqa: SIM115
        os.dup2(sys.stdout.fileno(), 1)
        os.dup2(sys.stdout.fileno(), 2)
        status = function()
    except Exception:
        traceback.print_exc()
    finally:
        os._exit(status or 0)


def ended(child):
    """The exit status of a child, or minus the signal that ended it."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def killed(function):
    """Call a function in a child of this process, which kills itself on the way."""
    assert ended(begun(function)) == -signal.SIGKILL


def _require_posix():
    """On Windows a signal would end the tests themselves."""
    if os.name != "posix":
        pytest.skip("signals and forks of POSIX")


class StopAt(Watcher):
    """Ends training when a step is done."""

    def __init__(self, step, how=terminate):
        self.at, self.how = step, how

    def step(self, progress, tokens, loss):
        if progress.step == self.at:
            self.how()
