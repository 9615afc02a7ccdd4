"""Processes that end with the process that began them, and handlers of signals."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from elman.jobs import ENDING, handling, interrupt
from support.systems import posix

PARENT = """
import os, sys, time
from elman.jobs import processes
if __name__ == "__main__":
    with processes(1) as pool:
        print(pool.submit(os.getpid).result(), flush=True)
        pool.submit(time.sleep, 600)
        time.sleep(600)
"""


def is_running(process):
    try:
        return Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.skipif(sys.platform != "linux", reason="processes are looked up in /proc")
def test_the_processes_of_a_killed_process_end(tmp_path):
    (tmp_path / "parent.py").write_text(PARENT)
    with subprocess.Popen([sys.executable, tmp_path / "parent.py"], stdout=subprocess.PIPE) as parent:
        child = int(parent.stdout.readline())
        assert is_running(child)
        parent.kill()
    deadline = time.monotonic() + 30
    while is_running(child) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not is_running(child)


@posix
@pytest.mark.usefixtures("hangups_heard")
@pytest.mark.parametrize("number", ENDING)
def test_signals_end_a_block_and_the_handlers_come_back(number):
    before = signal.getsignal(number)
    with pytest.raises(KeyboardInterrupt), handling(interrupt, *ENDING):
        os.kill(os.getpid(), number)
    assert signal.getsignal(number) is before
