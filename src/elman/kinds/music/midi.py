"""MIDI files as tunes and piano rolls, and back.

Files are read here, past what a tune does not need; they are written through mido (pip install elman[music]).
"""

import io
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from elman.errors import UserError, optional
from elman.files import write_atomic
from elman.kinds.music.midi_bytes import LONGEST, META, MOST_TICKS, DamagedError, Event, MidiBytes
from elman.kinds.music.pitches import Note, Roll
from elman.kinds.music.record import MusicOptions
from elman.kinds.music.tune import TEMPO, Metre, Tune, separated

if TYPE_CHECKING:
    import mido

SUFFIXES = (".mid", ".midi", ".kar", ".rmi")
TICKS = 120  # MIDI ticks per step in files that are written, unless a prompt needs finer ones
_DRUMS = 9
_TEMPO, _METRE = 0x51, 0x58
_OFF, _ON, _PROGRAM = 0x80, 0x90, 0xC0


class _Sounding(NamedTuple):
    """A note without an end so far: its tick, its velocity, and whether it ended one whose end may still come."""

    start: int
    velocity: int
    again: bool


def read_tune(path: Path) -> Tune:
    """The notes of a MIDI file: all tracks and channels except drums (channel 10), its tempos and its metre.

    Times are in quarter notes, independent of the tempo. The tune ends with its longest track; so does a note without
    an end. What is not needed may be damaged: `Tune.repairs` lists it. Raises UserError where the file is not
    MIDI, or its notes cannot be known.
    """
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise UserError(f"{path}: no such file; give a MIDI file") from None
    except OSError as error:
        raise UserError(f"{path}: not a readable MIDI file ({error.strerror}); give another") from None
    file = MidiBytes(data)
    try:
        kind, declared, division = file.header()
        if kind not in (0, 1):
            named = "type 2 (tracks one after another)" if kind == 2 else f"the unknown type {kind}"
            raise UserError(f"{path}: a MIDI file of {named}; save it as type 0 or 1")
        if not 0 < division <= MOST_TICKS:
            given = "has 0 ticks per quarter note" if division == 0 else "is in film frames"
            raise UserError(f"{path}: its time {given}; save it with a number of ticks per quarter note")
        tracks = list(file.tracks())
        if len(tracks) != declared:
            file.repairs[f"a count of tracks that is wrong ({declared}; {len(tracks)} are there)"] += 1
        if declared and not tracks:
            raise DamagedError("it ends too early")
    except DamagedError as error:
        raise UserError(f"{path}: not a readable MIDI file ({error}); give another") from None
    return _tune(tracks, division, file.repairs)


def _tune(tracks: list[list[Event]], division: int, repairs: Counter[str]) -> Tune:
    end = max((track[-1].time for track in tracks if track), default=0)
    found = [note for track in tracks for note in _notes(track)]
    if without := sum(stop is None for _, stop, _, _ in found):
        repairs["notes without an end"] += without
    notes = (
        Note(start / division, (end if stop is None else stop) / division, pitch, velocity)
        for start, stop, pitch, velocity in found
    )
    tempos, metres, programs, drums = dict[int, float](), dict[int, Metre](), set[int](), 0
    for time, status, data in (event for track in tracks for event in track):
        if status == META and data[0] == _TEMPO and len(data) == 4 and any(data[1:]):
            tempos.setdefault(time, 60e6 / int.from_bytes(data[1:]))
        elif status == META and data[0] == _METRE and len(data) >= 3 and data[1] and data[2] <= 6:
            metres.setdefault(time, (data[1], 1 << data[2]))
        elif status & 0xF0 == _PROGRAM and status & 0xF != _DRUMS:
            programs.add(data[0])
        drums += status == _ON | _DRUMS and data[1] > 0
    first = min(tempos, default=0)
    return Tune(
        tuple(notes),
        end / division,
        division,
        ((0.0, tempos.pop(first, TEMPO)), *((time / division, tempos[time]) for time in sorted(tempos))),
        tuple((time / division, metres[time]) for time in sorted(metres)),
        drums=drums,
        programs=tuple(sorted(programs)),
        repairs=tuple((what, count) for what, count in repairs.items() if count),
    )


