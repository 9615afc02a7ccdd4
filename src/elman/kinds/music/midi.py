"""MIDI files as tunes and piano rolls, and back, through mido (pip install elman[music])."""

import io
import itertools
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, NamedTuple

from elman.errors import UserError
from elman.files import write_atomic
from elman.kinds.music.pitches import Note, Roll
from elman.kinds.music.record import MusicOptions
from elman.kinds.music.tune import TEMPO, Tune, separated

if TYPE_CHECKING:
    import mido

SUFFIXES = (".mid", ".midi")
TICKS = 120
"""MIDI ticks per step in files that are written, unless a prompt needs finer ones."""

_MOST_TICKS = 0x7FFF
"""The most ticks per quarter note."""

_LONGEST = (1 << 28) - 1
"""The most ticks before a message: four bytes of seven bits."""

_LONGEST_RUN = 4095
"""The most bytes in a row that are 128 or more; mido takes time quadratic in their number."""

_DRUMS = 9


class _DamagedFileError(ValueError):
    """Bytes that mido reads, or would read for long, and that are not those of a MIDI file."""


class _Sounding(NamedTuple):
    """A note without an end so far: its tick, its velocity, and whether it ended one whose end may still come."""

    start: int
    velocity: int
    again: bool


def read_midi(path: Path, options: MusicOptions) -> Roll:
    """The piano roll of a MIDI file, uint8 [steps, P], on the grid of `elman.kinds.music.pitches.quantise`.

    Raises UserError where mido is not installed, the file is not MIDI or holds no notes, or a note is out of range.
    """
    return read_tune(path).frames(options, str(path))


def read_tune(path: Path) -> Tune:
    """The notes of a MIDI file: all tracks and channels except drums (channel 10), and its first tempo.

    Times are in quarter notes, independent of the tempo. The tune ends with its longest track; so does a note without
    an end. Raises UserError where mido is not installed or the file is not MIDI.
    """
    require_mido()
    try:
        file = _decoded(path.read_bytes())
    except FileNotFoundError:
        raise UserError(f"{path}: no such file; give a MIDI file") from None
    except Exception as error:  # mido raises errors of many kinds, some of its own, where bytes are damaged
        raise UserError(f"{path}: not a readable MIDI file ({_reason(error)}); give another") from None
    if file.type not in (0, 1):
        kind = "type 2 (tracks one after another)" if file.type == 2 else f"the unknown type {file.type}"
        raise UserError(f"{path}: a MIDI file of {kind}; save it as type 0 or 1")
    ticks = file.ticks_per_beat
    if ticks <= 0:
        raise UserError(f"{path}: its time is in film frames; save it with a number of ticks per quarter note")
    end = max((sum(message.time for message in track) for track in file.tracks), default=0)
    notes = tuple(
        Note(start / ticks, (end if stop is None else stop) / ticks, pitch, velocity)
        for track in file.tracks
        for start, stop, pitch, velocity in _notes(track)
    )
    return Tune(notes, end / ticks, ticks, _tempo(file))


def write_midi(path: Path, roll: Roll, options: MusicOptions, tempo: float = TEMPO) -> None:
    """Write a piano roll [steps, P] as a MIDI file of one track; `read_midi` restores the same roll.

    Adjoining steps of one pitch are one held note; `tempo` is in quarter notes per minute.

    Raises UserError where mido is not installed, or the file cannot be written.
    """
    assert roll.shape[1] == options.pitches
    write_tune(path, Tune.of_frames(roll, options), tempo)


def write_tune(path: Path, tune: Tune, tempo: float) -> None:
    """Write a tune as a MIDI file of one track.

    Raises UserError where mido is not installed, or the file cannot be written.
    """
    mido = require_mido()
    division = next(one for one in (tune.ticks * TICKS, tune.ticks, _MOST_TICKS) if one <= _MOST_TICKS)
    ticks = []
    for note in tune.notes:
        start = round(note.start * division)
        ticks.append(note._replace(start=start, end=max(start + 1, round(note.end * division))))
    strikes = list[tuple[int, bool, int, int]]()
    for note in separated(ticks):
        strikes += [(int(note.start), True, note.pitch, note.velocity), (int(note.end), False, note.pitch, 0)]
    track, now = mido.MidiTrack([mido.MetaMessage("set_tempo", tempo=mido.bpm2tempo(tempo))]), 0
    for time, begins, pitch, velocity in sorted(strikes):
        kind = "note_on" if begins else "note_off"
        track += [*_pauses(time - now), mido.Message(kind, note=pitch, velocity=velocity, time=(time - now) % _LONGEST)]
        now = time
    rest = max(0, round(tune.end * division) - now)
    track += [*_pauses(rest), mido.MetaMessage("end_of_track", time=rest % _LONGEST)]
    buffer = io.BytesIO()
    mido.MidiFile(type=0, ticks_per_beat=division, tracks=[track]).save(file=buffer)
    write_atomic(path, buffer.getvalue())


