"""The folder of an export takes its place as a whole, and what killed processes began is removed."""

import os
from pathlib import Path

import pytest

from elman.errors import UserError
from elman.export.folder import new_folder
from support.interruption import kill, killed


def test_what_a_killed_export_left_is_removed(tmp_path):
    out = tmp_path / "out"

    def begin():
        with new_folder(out) as folder:
            (folder / "model.onnx").write_text("half")
            kill()

    killed(begin)
    assert not out.exists()
    assert [path.read_text() for path in tmp_path.rglob("model.onnx")] == ["half"]
    with new_folder(out) as folder:
        (folder / "model.onnx").write_text("whole")
    assert list(tmp_path.iterdir()) == [out]
    assert (out / "model.onnx").read_text() == "whole"


def test_a_refusal_names_files_by_their_place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for out in (tmp_path / "out", Path("out")):
        with pytest.raises(UserError) as error, new_folder(out) as folder:
            raise UserError(f"{folder / 'model.onnx'}: it is too large")
        assert str(error.value) == f"{out.parent}{os.sep}out{os.sep}model.onnx: it is too large"
    assert not list(tmp_path.iterdir())


def test_an_empty_folder_is_filled_and_nothing_else_is_replaced(tmp_path):
    (tmp_path / "empty").mkdir()
    with new_folder(tmp_path / "empty") as folder:
        (folder / "model.onnx").write_text("whole")
    (tmp_path / "file").write_text("mine")
    for out in (tmp_path / "file", tmp_path / "empty", Path()):
        with pytest.raises(UserError, match="it exists; give the name of a new folder"), new_folder(out):
            pass
    assert (tmp_path / "file").read_text() == "mine"
    assert [path.name for path in (tmp_path / "empty").iterdir()] == ["model.onnx"]
