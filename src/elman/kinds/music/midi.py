"""MIDI files as tunes and piano rolls, and back.

Files are read here, past what a tune does not need; they are written through mido (pip install elman[music]).
"""

import io
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, NamedTuple

from elman.errors import UserError, counted
from elman.files import write_atomic
from elman.kinds.music.pitches import Note, Roll
from elman.kinds.music.record import MusicOptions
from elman.kinds.music.tune import TEMPO, Metre, Tune, separated

if TYPE_CHECKING:
    import mido

SUFFIXES = (".mid", ".midi", ".kar", ".rmi")
TICKS = 120
"""MIDI ticks per step in files that are written, unless a prompt needs finer ones."""

_MOST_TICKS = 0x7FFF
"""The most ticks per quarter note."""

_LONGEST = (1 << 28) - 1
"""The most ticks before a message: four bytes of seven bits."""

_TOO_LONG = "a message of more than {:,} bytes"

_DRUMS = 9

_META, _TEMPO, _METRE, _END = 0xFF, 0x51, 0x58, 0x2F
_OFF, _ON, _PROGRAM = 0x80, 0x90, 0xC0
_LENGTHS = {0x80: 2, 0x90: 2, 0xA0: 2, 0xB0: 2, 0xC0: 1, 0xD0: 1, 0xE0: 2}
_SYSTEM_LENGTHS = {0xF1: 1, 0xF2: 2, 0xF3: 1, 0xF6: 0} | dict.fromkeys((0xF8, 0xFA, 0xFB, 0xFC, 0xFE), 0)
"""Bytes of data after the status byte of a message."""


class _DamagedError(ValueError):
    """Bytes without which the notes cannot be known."""


class _Event(NamedTuple):
    """A message: its time in ticks from the beginning, its status byte, its data (of a meta message its type first)."""

    time: int
    status: int
    data: bytes


class _Sounding(NamedTuple):
    """A note without an end so far: its tick, its velocity, and whether it ended one whose end may still come."""

    start: int
    velocity: int
    again: bool


def read_midi(path: Path, options: MusicOptions) -> Roll:
    """The piano roll of a MIDI file, uint8 [steps, P], on the grid of `elman.kinds.music.pitches.quantise`.

    Raises UserError where the file is not MIDI or holds no notes, or a note is out of range.
    """
    return read_tune(path).frames(options, str(path))


def read_tune(path: Path) -> Tune:
    """The notes of a MIDI file: all tracks and channels except drums (channel 10), its tempos and its metre.

    Times are in quarter notes, independent of the tempo. The tune ends with its longest track; so does a note without
    an end. What is not needed may be damaged: `Tune.repairs` says what was. Raises UserError where the file is not
    MIDI, or its notes cannot be known.
    """
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise UserError(f"{path}: no such file; give a MIDI file") from None
    except OSError as error:
        raise UserError(f"{path}: not a readable MIDI file ({error.strerror}); give another") from None
    file = _Bytes(data)
    try:
        kind, declared, division = file.header()
        if kind not in (0, 1):
            named = "type 2 (tracks one after another)" if kind == 2 else f"the unknown type {kind}"
            raise UserError(f"{path}: a MIDI file of {named}; save it as type 0 or 1")
        if not 0 < division <= _MOST_TICKS:
            raise UserError(f"{path}: its time is in film frames; save it with a number of ticks per quarter note")
        tracks = list(file.tracks())
        if len(tracks) != declared:
            file.repairs[f"a count of tracks that is wrong ({declared}; {len(tracks)} are there)"] += 1
        if declared and not tracks:
            raise _DamagedError("it ends too early")
    except _DamagedError as error:
        raise UserError(f"{path}: not a readable MIDI file ({error}); give another") from None
    return _tune(tracks, division, file.repairs)


