"""Files that are written completely, with the right permissions; one process at a time in a folder."""

import contextlib
import errno
import json
import math
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from elman import files
from elman.errors import UserError
from elman.files import explain, json_text, making, replacing, require_utf8, require_writable, write_atomic
from elman.formats import read_json
from elman.jobs import Kept
from elman.jobs.locks import FolderLock, is_taken, waiting_for
from elman.learning import checkpoint
from support.systems import posix

HOLD = "import sys; from pathlib import Path; from elman.jobs.locks import FolderLock\n"
HOLD += "with FolderLock(Path(sys.argv[1])): print('held', flush=True); sys.stdin.read()"


WAIT = "import sys; from pathlib import Path; from elman.jobs.locks import waiting_for\n"
WAIT += "print('begun', flush=True)\nwith waiting_for(Path(sys.argv[1])): print(Path(sys.argv[1]).exists())"


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


def test_a_folder_of_a_block_that_wrote_nothing_is_not_left_behind(tmp_path):
    there, new = tmp_path / "there", tmp_path / "runs" / "new"
    there.mkdir()
    for folder in (there, new):
        for block in (FolderLock(folder), making(folder)):
            with pytest.raises(UserError, match="too few"), block:
                raise UserError("too few")
            assert folder.exists() is (folder == there)
    assert not new.parent.exists()
    block = FolderLock(new)
    with block, block:
        write_atomic(new / "kept", "")
    assert sorted(path.name for path in new.iterdir()) == [".lock", "kept"]
    with pytest.raises(UserError), FolderLock(new):
        raise UserError("later")
    assert sorted(path.name for path in new.iterdir()) == [".lock", "kept"]
    with FolderLock(tmp_path / "whole"):
        pass
    assert (tmp_path / "whole").is_dir()


def test_a_file_that_another_process_makes_is_waited_for(tmp_path):
    made = tmp_path / "folder" / "file.json"
    with waiting_for(made):
        command = [sys.executable, "-c", WAIT, str(made)]
        second = subprocess.Popen(command, stdout=subprocess.PIPE)
        assert second.stdout.readline() == b"begun\n"
        with pytest.raises(subprocess.TimeoutExpired):
            second.wait(0.3)
        made.write_text("made")
    assert second.communicate()[0] == b"True\n"


def test_where_there_are_no_locks_nothing_is_waited_for(tmp_path, monkeypatch):
    def refuse(*_):
        raise OSError(errno.ENOLCK, "no locks")

    monkeypatch.setattr("fcntl.flock", refuse)
    with waiting_for(tmp_path / "file"), waiting_for(tmp_path / "file"):
        pass
    (tmp_path / "taken").write_text("")
    with pytest.raises(UserError, match="taken"), waiting_for(tmp_path / "taken" / "file"):
        pass


def test_a_folder_that_cannot_be(tmp_path):
    (tmp_path / "file").write_text("")
    assert not is_taken(tmp_path / "file")
    with pytest.raises(UserError, match="cannot be written"):
        FolderLock(tmp_path / "file").__enter__()


def test_a_folder_that_takes_no_files_has_not_been_removed(tmp_path):
    error = OSError(errno.ENOENT, "No such file or directory")
    assert explain(tmp_path / "x.tsv", error).startswith(
        f"{tmp_path / 'x.tsv'}: cannot be written (No such file or directory); choose another folder"
    )
    assert "its folder has been removed" in explain(tmp_path / "gone" / "x.tsv", error)


@posix
def test_files_have_the_permissions_that_the_umask_leaves(tmp_path):
    for mask, mode in ((0o077, 0o600), (0o022, 0o644), (0o002, 0o664)):
        before = os.umask(mask)
        try:
            write_atomic(tmp_path / "text", "text")
            checkpoint.save(tmp_path / "tensors", {"a": torch.zeros(1)}, {})
        finally:
            os.umask(before)
        for name in ("text", "tensors"):
            assert (tmp_path / name).stat().st_mode & 0o777 == mode