def require_mido() -> ModuleType:
    """The package mido; raises UserError where it is not installed."""
    try:
        import mido
    except ImportError:
        raise UserError("MIDI files need the package mido: pip install 'elman[music]'") from None
    return mido


def _decoded(data: bytes) -> "mido.MidiFile":
    """The messages of a MIDI file; damaged bytes raise errors of many kinds."""
    import mido

    for run in re.finditer(rb"[\x80-\xff]+", data):
        if len(run[0]) > _LONGEST_RUN:
            raise _DamagedFileError(f"at byte {run.start()}: {len(run[0]):,} bytes of 128 or more in a row")
    file = mido.MidiFile(file=io.BytesIO(data))
    messages = [message for track in file.tracks for message in track]
    if unknown := {message.type_byte for message in messages if message.type == "unknown_meta"}:
        _declare(unknown)
        return _decoded(data)
    if any(message.time > _LONGEST for message in messages):
        raise _DamagedFileError(f"a pause of more than {_LONGEST:,} ticks")
    return file


def _declare(kinds: set[int]) -> None:
    """Have mido read meta messages of further types: it takes the time before those that it does not know as 0."""
    from mido.midifiles.meta import MetaSpec_sequencer_specific, add_meta_spec

    for kind in kinds:
        known = {"type_byte": kind, "type": f"unknown_meta_{kind}"}
        add_meta_spec(type("MetaSpec_unknown", (MetaSpec_sequencer_specific,), known))


def _reason(error: Exception) -> str:
    """What is wrong with a file, in a few words."""
    if isinstance(error, EOFError):
        return "it ends too early"
    if isinstance(error, OSError | _DamagedFileError):
        return textwrap.shorten(str(error), 120, placeholder=" ...")
    return f"a message of a wrong length or with an impossible value: {type(error).__name__}"


def _tempo(file: "mido.MidiFile") -> float:
    """The tempo that comes first in time, in quarter notes per minute; of several at once that of the first track."""
    import mido

    found = list[tuple[int, int]]()
    for track in file.tracks:
        ticks = itertools.accumulate(message.time for message in track)
        found += [(at, one.tempo) for at, one in zip(ticks, track, strict=True) if one.type == "set_tempo"]
    _, first = min(found, key=lambda one: one[0], default=(0, 0))
    return mido.tempo2bpm(first) if first else TEMPO


def _notes(track: "mido.MidiTrack") -> Iterator[tuple[int, int | None, int, int]]:
    """Notes as (start, end or None, pitch, velocity), in ticks; a note that begins again ends the one before.

    The end of that one may follow in the same tick, as where voices were merged; it does not end the new note.
    """
    now, sounding = 0, dict[tuple[int, int], _Sounding]()
    for message in track:
        now += message.time
        if message.type not in ("note_on", "note_off") or message.channel == _DRUMS:
            continue
        key, begins = (message.channel, message.note), message.type == "note_on" and message.velocity > 0
        before = sounding.pop(key, None)
        if before is not None and before.again and before.start == now and not begins:
            sounding[key] = before._replace(again=False)
            continue
        if before is not None:
            yield before.start, now, message.note, before.velocity
        if begins:
            sounding[key] = _Sounding(now, message.velocity, before is not None)
    yield from ((one.start, None, pitch, one.velocity) for (_, pitch), one in sounding.items())


def _pauses(ticks: int) -> "list[mido.MetaMessage]":
    """Empty texts that make up a pause which is too long for one message, except for its remainder."""
    import mido

    return [mido.MetaMessage("text", time=_LONGEST) for _ in range(ticks // _LONGEST)]
