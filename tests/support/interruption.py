"""A watcher that ends training in the middle, as a user or a machine would."""

import os
import signal

from elman.learning.log import Watcher


def terminate():
    """The signal that a machine sends before it stops a process."""
    os.kill(os.getpid(), signal.SIGTERM)


def interrupt():
    """What Ctrl-C raises where no handler is."""
    raise KeyboardInterrupt


def kill():
    """What the kernel does when memory runs out."""
    os.kill(os.getpid(), signal.SIGKILL)


def killed(function):
    """Call a function in a child of this process, which kills itself on the way."""
    child = os.fork()
    if child == 0:
        try:
            function()
        finally:
            os._exit(0)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status)
    assert os.WTERMSIG(status) == signal.SIGKILL


class StopAt(Watcher):
    """Ends training when a step is done."""

    def __init__(self, step, how=terminate):
        self.at, self.how = step, how

    def step(self, progress, tokens, loss):
        if progress.step == self.at:
            self.how()
