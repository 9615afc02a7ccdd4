"""MIDI files as tunes and piano rolls, and back."""

from collections.abc import Iterator
from pathlib import Path

from elman.config.music import MusicOptions
from elman.data.music import events
from elman.data.music.events import Strike, Track
from elman.data.music.pitches import Note, Roll
from elman.data.music.tune import TEMPO, Tune, separated
from elman.errors import UserError
from elman.files import write_atomic

SUFFIXES = (".mid", ".midi")
TICKS = 120
"""MIDI ticks per step in files that are written, unless a prompt needs finer ones."""

_MOST_TICKS = 0x7FFF
"""The most ticks per quarter note."""

_DRUMS = 9
_MINUTE = 60_000_000
"""Microseconds."""


def read_midi(path: Path, options: MusicOptions) -> Roll:
    """The piano roll of a MIDI file, uint8 [steps, P], on the grid of `elman.data.music.pitches.quantise`.

    Raises UserError where the file is not MIDI or holds no notes, or a note is out of range.
    """
    return read_tune(path).frames(options, str(path))


def read_tune(path: Path) -> Tune:
    """The notes of a MIDI file: all tracks and channels except drums (channel 10), and its first tempo.

    Times are in quarter notes, independent of the tempo. The tune ends with its longest track; so does a note without
    an end. Raises UserError where the file is not MIDI.
    """
    try:
        file = events.decode(path.read_bytes())
    except FileNotFoundError:
        raise UserError(f"{path}: no such file; give a MIDI file") from None
    except (OSError, events.DamagedFileError) as error:
        raise UserError(f"{path}: not a readable MIDI file ({error}); give another") from None
    if file.kind == 2:
        raise UserError(f"{path}: a MIDI file of type 2 (tracks one after another); save it as type 0 or 1")
    if not 0 < file.division <= _MOST_TICKS:
        raise UserError(f"{path}: its time is in film frames; save it with a number of ticks per quarter note")
    end = max((track.end for track in file.tracks), default=0)
    notes = tuple(
        Note(start / file.division, (end if stop is None else stop) / file.division, pitch, velocity)
        for track in file.tracks
        for start, stop, pitch, velocity in _notes(track)
    )
    return Tune(notes, end / file.division, file.division, _MINUTE / file.tempo if file.tempo else TEMPO)


def write_midi(path: Path, roll: Roll, options: MusicOptions, tempo: float = TEMPO) -> None:
    """Write a piano roll [steps, P] as a MIDI file of one track; `read_midi` restores the same roll.

    Adjoining steps of one pitch are one held note; `tempo` is in quarter notes per minute.

    Raises UserError where the file cannot be written.
    """
    assert roll.shape[1] == options.pitches
    write_tune(path, Tune.of_frames(roll, options), tempo)


def write_tune(path: Path, tune: Tune, tempo: float) -> None:
    """Write a tune as a MIDI file of one track; raises UserError where the file cannot be written."""
    division = next(one for one in (tune.ticks * TICKS, tune.ticks, _MOST_TICKS) if one <= _MOST_TICKS)
    ticks = []
    for note in tune.notes:
        start = round(note.start * division)
        ticks.append(note._replace(start=start, end=max(start + 1, round(note.end * division))))
    strikes = list[tuple[int, bool, Strike]]()
    for note in separated(ticks):
        first, last = int(note.start), int(note.end)
        strikes.append((first, True, Strike(first, 0, note.pitch, note.velocity)))
        strikes.append((last, False, Strike(last, 0, note.pitch, 0)))
    ordered = [strike for _, _, strike in sorted(strikes)]
    end = max([round(tune.end * division), *(strike.time for strike in ordered)])
    write_atomic(path, events.encode(ordered, end, division, round(_MINUTE / tempo)))


def _notes(track: Track) -> Iterator[tuple[int, int | None, int, int]]:
    """Notes as (start, end or None, pitch, velocity), in ticks; a note that begins again ends the one before."""
    sounding = dict[tuple[int, int], Strike]()
    for strike in track.strikes:
        if strike.channel == _DRUMS:
            continue
        key = (strike.channel, strike.pitch)
        if key in sounding:
            before = sounding.pop(key)
            yield before.time, strike.time, before.pitch, before.velocity
        if strike.velocity:
            sounding[key] = strike
    yield from ((strike.time, None, strike.pitch, strike.velocity) for strike in sounding.values())
