"""A disk that fills while a model is written: one line that names the file as the user does, and nothing is left."""

import errno
from types import SimpleNamespace

import pytest

from elman import files
from elman.cli import main
from elman.errors import UserError
from elman.export import onnx
from support.commands import refusal, trained
from support.interruption import begun, ended
from support.systems import posix


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return trained("words", tmp_path_factory)


@pytest.mark.parametrize(
    "command",
    [
        ["models", "publish", "RUN", "--name", "tiny", "--licence", "MIT", "--out", "OUT"],
        ["report", "RUN", "--out", "OUT"],
    ],
    ids=lambda words: words[0],
)
def test_a_full_disk(run, command, tmp_path, monkeypatch, capsys):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(files.os, "fsync", full)
    out = tmp_path / "out"
    line = refusal(capsys, *({"RUN": run, "OUT": out}.get(word, word) for word in command))
    assert line.startswith(f"elman: {out}")
    assert "the disk is full" in line
    assert not list(tmp_path.iterdir())


@posix
@pytest.mark.slow
def test_a_program_of_torch_that_does_not_fit(run, tmp_path):
    """torch itself ends the process where its writer fails."""
    folder, log = tmp_path / "folder", tmp_path / "log"
    folder.mkdir()

    def limited():
        import resource

        resource.setrlimit(resource.RLIMIT_FSIZE, (4000, resource.RLIM_INFINITY))
        return main(["export", str(run), "--to", "torch", "--out", str(folder / "out")])

    assert ended(begun(limited, log)) == 2
    assert log.read_text().splitlines()[-1].startswith(f"elman: {folder / 'out'}/model.pt2: cannot be written")
    assert not list(folder.iterdir())


def test_a_graph_that_onnxruntime_cannot_write(tmp_path, monkeypatch):
    class FailError(Exception):
        """The runtime's errors have no base but this."""

    def session(*_, **__):
        raise FailError("Protobuf serialization failed.")

    def options():
        return SimpleNamespace()

    pytest.importorskip("onnxruntime")
    level = SimpleNamespace(ORT_ENABLE_BASIC=1)
    runtime = SimpleNamespace(InferenceSession=session, SessionOptions=options, GraphOptimizationLevel=level)
    monkeypatch.setattr(onnx, "require_onnx", lambda: runtime)
    with pytest.raises(UserError, match=r"out\.onnx: onnxruntime cannot write .*Protobuf .*free some space"):
        onnx.write_int8(tmp_path / "in.onnx", tmp_path / "out.onnx")
    assert not list(tmp_path.iterdir())
