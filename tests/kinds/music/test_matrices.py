"""Piano rolls in .mat files, the form in which the classic sets are published; pickles are refused."""

import pickle
import random

import numpy as np
import pytest
import scipy.io

from elman.cli import main
from elman.errors import UserError
from elman.kinds.music.corpus import open_music
from elman.kinds.music.record import MusicReading
from support.music_runs import arrays


def cells(roll, lengths, kind=np.uint8):
    """Matrices of pieces in one row of cells."""
    found = np.empty((1, len(lengths)), object)
    for place, piece in enumerate(np.split(roll, np.cumsum(lengths)[:-1])):
        found[0, place] = piece.astype(kind)
    return found


def saved(path, kind=np.uint8, compress=False, **changes):
    found = arrays()
    values = {f"{split}data": cells(found[f"{split}_roll"], found[f"{split}_len"], kind)
              for split in ("train", "valid", "test")}  # fmt: skip
    kept = {name: value for name, value in (values | changes).items() if value is not None}
    scipy.io.savemat(path, kept, do_compression=compress)
    return path


@pytest.mark.parametrize(("kind", "compress"), [(np.uint8, False), (np.float64, True)])
def test_matrices_are_the_rolls_of_arrays(tmp_path, data, kind, compress):
    corpus = open_music(saved(tmp_path / "music.mat", kind, compress), MusicReading(pitches=93))
    assert corpus.digest == open_music(data, MusicReading(pitches=93)).digest
    assert corpus.name == "music"


def test_a_mat_file_is_music(tmp_path, capsys):
    path = saved(tmp_path / "music.mat")
    call = ["train", str(path), "--minutes", "0.02", "--set", "training.epochs=1", "--dry-run"]
    assert main(call) == 0
    assert "music: frames of notes" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"testdata": None}, "no variable testdata; it must have traindata, validdata, testdata"),
        ({"validdata": np.zeros((5, 88))}, "validdata must be cells of matrices [steps, 88] or [steps, 93]; it is"),
        ({"validdata": cells(np.zeros((4, 12)), [2, 2])}, "cell 1 is uint8 [2, 12]"),
        ({"traindata": cells(np.full((4, 88), 2), [2, 2])}, "it must hold zeros and ones"),
    ],
)
def test_matrices_of_other_forms_are_named(tmp_path, changes, problem):
    with pytest.raises(UserError) as error:
        open_music(saved(tmp_path / "a.mat", **changes), MusicReading())
    assert problem in str(error.value)
    assert str(error.value).startswith(f"{tmp_path / 'a.mat'}: ")


def test_damaged_matrices_are_refused_in_one_line(tmp_path):
    whole, draw, path, lines = (
        saved(tmp_path / "a.mat", compress=True).read_bytes(),
        random.Random(0),
        tmp_path / "b.mat",
        [],
    )
    (tmp_path / "c.mat").write_bytes(b"MATLAB 7.3 MAT-file" + bytes(105) + b"\0\2IM" + b"\x89HDF\r\n\x1a\n")
    with pytest.raises(UserError, match=r"c\.mat: not a \.mat file of plain matrices"):
        open_music(tmp_path / "c.mat", MusicReading())
    for _ in range(150):
        damaged = bytearray(whole)
        for _ in range(draw.choice([1, 2, 5])):
            damaged[draw.randrange(len(damaged))] = draw.randrange(256)
        path.write_bytes(damaged[: draw.choice([len(damaged), draw.randrange(4, len(damaged))])])
        try:
            open_music(path, MusicReading())
        except UserError as error:
            lines.append(str(error))
    assert len(lines) > 100
    assert all(line.startswith(f"{path}: ") and "\n" not in line for line in lines)


def test_matrices_that_unpack_to_too_much_are_refused(tmp_path, monkeypatch):
    path = saved(tmp_path / "a.mat", compress=True)
    monkeypatch.setenv("ELMAN_MAX_UNPACKED_GB", "0.00001")
    with pytest.raises(UserError, match="it unpacks to"):
        open_music(path, MusicReading())


def test_pickles_are_refused(tmp_path, capsys):
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        path = tmp_path / f"{protocol}.pickle"
        path.write_bytes(pickle.dumps({"train": [[[60]]]}, protocol=protocol))
        assert main(["train", str(path)]) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert "a pickle, which may run code when it is opened" in line
