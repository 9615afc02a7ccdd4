"""Tunes: notes of a prompt that are struck again stay so, whatever follows them."""

import numpy as np
import pytest

from elman.kinds.music.midi import read_tune, write_midi, write_tune
from elman.kinds.music.pitches import Note
from elman.kinds.music.record import MusicOptions
from elman.kinds.music.tune import Tune, separated

OPTIONS = MusicOptions(steps_per_quarter=2)


def roll(*frames):
    found = np.zeros((len(frames), 88), np.uint8)
    for step, pitches in enumerate(frames):
        found[step, [pitch - 21 for pitch in pitches]] = 1
    return found


def times(tune):
    return sorted((note.start, note.end, note.pitch) for note in tune.notes)


def test_frames_become_held_notes():
    tune = Tune.of_frames(roll([60], [60, 64], [64], []), OPTIONS)
    assert times(tune) == [(0.0, 1.0, 60), (0.5, 1.5, 64)]
    assert tune.end == 2.0


def test_a_prompt_is_written_as_it_was(tmp_path):
    """Three strikes of one key are three notes in the file, where the frames alone would hold one."""
    strikes = tuple(Note(start, start + 0.4, 60, 100) for start in (0.0, 0.5, 1.0, 1.5))
    prompt = Tune((*strikes, Note(0.03, 2.0, 72, 33)), 2.0, 100, ((0.0, 90.0),))
    write_tune(tmp_path / "prompt.mid", prompt, prompt.tempo)
    read = read_tune(tmp_path / "prompt.mid")
    assert read.tempo == pytest.approx(90)
    np.testing.assert_allclose(sorted(read.notes), sorted(prompt.notes))
    whole = read.followed_by(Tune.of_frames(roll([60, 67], [60]), OPTIONS), 2.0)
    write_tune(tmp_path / "whole.mid", whole, 90)
    found = sorted(read_tune(tmp_path / "whole.mid").notes)
    held = (Note(1.5, 3.0, 60, 100), Note(2.0, 2.5, 67, 80))
    np.testing.assert_allclose(found, sorted([*strikes[:3], Note(0.03, 2.0, 72, 33), *held]))
    np.testing.assert_array_equal(
        read_tune(tmp_path / "whole.mid").frames(OPTIONS, "")[:4], prompt.frames(OPTIONS, "prompt")
    )


@pytest.mark.parametrize(
    ("prompt", "joined"),
    [
        (Note(0, 1, 60), True),
        (Note(0, 0.8, 60), True),
        (Note(0, 0.7, 60), False),
        (Note(0.6, 0.65, 60), True),
        (Note(0, 1, 62), False),
        (Note(0, 1.2, 60), True),
    ],
)
def test_a_note_that_sounds_in_the_last_frame_is_held(prompt, joined):
    before = Tune((prompt,), 1.0, 480)
    assert (before.frames(OPTIONS, "x")[1, 60 - 21] == 1) == joined
    whole = before.followed_by(Tune.of_frames(roll([60]), OPTIONS), 1.0)
    assert len(whole.notes) == (1 if joined else 2)
    assert max(note.end for note in whole.notes) == 1.5
    assert whole.end == 1.5


def test_notes_of_one_pitch_are_separated_where_they_are_struck():
    assert separated([Note(0, 4, 60, 50), Note(1, 2, 60, 90), Note(1, 3, 62)]) == [
        Note(0, 1, 60, 50),
        Note(1, 4, 60, 90),
        Note(1, 3, 62),
    ]
    assert separated([Note(0, 1, 60, 50), Note(0, 2, 60, 40)]) == [Note(0, 2, 60, 50)]
    assert separated([Note(0, 1, 60), Note(1, 2, 60)]) == [Note(0, 1, 60), Note(1, 2, 60)]


def test_the_bytes_of_a_roll(tmp_path):
    write_midi(tmp_path / "a.mid", roll([60], [60], [62]), OPTIONS)
    expected = "4d546864000000060000000100f04d54726b0000001c00ff510307a12000903c50"  # 240 ticks, 500,000 us, note on
    assert (tmp_path / "a.mid").read_bytes().hex().startswith(expected)
