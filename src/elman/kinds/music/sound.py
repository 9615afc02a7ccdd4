"""A tune as sound: every note a few decaying partials, mixed and written as a WAV file of one channel."""

import wave
from pathlib import Path

import numpy as np
import numpy.typing as npt

from elman.errors import UserError
from elman.files import replacing
from elman.kinds.music.pitches import Note
from elman.kinds.music.tune import Tune, separated

RATE = 44_100  # samples per second, of 16 bits
LONGEST = 20.0  # minutes of sound at most, which are 106 MB
PEAK = 0.9  # the largest sample of a tune, of 1, so that none is cut off
_PARTIALS = ((1, 1.0), (2, 0.45), (3, 0.22), (4, 0.12), (5, 0.07), (6, 0.04))
"""Multiples of a note's frequency, and their amplitudes at its beginning."""

_ATTACK, _RELEASE, _DECAY = 0.008, 0.15, 0.9
"""Seconds in which a note appears and disappears, and the rate (per second) at which a held one fades."""

_AUDIBLE = 10.0  # seconds after which a held note has faded by 78 dB, and ends
Sound = npt.NDArray[np.float32]


def require_short(minutes: float) -> None:
    """Raises UserError where a tune of these minutes is too long to be written as sound."""
    if minutes > LONGEST:
        raise UserError(
            f"a WAV file may have {LONGEST:g} minutes, and this would be {minutes:,.0f}; give fewer --steps, or write"
            " MIDI (.mid)"
        )


def render(tune: Tune, tempo: float | None = None) -> Sound:
    """The sound of a tune, at most `PEAK` in size; the same on every call.

    It has its own tempos, or one of `tempo` quarter notes per minute throughout.
    """
    tune = tune.at_tempo(tempo)
    sound = np.zeros(round((tune.seconds(0, tune.end) + _RELEASE) * RATE) + 1, np.float32)
    for note in separated(tune.notes):
        start, voice = round(tune.seconds(0, note.start) * RATE), _voice(note, tune.seconds(note.start, note.end))
        part = sound[start : start + len(voice)]
        part += voice[: len(part)]
    peak = np.abs(sound).max()
    return sound * np.float32(PEAK / peak) if peak else sound


def write_wav(path: Path, tune: Tune, tempo: float | None = None) -> None:
    """Write a tune as a WAV file (PCM, one channel, 16 bits, `RATE`), at its own tempos or at one.

    Raises UserError where the tune is too long, or the file cannot be written.
    """
    tune = tune.at_tempo(tempo)
    require_short(tune.seconds(0, tune.end) / 60)
    samples = np.round(render(tune) * 32767).astype("<i2")
    with replacing(path) as temporary, wave.open(str(temporary), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(RATE)
        file.writeframes(samples.tobytes())


def _voice(note: Note, seconds: float) -> Sound:
    """The sound of one note, which fades within `_RELEASE` after its end; high partials fade faster."""
    seconds = min(seconds, _AUDIBLE)
    time = np.arange(round((seconds + _RELEASE) * RATE)) / RATE
    frequency = 440 * 2 ** ((note.pitch - 69) / 12)
    sound = np.zeros_like(time)
    for multiple, amplitude in _PARTIALS:
        if multiple * frequency < 0.45 * RATE:
            sound += amplitude * np.exp(-_DECAY * multiple * time) * np.sin(2 * np.pi * multiple * frequency * time)
    rising, falling = np.clip(time / _ATTACK, 0, 1), np.clip((seconds + _RELEASE - time) / _RELEASE, 0, 1)
    return (sound * _smooth(rising) * _smooth(falling) * note.velocity / 127).astype(np.float32)


def _smooth(ramp: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """A ramp from 0 to 1 with level ends."""
    return ramp * ramp * (3 - 2 * ramp)