@pytest.mark.parametrize("looks", ["under the lock", "for a kept result", "by writing beside"])
def test_what_a_killed_process_had_begun_is_removed(tmp_path, looks):
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    ours = [f".model.{process}-{host}0123abcd.tmp" for process, host in
            ((gone.pid, files._HOST), (os.getpid(), files._HOST), (gone.pid, "zzzz"), (gone.pid, "0000"))]  # fmt: skip
    for name in [*ours, ".notes.tmp"]:
        (tmp_path / name).mkdir()
    if looks == "under the lock":
        with FolderLock(tmp_path):
            pass
    elif looks == "by writing beside":
        write_atomic(tmp_path / "scores.tsv", "text")
    else:
        assert Kept(tmp_path / "tuning.json", {}, checkpoint.load, checkpoint.save).find() is None
    assert sorted(path.name for path in tmp_path.glob("*.tmp")) == sorted([*ours[1:], ".notes.tmp"])


def test_what_a_process_of_another_machine_left_is_removed_after_a_day(tmp_path):
    old, new = (tmp_path / f".model.1-{'0000' if files._HOST != '0000' else '1111'}0123abc{end}.tmp" for end in "de")
    for path in (old, new):
        path.mkdir()
    os.utime(old, (0, time.time() - 25 * 60 * 60))
    files.remove_abandoned(tmp_path)
    assert [*tmp_path.iterdir()] == [new]


@pytest.mark.parametrize("name", ["theirs", ".theirs"])
def test_a_folder_with_files_of_others_is_not_ones_own(tmp_path, name):
    files.require_own(tmp_path / "missing")
    files.require_own(tmp_path)
    (tmp_path / name).touch()
    if name.startswith("."):
        files.require_own(tmp_path)
        return
    with pytest.raises(UserError, match=r"holds other files \(theirs\), which could be replaced"):
        files.require_own(tmp_path, "sweep.json")
    (tmp_path / "sweep.json").touch()
    files.require_own(tmp_path, "sweep.json")


@pytest.mark.parametrize("number", [errno.ENOSYS, errno.EOPNOTSUPP])
def test_a_file_system_without_locks_is_reported_once(tmp_path, monkeypatch, capsys, number):
    def flock(*args):
        raise OSError(number, "not here")

    monkeypatch.setattr("fcntl.flock", flock)
    folder = tmp_path / str(number)
    for _ in range(2):
        with FolderLock(folder) as lock, lock, pytest.raises(UserError, match="is in use"):
            FolderLock(folder).__enter__()
    assert capsys.readouterr().err.count("has no locks") == 1


def test_json_has_null_for_numbers_that_are_not_finite():
    found = json_text({"a": [math.nan, 1.5], "b": (math.inf,), "c": "ü"})
    assert json.loads(found) == {"a": [None, 1.5], "b": [None], "c": "ü"}


def test_a_name_that_is_not_utf_8_is_refused():
    with pytest.raises(UserError, match=r"--out: the name runs/\\xff is not UTF-8"):
        require_utf8(Path(os.fsdecode(b"runs/\xff")), "--out")


