"""A watcher that ends training in the middle, as a user or a machine would."""

import os
import signal

import pytest

from elman.learning.folder import Watcher


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


def killed(function):
    """Call a function in a child of this process, which kills itself on the way."""
    _require_posix()
    child = os.fork()
    if child == 0:
        try:
            function()
        finally:
            os._exit(0)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status)
    assert os.WTERMSIG(status) == signal.SIGKILL


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
