"""Chorales out of an installed package's MusicXML."""

import zipfile

import numpy as np
import pytest

from elman.data.catalog import prepare
from elman.errors import UserError
from elman.kinds.music.corpus import open_music
from elman.kinds.music.pianoroll import read_score
from elman.kinds.music.record import MusicOptions
from support.music_xml import CONTAINER, note, save

FIRST = "".join([
    "<attributes><divisions>4</divisions></attributes>",
    note("C", 4, 4), note("E", 4, 4, "<chord/>"), note("F", 4, 2, alter=1),
    "<note><rest/><duration>2</duration></note>", "<backup><duration>4</duration></backup>", note("G", 3, 4),
])  # fmt: skip
SECOND = "".join([
    "<attributes><divisions>2</divisions></attributes>",
    "<note><grace/><pitch><step>C</step><octave>9</octave></pitch></note>",
    "<forward><duration>1</duration></forward>", note("B", 4, 1, alter=-1),
])  # fmt: skip
MEASURES = (f"<measure>{FIRST}</measure>", f"<measure>{SECOND}</measure>")


def torn(path):
    data = bytearray(path.read_bytes())
    data[len(data) // 2 - 100 : len(data) // 2] = bytes(100)
    return bytes(data)


def pitches(roll):
    return [(np.flatnonzero(frame) + 21).tolist() for frame in roll]


def test_parts_voices_chords_rests_and_divisions(tmp_path):
    tune = read_score(save(tmp_path / "a.mxl", "".join(MEASURES), f"<measure>{note('C', 2, 1)}</measure>"))
    roll = tune.frames(MusicOptions(), "")
    assert pitches(roll) == [[36, 60, 64], [36, 60, 64], [55, 66], [55], [], [70]]


@pytest.fixture
def package(tmp_path, monkeypatch):
    folder = tmp_path / "site" / "music21"
    (folder / "corpus" / "bach").mkdir(parents=True)
    (folder / "__init__.py").write_text("raise RuntimeError('not to be imported')")
    monkeypatch.syspath_prepend(folder.parent)
    monkeypatch.setenv("ELMAN_CACHE", str(tmp_path / "cache"))
    return folder / "corpus" / "bach"


def test_the_corpus_of_an_installed_package(package):
    for number in range(20):
        save(package / f"{number:02}.mxl", f"<measure>{note('C', 4, 1 + number)}</measure>")
    for _ in range(2):
        music = open_music("bach-chorales", MusicOptions())
        assert music.split("train").lengths.tolist() == [2 * n for n in range(1, 21) if n not in (9, 10, 19, 20)]
        assert music.split("valid").lengths.tolist() == [18, 38]
        assert music.split("test").lengths.tolist() == [20, 40]


def test_a_folder_of_ones_own_may_be_prepared_again(package, tmp_path):
    for number in range(20):
        save(package / f"{number:02}.mxl", f"<measure>{note('C', 4, 1 + number)}</measure>")
    for _ in range(2):
        prepare.prepare("bach-chorales", tmp_path / "own", keep=True)
    (path,) = (tmp_path / "own").iterdir()
    with zipfile.ZipFile(path) as opened:
        assert {one.date_time[0] for one in opened.infolist()} == {1980}, "the bytes depend on the rolls alone"


def test_unreadable_chorales_are_named(package):
    with pytest.raises(UserError, match="not installed; run: pip install --no-deps music21"):
        open_music("bach-chorales", MusicOptions())
    bad = package / "a.mxl"
    for write in (
        lambda: bad.write_bytes(b"no archive"),
        lambda: save(bad, "<measure>", container=CONTAINER),
        lambda: save(bad, container="<container/>"),
        lambda: save(bad, f"<measure>{note('H', 4, 1)}</measure>"),
        lambda: save(bad, f"<measure>{note('C', 4, 'long')}</measure>"),
        lambda: save(bad, f"<measure><backup><duration>1</duration></backup>{note('C', 4, 1)}</measure>"),
        lambda: bad.write_bytes(torn(save(bad, f"<measure>{note('C', 4, 1) * 50}</measure>", packed=True))),
    ):
        write()
        with pytest.raises(UserError, match=r"a\.mxl: not a readable MusicXML score"):
            open_music("bach-chorales", MusicOptions())
    save(bad, "<measure/>")
    with pytest.raises(UserError, match=r"a\.mxl: an empty piece"):
        open_music("bach-chorales", MusicOptions())