def _notes(track: list[Event]) -> Iterator[tuple[int, int | None, int, int]]:
    """Notes as (start, end or None, pitch, velocity), in ticks; a note that begins again ends the one before.

    The end of that one may follow in the same tick, as where voices were merged; it does not end the new note.
    """
    sounding = dict[tuple[int, int], _Sounding]()
    for now, status, data in track:
        if status & 0xF0 not in (_OFF, _ON) or status & 0xF == _DRUMS:
            continue
        pitch, velocity = data
        key, begins = (status & 0xF, pitch), status & 0xF0 == _ON and velocity > 0
        before = sounding.pop(key, None)
        if before is not None and before.again and before.start == now and not begins:
            sounding[key] = before._replace(again=False)
            continue
        if before is not None:
            yield before.start, now, pitch, before.velocity
        if begins:
            sounding[key] = _Sounding(now, velocity, before is not None)
    yield from ((one.start, None, pitch, one.velocity) for (_, pitch), one in sounding.items())


def write_midi(path: Path, roll: Roll, options: MusicOptions, tempo: float = TEMPO) -> None:
    """Write a piano roll [steps, P] as a MIDI file of one track; `read_tune` restores the same notes.

    Adjoining steps of one pitch are one held note; `tempo` is in quarter notes per minute.

    Raises UserError where mido is not installed, or the file cannot be written.
    """
    assert roll.shape[1] == options.pitches
    write_tune(path, Tune.of_frames(roll, options), tempo)


def write_tune(path: Path, tune: Tune, tempo: float | None = None) -> None:
    """Write a tune as a MIDI file of one track, with its own tempos and metre, or at one tempo throughout.

    Raises UserError where mido is not installed, or the file cannot be written.
    """
    mido = require_mido()
    division = next(one for one in (tune.ticks * TICKS, tune.ticks, MOST_TICKS) if one <= MOST_TICKS)
    ticks = []
    for note in tune.notes:
        start = round(note.start * division)
        ticks.append(note._replace(start=start, end=max(start + 1, round(note.end * division))))
    strikes = list[tuple[int, bool, int, int]]()
    for note in separated(ticks):
        strikes += [(int(note.start), True, note.pitch, note.velocity), (int(note.end), False, note.pitch, 0)]
    messages = [
        (round(at * division), mido.MetaMessage("set_tempo", tempo=mido.bpm2tempo(one)))
        for at, one in tune.at_tempo(tempo).tempos
    ]
    for at, (beats, unit) in tune.metres:
        messages.append((round(at * division), mido.MetaMessage("time_signature", numerator=beats, denominator=unit)))
    for time, begins, pitch, velocity in sorted(strikes):
        kind = "note_on" if begins else "note_off"
        messages.append((time, mido.Message(kind, note=pitch, velocity=velocity)))
    track, now = mido.MidiTrack(), 0
    for time, message in sorted(messages, key=lambda one: one[0]):
        track += [*_pauses(time - now), message.copy(time=(time - now) % LONGEST)]
        now = time
    rest = max(0, round(tune.end * division) - now)
    track += [*_pauses(rest), mido.MetaMessage("end_of_track", time=rest % LONGEST)]
    buffer = io.BytesIO()
    mido.MidiFile(type=0, ticks_per_beat=division, tracks=[track]).save(file=buffer)
    write_atomic(path, buffer.getvalue())


def require_mido() -> Any:
    """The package mido; raises UserError where it is not installed."""
    return optional("mido", "MIDI files need the package mido: pip install 'elman[music]'")


def _pauses(ticks: int) -> "list[mido.MetaMessage]":
    """Empty texts that make up a pause which is too long for one message, except for its remainder."""
    import mido

    return [mido.MetaMessage("text", time=LONGEST) for _ in range(ticks // LONGEST)]
