"""The grid that suits MIDI files, what a frame has no place for, and prompts whose tempo and metre go on."""

import numpy as np
import pytest

from elman.cli import main
from elman.data.kinds import look
from elman.kinds.music import proposal
from elman.kinds.music.corpus import open_music
from elman.kinds.music.midi import read_tune
from elman.kinds.music.reading import Onsets
from elman.kinds.music.record import MusicReading
from elman.kinds.music.sound import RATE, render
from support.midi_bytes import meta, midi, note, notes

SCALE = [60, 62, 64, 65, 67, 69, 71, 72] * 4


def proposed(path):
    (chosen,) = proposal.proposals(look(path), path)
    return chosen


@pytest.mark.parametrize(
    ("ticks", "steps", "off"),
    [(480, 2, 0), (240, 2, 0), (120, 4, 0.5), (160, 3, 2 / 3), (60, 8, 0.75), (80, 6, 2 / 3), (40, 12, 0.5)],
)
def test_the_grid_follows_the_notes(tmp_path, ticks, steps, off):
    """Of quarters, eighths, sixteenths, triplets and shorter ones; off the eighths are so many."""
    path = tmp_path / "a.mid"
    path.write_bytes(midi(notes(SCALE, ticks)))
    chosen, onsets = proposed(path), Onsets()
    assert chosen.load().data.steps_per_quarter == steps
    assert ("data.steps_per_quarter=" in str(chosen.settings)) == (steps != 2)
    onsets.add(read_tune(path))
    assert onsets.off[2] / onsets.size == pytest.approx(off, abs=0.05)
    assert onsets.off[steps] == onsets.merged[steps] == 0


def test_few_short_notes_do_not_choose_the_grid_and_free_playing_has_none(tmp_path):
    (tmp_path / "few.mid").write_bytes(midi(notes(SCALE * 3, 240) + notes([60, 62], 120)))
    assert proposed(tmp_path / "few.mid").load().data.steps_per_quarter == 2
    draw = np.random.default_rng(0)
    free = b"".join(note(60, int(ticks)) for ticks in draw.integers(90, 400, 200))
    (tmp_path / "free.mid").write_bytes(midi(free))
    chosen = proposed(tmp_path / "free.mid")
    assert chosen.load().data.steps_per_quarter == 4
    assert "of 200 onsets are between them" in chosen.reasons[-1]


def test_pitches_are_proposed_by_the_notes(tmp_path):
    for name, pitch in (("a", 60), ("b", 12), ("c", 62)):
        (tmp_path / f"{name}.mid").write_bytes(midi(notes([pitch] * 20)))
    assert proposed(tmp_path).load().data.pitches == 93
    (tmp_path / "b.mid").write_bytes(b"no music")
    assert proposed(tmp_path).load().data.pitches == 88


def test_onsets_off_the_grid_are_said(tmp_path, capsys):
    path = tmp_path / "sixteenths.mid"
    path.write_bytes(midi(notes(SCALE, 120)))
    assert len(open_music(path, MusicReading(steps_per_quarter=4)).split("train").frames) == 26
    assert capsys.readouterr().err == ""
    open_music(path, MusicReading())
    assert capsys.readouterr().err == (
        f"elman: {path}: 50.0% of 32 onsets fall between the steps, of which a quarter note has 2, and 15 coincide with"
        " others; data.steps_per_quarter = 4 suits them\n"
    )


def test_what_a_frame_does_not_hold_is_counted(tmp_path, capsys):
    drums = notes([36] * 7, channel=9)
    loud = note(60, velocity=100) + notes(SCALE)
    (tmp_path / "a.mid").write_bytes(midi(b"\0\xc0\x19" + loud, drums))
    (tmp_path / "b.mid").write_bytes(midi(meta(0x51, 7, 161, 32) + meta(0x58, 3, 2, 24, 8) + notes(SCALE)))
    slower = meta(0x51, 15, 66, 64)
    (tmp_path / "c.mid").write_bytes(midi(meta(0x51, 7, 161, 32) + notes(SCALE) + slower + notes(SCALE) + drums))
    open_music(tmp_path, MusicReading())
    assert capsys.readouterr().err.splitlines() == [
        f"elman: {tmp_path}: 14 notes of drums are left out, 129 others read",
        f"elman: {tmp_path}: a frame holds the notes that sound; left out are velocities (1 of 3"
        " files), instruments (1 of 3 files), metre (1 of 3 files), changes of tempo (1 of 3 files)",
    ]


@pytest.fixture
def prompt(tmp_path):
    """Two bars of 3/4 at 120, and one at 60 and in 6/8; drums."""
    path = tmp_path / "prompt.mid"
    change = meta(0x51, 15, 66, 64) + meta(0x58, 6, 3, 24, 8)
    path.write_bytes(
        midi(
            meta(0x51, 7, 161, 32) + meta(0x58, 3, 2, 24, 8) + notes([60, 62, 64, 65, 67, 69], 480)
            + change + notes([71, 72, 74], 480),
            notes([36, 38], 480, channel=9),
        )
    )  # fmt: skip
    return path


def test_a_prompt_keeps_its_changes_of_tempo_and_its_metre(trained, prompt, tmp_path, capsys):
    out = tmp_path / "whole.mid"
    call = ["compose", str(trained), "--prompt-midi", str(prompt), "--steps", "8", "--seed", "1", "--out", str(out)]
    assert main(call) == 0
    said = capsys.readouterr().err
    assert f"{prompt}: 2 notes of drums are left out, 9 others read" in said
    assert "a frame holds" not in said
    whole = read_tune(out)
    assert whole.tempos == ((0.0, 120.0), (6.0, 60.0))
    assert whole.metres == ((0.0, (3, 4)), (6.0, (6, 8)))
    assert whole.end == 9 + 8 / 2
    assert main([*call, "--tempo", "90"]) == 0
    again = read_tune(out)
    assert (again.tempo, len(again.tempos)) == (pytest.approx(90), 1)
    assert again.metres == whole.metres


def test_sound_follows_the_tempos(prompt):
    tune = read_tune(prompt)
    assert tune.seconds(0, 9) == 6 * 0.5 + 3
    assert tune.seconds(5, 7) == 0.5 + 1
    assert tune.seconds(7, 7) == 0
    assert len(render(tune)) == pytest.approx((6 + 0.15) * RATE, abs=2)
    assert len(render(tune, 120)) == pytest.approx((4.5 + 0.15) * RATE, abs=2)
