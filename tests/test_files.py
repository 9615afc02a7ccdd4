"""One process at a time in a folder."""

import subprocess
import sys

import pytest

from elman.errors import UserError
from elman.files import FolderLock, is_taken

HOLD = "import sys; from pathlib import Path; from elman.files import FolderLock\n"
HOLD += "with FolderLock(Path(sys.argv[1])): print('held', flush=True); sys.stdin.read()"


@pytest.fixture
def other(tmp_path):
    """Another process that holds the lock of `tmp_path`/run."""
    command = [sys.executable, "-c", HOLD, str(tmp_path / "run")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"held\n"
        yield process
        process.kill()


@pytest.mark.skipif(sys.platform == "win32", reason="no such locks")
def test_a_second_process_is_refused_until_the_first_dies(tmp_path, other):
    folder = tmp_path / "run"
    assert is_taken(folder)
    with pytest.raises(UserError, match=f"run is in use: process {other.pid} is training there; wait until it ends"):
        FolderLock(folder).__enter__()
    other.kill()
    other.wait()
    assert not is_taken(folder)
    with FolderLock(folder) as lock, lock:
        assert is_taken(folder)
    assert not is_taken(folder)


def test_a_block_within_a_block_does_not_let_go(tmp_path):
    with FolderLock(tmp_path) as lock:
        with lock:
            pass
        with pytest.raises(UserError, match="is in use"):
            FolderLock(tmp_path).__enter__()


def test_a_folder_that_cannot_be(tmp_path):
    (tmp_path / "file").write_text("")
    assert not is_taken(tmp_path / "file")
    with pytest.raises(UserError, match="cannot be written"):
        FolderLock(tmp_path / "file").__enter__()
