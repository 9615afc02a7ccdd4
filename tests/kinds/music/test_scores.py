"""MusicXML scores of one's own, beside MIDI files."""

import numpy as np
import pytest

from elman.data.kinds import look
from elman.errors import UserError
from elman.kinds.music import proposal
from elman.kinds.music.corpus import open_music
from elman.kinds.music.pianoroll import read_score
from elman.kinds.music.record import MusicReading
from support.midi_bytes import midi, notes
from support.music_xml import note, save

MEASURE = "<measure><attributes><divisions>4</divisions></attributes>{}</measure>"
SIXTEENTHS = MEASURE.format("".join(note(step, 4, 1) for step in "CDEFGABC" * 4))
DRUM = "<note><unpitched/><duration>4</duration></note>"


def plain(path, measures):
    path.write_text(f"<?xml version='1.0'?><score-partwise><part>{measures}</part></score-partwise>")
    return path


def test_zipped_and_plain_scores_are_one_piece(tmp_path):
    zipped, written = save(tmp_path / "a.mxl", SIXTEENTHS), plain(tmp_path / "b.musicxml", SIXTEENTHS)
    assert read_score(zipped) == read_score(written)
    assert [(one.start, one.pitch) for one in read_score(zipped).notes[:3]] == [(0, 60), (0.25, 62), (0.5, 64)]
    assert [look(one).what for one in (zipped, written)] == ["a MusicXML score"] * 2
    frames = [open_music(one, MusicReading(steps_per_quarter=4)).split("train").frames for one in (zipped, written)]
    np.testing.assert_array_equal(*frames)
    assert len(frames[0]) == 26
    (chosen,) = proposal.proposals(look(written), written)
    assert chosen.load().data.steps_per_quarter == 4


def test_scores_and_midi_files_in_one_folder(tmp_path, capsys):
    folder = tmp_path / "tunes"
    (folder / "below").mkdir(parents=True)
    save(folder / "below" / "a.mxl", SIXTEENTHS)
    plain(folder / "below" / "b.musicxml", MEASURE.format(note("C", 4, 4) + DRUM))
    (folder / "below" / "c.mid").write_bytes(midi(notes([60, 62])))
    (folder / "below" / "d.musicxml").write_text("<score-partwise><part>")
    assert look(folder).what == "a folder of MIDI files"
    with pytest.raises(UserError, match=r"1 of 4 files of music cannot be read"):
        open_music(folder, MusicReading())
    assert "d.musicxml: not a readable MusicXML score" in capsys.readouterr().err
    corpus = open_music(folder, MusicReading(skip_unreadable=True, steps_per_quarter=4))
    assert sum(len(part.lengths) for part in corpus.splits.values()) == 3
    assert "1 note of drums are left out" in capsys.readouterr().err
