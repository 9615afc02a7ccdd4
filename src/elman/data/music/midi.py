"""MIDI files as piano rolls and back, through mido (pip install elman[music])."""

import io
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np

from elman.config.steps import MusicOptions
from elman.data.music.pitches import Note, Pitches, Roll, quantise
from elman.errors import UserError
from elman.files import write_atomic

if TYPE_CHECKING:
    import mido

TICKS = 120
"""MIDI ticks per step in files that are written."""

_DRUMS = 9


def read_midi(path: Path, options: MusicOptions) -> Roll:
    """The piano roll of a MIDI file, uint8 [steps, P].

    All tracks and channels except drums (channel 10), on the grid of `elman.data.music.pitches.quantise`; times are in
    quarter notes, independent of the tempo. The piece ends with its longest track; so does a note without an end.

    Raises UserError where mido is not installed, the file is not MIDI or holds no notes, or a note is out of range.
    """
    mido = require_mido()
    from mido.midifiles.meta import KeySignatureError

    try:
        file = mido.MidiFile(path)
        ticks, kind = file.ticks_per_beat, file.type
        notes = [note for track in file.tracks for note in _notes(track)]
        end = max((sum(message.time for message in track) for track in file.tracks), default=0)
    except FileNotFoundError:
        raise UserError(f"{path}: no such file; give a MIDI file") from None
    except (OSError, EOFError, ValueError, LookupError, TypeError, KeySignatureError) as error:
        raise UserError(
            f"{path}: not a readable MIDI file ({str(error) or type(error).__name__}); give another"
        ) from None
    if kind == 2:
        raise UserError(f"{path}: a MIDI file of type 2 (tracks one after another); save it as type 0 or 1")
    if ticks <= 0 or ticks >= 0x8000:
        raise UserError(f"{path}: its time is in film frames; save it with a number of ticks per quarter note")
    beats = (Note(start / ticks, (end if stop is None else stop) / ticks, pitch) for start, stop, pitch in notes)
    return quantise(beats, end / ticks, Pitches(options.pitches), options.steps_per_quarter, str(path))


def write_midi(path: Path, roll: Roll, options: MusicOptions, tempo: float = 120.0) -> None:
    """Write a piano roll [steps, P] as a MIDI file of one track; `read_midi` restores the same roll.

    Adjoining steps of one pitch are one held note; `tempo` is in quarter notes per minute.

    Raises UserError where mido is not installed, or the file cannot be written.
    """
    mido = require_mido()
    assert roll.shape[1] == options.pitches
    track = mido.MidiTrack()
    track.append(mido.MetaMessage("set_tempo", tempo=mido.bpm2tempo(tempo)))
    now = 0
    for step, kind, pitch in _changes(roll, Pitches(options.pitches).lowest):
        velocity = 80 if kind == "note_on" else 0
        track.append(mido.Message(kind, note=pitch, velocity=velocity, time=(step - now) * TICKS))
        now = step
    track.append(mido.MetaMessage("end_of_track", time=(len(roll) - now) * TICKS))
    file = mido.MidiFile(type=0, ticks_per_beat=TICKS * options.steps_per_quarter)
    file.tracks.append(track)
    buffer = io.BytesIO()
    file.save(file=buffer)
    write_atomic(path, buffer.getvalue())


def _notes(track: "mido.MidiTrack") -> Iterator[tuple[int, int | None, int]]:
    """Notes as (start, end or None, pitch), in ticks; a note that begins again ends the one before."""
    now, sounding = 0, dict[tuple[int, int], int]()
    for message in track:
        now += message.time
        if message.type not in ("note_on", "note_off") or message.channel == _DRUMS:
            continue
        key = (message.channel, message.note)
        if key in sounding:
            yield sounding.pop(key), now, message.note
        if message.type == "note_on" and message.velocity:
            sounding[key] = now
    yield from ((start, None, pitch) for (_, pitch), start in sounding.items())


def _changes(roll: Roll, lowest: int) -> Iterator[tuple[int, str, int]]:
    """Where notes end and begin, in the order of time, ends before beginnings."""
    silence = np.zeros((1, roll.shape[1]), np.int8)
    steps = np.diff(np.concatenate([silence, roll.astype(np.int8), silence]), axis=0)
    for step in np.flatnonzero(steps.any(axis=1)):
        for change, kind in ((-1, "note_off"), (1, "note_on")):
            for index in np.flatnonzero(steps[step] == change):
                yield int(step), kind, int(index) + lowest


def require_mido() -> ModuleType:
    """The package mido; raises UserError where it is not installed."""
    try:
        import mido
    except ImportError:
        raise UserError("MIDI files need the package mido: pip install 'elman[music]'") from None
    return mido