@posix
def test_a_pipe_is_written_to_and_stays(tmp_path):
    """Also where writing fails halfway; nothing is made beside it."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with subprocess.Popen(["cat", str(pipe)], stdout=subprocess.PIPE) as reader:
        write_atomic(pipe, "text\n" * 5_000)
        assert reader.stdout.read() == b"text\n" * 5_000
    with pytest.raises(RuntimeError), replacing(pipe):
        raise RuntimeError
    assert pipe.is_fifo()
    assert [path.name for path in tmp_path.iterdir()] == ["pipe"]


@posix
@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="open files have no names")
@pytest.mark.parametrize("name", ["/proc/self/fd/1", "/dev/fd/1"])
def test_an_open_file_is_continued_where_it_is(tmp_path, name):
    """Tried where nothing can be replaced, even by an error."""
    code = "import sys; from pathlib import Path; from elman.files import is_stream, write_atomic\n"
    code += "path = Path(sys.argv[1]); assert is_stream(path); print('before')\n"
    code += "write_atomic(path, 'text\\n'); print('after')"
    with (tmp_path / "out").open("w") as file:
        subprocess.run([sys.executable, "-c", code, name], stdout=file, check=True)
    assert (tmp_path / "out").read_text() == "before\ntext\nafter\n"
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


@posix
def test_a_socket_is_refused_and_stays(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with socket.socket(socket.AF_UNIX) as opened:
        opened.bind("socket")
        with pytest.raises(UserError, match="socket: cannot be written"):
            write_atomic(Path("socket"), "text")
        assert Path("socket").is_socket()


@posix
def test_what_cannot_be_written_is_known_before(tmp_path, monkeypatch):
    """Missing folders are made later, pipes need none; a file in the place of a folder, or no rights, are refused."""
    (tmp_path / "file").write_text("")
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "file", tmp_path / "pipe", tmp_path / "a/b/c", Path("~nobody-of-this-name/x")):
        require_writable(path)
    for path in (tmp_path / "file/x", tmp_path / "file/x/y", tmp_path / "pipe/x"):
        with pytest.raises(UserError, match=r"cannot be written .Not a directory.; choose another folder"):
            require_writable(path)
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != tmp_path)
    for path in (tmp_path, tmp_path / "file", tmp_path / "a/b"):
        with pytest.raises(UserError, match=r"cannot be written .Permission denied."):
            require_writable(path)
    require_writable(tmp_path / "pipe")


def test_a_folder_in_the_place_of_one_that_was_moved_away_stays(tmp_path):
    for number, block in enumerate((FolderLock(tmp_path / "0"), making(tmp_path / "1"))):
        with contextlib.suppress(UserError), block:
            (tmp_path / f"{number}").rename(tmp_path / f"moved-{number}")
            (tmp_path / f"{number}").mkdir()
            (tmp_path / f"{number}" / ".lock").touch()
            raise UserError("too few")
        assert [path.name for path in (tmp_path / f"{number}").iterdir()] == [".lock"]


def test_a_file_of_records_has_an_end(tmp_path):
    (tmp_path / "zero.json").symlink_to("/dev/zero")
    with pytest.raises(UserError, match=r"zero.json: damaged .more than .* bytes"):
        read_json(tmp_path / "zero.json")
    (tmp_path / "other.json").write_text('{"valid": true}')
    with pytest.raises(UserError, match=r"other.json: damaged .Expected `array`"):
        read_json(tmp_path / "other.json", list[int])


def test_a_file_is_replaced_only_as_elman_has_written_it(tmp_path, monkeypatch):
    monkeypatch.setenv("ELMAN_CACHE", str(tmp_path / "cache"))
    out = tmp_path / "out.tsv"
    out.write_text("of somebody else\n")
    with pytest.raises(UserError, match=r"out\.tsv is there already"):
        files.require_replaceable(out)
    assert out.read_text() == "of somebody else\n"
    out.write_text("")  # an empty file holds nothing
    for text in ("first", "second, longer"):
        files.require_replaceable(out)
        write_atomic(out, text)
    out.write_text(out.read_text() + " and a note")
    with pytest.raises(UserError, match="choose another name, or move it"):
        files.require_replaceable(out)
    page = tmp_path / "page.html"
    page.write_text("<p>Written by elman 0.1</p>")
    files.require_replaceable(page)  # of another machine
    files.require_replaceable(Path("/dev/null"))


def test_a_full_disk_is_not_said_to_be_resumed_before_a_run_has_begun(tmp_path):
    full = OSError(errno.ENOSPC, "No space left on device")
    assert explain(tmp_path / "x", full).endswith("free some space and give the command again")
    (tmp_path / "recipe.toml").write_text("")
    assert explain(tmp_path / "x", full).endswith("free some space and continue with --resume")
