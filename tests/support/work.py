"""Calls that launchers make in other processes: values, failures, a kill, a wait for a signal."""

import os
import signal
import time

from elman.errors import UserError
from elman.files import write_atomic
from elman.jobs import listening


def give(value):
    return value


def fail_first(path, times):
    """Fail as often as that, by the lines of a file."""
    tries = path.read_text() if path.exists() else ""
    path.write_text(f"{tries}x")
    if len(tries) < times:
        raise OSError("the disk was away")
    return len(tries)


def refuse():
    raise UserError("the text is too short")


def die():
    os.kill(os.getpid(), signal.SIGKILL)


def wait_for_a_signal(path):
    """As a training does: a signal ends it early, with a result."""
    with listening() as stop:
        path.touch()
        while not stop.is_set():
            time.sleep(0.05)
    write_atomic(path.with_suffix(".saved"), "saved")
    return "saved"


def until_a_signal(path):
    """The first time it waits for a signal, later it is done at once."""
    return "continued" if path.exists() else wait_for_a_signal(path)


def variable(name):
    return os.environ.get(name)
