"""Sound: the pitch, the size and the times of notes, measured in the samples of a WAV file."""

import wave

import numpy as np
import pytest

from elman.errors import UserError
from elman.kinds.music.pitches import Note
from elman.kinds.music.sound import PEAK, RATE, render, write_wav
from elman.kinds.music.tune import Tune


def tune(*notes, end=None):
    return Tune(notes, end or max(note.end for note in notes), 480)


def frequency(sound):
    """The frequency of the strongest component."""
    spectrum = np.abs(np.fft.rfft(sound * np.hanning(len(sound))))
    return spectrum.argmax() * RATE / len(sound)


@pytest.mark.parametrize(("pitch", "hertz"), [(69, 440.0), (60, 261.63), (33, 55.0), (105, 3520.0)])
def test_a_note_has_the_frequency_of_its_pitch(pitch, hertz):
    sound = render(tune(Note(0, 4, pitch)), 120)
    assert frequency(sound[:RATE]) == pytest.approx(hertz, abs=1)


@pytest.mark.parametrize(("pitch", "quarters"), [(69, 1), (100, 3), (108, 40)])
def test_a_note_is_six_decaying_partials(pitch, quarters):
    """The held ones end after 10 seconds; those above .45 of the rate are left out."""
    sound, seconds = render(tune(Note(0, quarters, pitch)), 120).astype(np.float64), min(quarters / 2, 10)
    time, f = np.arange(round((seconds + 0.15) * 44_100)) / 44_100, 440 * 2 ** ((pitch - 69) / 12)
    partials = [(n, a) for n, a in enumerate((1, 0.45, 0.22, 0.12, 0.07, 0.04), start=1) if n * f < 19_845]
    wave = sum(a * np.exp(-0.9 * n * time) * np.sin(2 * np.pi * n * f * time) for n, a in partials)
    for ramp in (np.minimum(time / 0.008, 1), np.clip((seconds + 0.15 - time) / 0.15, 0, 1)):
        wave = wave * (3 * ramp**2 - 2 * ramp**3)
    np.testing.assert_allclose(sound[: len(wave)], 0.9 * wave / np.abs(wave).max(), atol=2e-5)
    assert not sound[len(wave) :].any()


def test_notes_begin_and_end_where_they_should():
    sound = render(tune(Note(1, 2, 60), end=4), 120)
    assert len(sound) == pytest.approx(2.15 * RATE, abs=2)
    loud = np.flatnonzero(np.abs(sound) > 1e-3)
    assert loud[0] / RATE == pytest.approx(0.5, abs=0.01)
    assert 1.0 < loud[-1] / RATE < 1.16
    assert np.abs(np.diff(sound)).max() < 0.25, "no click"


def test_chords_are_not_cut_off_and_repeated_notes_are_heard():
    chord = render(tune(*(Note(0, 4, pitch, 127) for pitch in range(40, 80, 2))), 120)
    assert np.abs(chord).max() == pytest.approx(PEAK)
    held, struck = render(tune(Note(0, 2, 60)), 120), render(tune(Note(0, 1, 60), Note(1, 2, 60)), 120)
    at = slice(round(0.51 * RATE), round(0.6 * RATE))
    assert np.abs(struck[at]).max() > 1.2 * np.abs(held[at]).max()


def test_the_file_is_pcm_of_16_bits_and_the_same_each_time(tmp_path):
    piece = tune(Note(0, 1, 60), Note(0, 2, 64, 30))
    for name in ("a.wav", "b.wav"):
        write_wav(tmp_path / name, piece, 90)
    assert (tmp_path / "a.wav").read_bytes() == (tmp_path / "b.wav").read_bytes()
    with wave.open(str(tmp_path / "a.wav")) as file:
        assert (file.getnchannels(), file.getsampwidth(), file.getframerate()) == (1, 2, 44100)
        samples = np.frombuffer(file.readframes(file.getnframes()), "<i2")
    np.testing.assert_array_equal(samples, np.round(render(piece, 90) * 32767))


def test_silence_and_length(tmp_path):
    assert not render(tune(end=1), 120).any()
    with pytest.raises(UserError, match="a WAV file may have 20 minutes, and this would be 1,000"):
        write_wav(tmp_path / "a.wav", tune(end=120_000), 120)
    assert not list(tmp_path.iterdir())
