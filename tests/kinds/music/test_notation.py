"""Music in ABC notation: files of several tunes, read through music21 or what stands for it."""

import sys
import types

import pytest

from elman.data.kinds import look
from elman.errors import UserError
from elman.kinds.music.corpus import open_music
from elman.kinds.music.notation import read_abc, tunes_of
from elman.kinds.music.record import MusicReading

TUNE = "X:{}\nT:Caf\xe9\nM:3/4\nL:1/4\nQ:1/4=90\nK:C\n{}|]\n\n"
LETTERS = ("CDEFGABc", "EFGABcde", "GABcdefg", "ceGEDCBA")


def book(path, letters=LETTERS, before=""):
    text = before + "".join(TUNE.format(number, "".join(some)) for number, some in enumerate(letters, start=1))
    path.write_bytes(text.encode("latin-1"))
    return path


def element(at, letter, *classes):
    pitch = types.SimpleNamespace(midi=60 + "CDEFGABcdefg".index(letter))
    return types.SimpleNamespace(offset=at, quarterLength=1.0, pitches=(pitch,), classes=classes)


def score_of(letters):
    """As much of a score as is read, of letters that are a quarter each, after a chord symbol."""
    score, mark = types.SimpleNamespace(), types.SimpleNamespace(getQuarterBPM=lambda: 90.0)
    metre = types.SimpleNamespace(offset=0.0, numerator=3, denominator=4)
    score.notes = [element(0.0, "C", "Harmony"), *(element(float(at), one) for at, one in enumerate(letters))]
    score.highestTime = float(len(letters))
    score.stripTies = score.flatten = lambda: score
    score.metronomeMarkBoundaries = lambda: [(0.0, score.highestTime, mark)]
    score.getElementsByClass = {"TimeSignature": [metre]}.__getitem__
    return score


def parsed(text, format):
    assert format == "abc"
    letters = text.split("K:C\n")[1].split("|]")[0]
    if "!" in letters:
        raise ZeroDivisionError("no such length")
    return score_of(letters)


@pytest.fixture
def music21(monkeypatch):
    """A package of this name that reads a little notation."""
    package = types.ModuleType("music21")
    package.converter = types.ModuleType("music21.converter")
    package.converter.parseData = parsed
    monkeypatch.setitem(sys.modules, "music21", package)
    monkeypatch.setitem(sys.modules, "music21.converter", package.converter)
    read_abc.cache_clear()
    yield
    read_abc.cache_clear()


@pytest.mark.parametrize("name", ["book.abc", "book.txt"])
def test_each_tune_of_a_file_is_a_piece(tmp_path, music21, capsys, name):
    path = book(tmp_path / name, before="% a comment\n\n")
    assert (look(path).kind, look(path).what) == ("music", "music in ABC notation")
    corpus = open_music(path, MusicReading(steps_per_quarter=2))
    assert {split: one.lengths.tolist() for split, one in corpus.splits.items()} == {
        "train": [16, 16],
        "valid": [16],
        "test": [16],
    }
    said = capsys.readouterr().err
    assert "left out are metre (4 of 4 files), chord symbols (4 of 4 files)" in said
    (tune,) = (read_abc(place, text) for place, text in list(tunes_of(path).items())[:1])
    assert [note[:3] for note in tune.notes[:2]] == [(0.0, 1.0, 60), (1.0, 2.0, 61)]
    assert (tune.tempos, tune.metres) == (((0.0, 90.0),), ((0.0, (3, 4)),))


def test_a_tune_that_cannot_be_read_is_named_and_may_be_left_out(tmp_path, music21, capsys):
    path = book(tmp_path / "book.abc", (*LETTERS, "C!"))
    with pytest.raises(UserError, match="1 of 5 tunes cannot be read"):
        open_music(path, MusicReading())
    assert "book.abc: not readable as ABC notation, tune 5 (no such length); mend it" in capsys.readouterr().err
    assert len(open_music(path, MusicReading(skip_unreadable=True)).unreadable) == 1


def test_folders_of_notation_have_splits(tmp_path, music21):
    for split, letters in (("train", LETTERS[:2]), ("valid", LETTERS[2:3]), ("test", LETTERS[3:])):
        (tmp_path / split).mkdir()
        book(tmp_path / split / "a.abc", letters)
    assert look(tmp_path).what == "a folder of ABC files"
    assert [len(one.lengths) for one in open_music(tmp_path, MusicReading()).splits.values()] == [2, 1, 1]


def test_a_missing_library_is_named_once(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "music21", None)
    with pytest.raises(
        UserError, match=r"^music in ABC notation is read through music21, .* pip install 'elman\[abc\]'"
    ):
        open_music(book(tmp_path / "book.abc"), MusicReading())


def test_the_library_reads_ties_repeats_and_chords(tmp_path):
    pytest.importorskip("music21.converter")
    path = tmp_path / "a.abc"
    path.write_text('X:1\nM:4/4\nL:1/8\nK:G\n|:"G"G2A2 [Bd]2F2-|F4 {c}z4:|\n')
    ((place, text),) = tunes_of(path).items()
    tune = read_abc(place, text)
    found = sorted((note.start, note.end, note.pitch) for note in tune.notes)
    assert found == [(0, 1, 67), (1, 2, 69), (2, 3, 71), (2, 3, 74), (3, 6, 66)]
    assert (tune.end, tune.dropped) == (8, ("chord symbols",))