class _Bytes:
    """The bytes of a file that are read from one place to the next, and what was wrong with them.

    `repairs` counts what was damaged, in words, and could be read past.
    """

    def __init__(self, data: bytes) -> None:
        self.data, self.at, self.repairs = data, 0, Counter[str]()

    def byte(self) -> int:
        if self.at >= len(self.data):
            raise _DamagedError("it ends too early")
        self.at += 1
        return self.data[self.at - 1]

    def take(self, size: int) -> bytes:
        if size > len(self.data) - self.at:
            raise _DamagedError("it ends too early")
        self.at += size
        return self.data[self.at - size : self.at]

    def number(self, too_large: str) -> int:
        """A number in bytes of seven bits, the last of which is below 128."""
        value, byte = 0, 0x80
        while byte >= 0x80:
            byte = self.byte()
            value = value << 7 | byte & 0x7F
            if value > _LONGEST:
                raise _DamagedError(too_large.format(_LONGEST))
        return value

    def header(self) -> tuple[int, int, int]:
        """The type of the file, the number of its tracks as declared, and the division of a quarter note."""
        self.at = self.data.find(b"MThd", 0, 4096)  # in RIFF, or after the header of an old file system
        if self.at < 0:
            raise _DamagedError("MThd not found. Probably not a MIDI file")
        if self.at and not self.data.startswith(b"RIFF"):
            self.repairs[f"{counted(self.at, 'byte')} before the header"] += 1
        self.at += 4
        size, fields = int.from_bytes(self.take(4)), self.take(6)
        if size != 6 and self.data.startswith(b"MTrk", self.at):
            self.repairs["a header of a wrong length"] += 1
        elif size != 6:
            self.at = min(self.at - 6 + size, len(self.data))
        kind, tracks, division = (int.from_bytes(fields[place : place + 2]) for place in (0, 2, 4))
        return kind, tracks, division

    def tracks(self) -> Iterator[list[_Event]]:
        """The messages of each track; other chunks are passed over."""
        riff = self.data.startswith(b"RIFF")
        while self.at < len(self.data):
            size = int.from_bytes(self.data[self.at + 4 : self.at + 8])
            if self.data.startswith(b"MTrk", self.at):
                self.take(8)
                yield self._track(self.at + size)
            elif self._is_chunk(self.at) and self._is_chunk(self.at + 8 + size):
                name = self.data[self.at : self.at + 4].decode("ascii")
                self.repairs[f"a chunk {name.strip()}, which is no track"] += 1
                self.at += 8 + size
            else:
                after = self.data.find(b"MTrk", self.at)
                stop = len(self.data) if after < 0 else after
                if not riff or after >= 0:
                    self.repairs[f"{counted(stop - self.at, 'byte')} that are in no track"] += 1
                self.at = stop

    def _is_chunk(self, at: int) -> bool:
        """Whether a chunk, or the end of the file, begins at a place."""
        if at >= len(self.data) or self.data.startswith(b"MTrk", at):
            return at <= len(self.data)
        size = int.from_bytes(self.data[at + 4 : at + 8])
        return bool(re.match(rb"[A-Za-z ]{4}", self.data[at : at + 4])) and at + 8 + size <= len(self.data)

    def _track(self, stop: int) -> list[_Event]:
        """The messages of a track that is declared to end at `stop`: up to its last message, or without one to there.

        Where the declared end is wrong, the last message decides.
        """
        events = list[_Event]()
        whole: int | None = None
        try:
            for event in self._events(0, None):
                if event is not None:
                    events.append(event)
                    if event.status == _META and event.data[0] == _END:
                        break
                if self.at == stop:
                    if self._is_chunk(stop):
                        return events
                    whole = len(events)
        except _DamagedError:
            if whole is None:
                raise
            self.at = stop
            return events[:whole]
        if self.at == stop:
            return events
        if self.at < stop <= len(self.data) and not self.data.startswith(b"MTrk", self.at):
            return events + self._after_the_end(events[-1].time, stop)
        self.repairs["a track of a wrong length"] += 1
        return events

    def _after_the_end(self, now: int, stop: int) -> list[_Event]:
        """What stands between the last message of a track and its declared end, if it is messages."""
        begun, events = self.at, list[_Event]()
        try:
            for event in self._events(now, stop):
                events += [event] if event is not None else []
        except _DamagedError:
            events = []
        if events and self.at == stop and self._is_chunk(stop):
            self.repairs["messages after the end of a track"] += 1
            return events
        after = self.data.find(b"MTrk", begun, stop + 3)
        self.at = stop if after < 0 else after
        self.repairs[f"{counted(self.at - begun, 'byte')} that are in no track"] += 1
        return []

    def _events(self, now: int, stop: int | None) -> Iterator[_Event | None]:
        """Messages one after another, to a place if one is given; first None, where none has been read yet."""
        running = 0
        yield None
        while stop is None or self.at < stop:
            now += self.number("a pause of more than {:,} ticks")
            status = self.byte()
            if status < 0x80:
                if not running:
                    raise _DamagedError("running status without last_status")
                self.at -= 1
                status = running
            elif status < 0xF0:
                running = status
            if status == _META:
                kind = self.take(1)
                yield _Event(now, status, kind + self.take(self.number(_TOO_LONG)))
            elif status in (0xF0, 0xF7):
                yield _Event(now, status, self.take(self.number(_TOO_LONG)))
            elif status >= 0xF0:
                if status not in _SYSTEM_LENGTHS:
                    raise _DamagedError(f"undefined status byte 0x{status:02x}")
                yield _Event(now, status, self.take(_SYSTEM_LENGTHS[status]))
            else:
                data = self.take(_LENGTHS[status & 0xF0])
                if max(data) > 0x7F:
                    if status & 0xF0 in (_OFF, _ON):
                        raise _DamagedError("data byte must be in range 0..127")
                    self.repairs["a value above 127"] += 1
                yield _Event(now, status, data)


def _tune(tracks: list[list[_Event]], division: int, repairs: Counter[str]) -> Tune:
    """The tune of some tracks."""
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
        if status == _META and data[0] == _TEMPO and len(data) == 4 and any(data[1:]):
            tempos.setdefault(time, 60e6 / int.from_bytes(data[1:]))
        elif status == _META and data[0] == _METRE and len(data) >= 3 and data[1] and data[2] <= 6:
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
        repairs=tuple(repairs.items()),
    )


def _notes(track: list[_Event]) -> Iterator[tuple[int, int | None, int, int]]:
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
    """Write a piano roll [steps, P] as a MIDI file of one track; `read_midi` restores the same roll.

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
    division = next(one for one in (tune.ticks * TICKS, tune.ticks, _MOST_TICKS) if one <= _MOST_TICKS)
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
        track += [*_pauses(time - now), message.copy(time=(time - now) % _LONGEST)]
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


def _pauses(ticks: int) -> "list[mido.MetaMessage]":
    """Empty texts that make up a pause which is too long for one message, except for its remainder."""
    import mido

    return [mido.MetaMessage("text", time=_LONGEST) for _ in range(ticks // _LONGEST)]
