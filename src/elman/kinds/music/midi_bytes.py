"""The messages of MIDI files, byte by byte, past what is damaged and does not concern the notes."""

import re
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from elman.errors import counted

MOST_TICKS = 0x7FFF  # the most ticks per quarter note
LONGEST = (1 << 28) - 1  # the most ticks before a message: four bytes of seven bits
META = 0xFF
_END = 0x2F
_NOTES = (0x80, 0x90)
_LENGTHS = {0x80: 2, 0x90: 2, 0xA0: 2, 0xB0: 2, 0xC0: 1, 0xD0: 1, 0xE0: 2}
_SYSTEM_LENGTHS = {0xF1: 1, 0xF2: 2, 0xF3: 1, 0xF6: 0} | dict.fromkeys((0xF8, 0xFA, 0xFB, 0xFC, 0xFE), 0)
"""Bytes of data after the status byte of a message."""

_TOO_LONG = "a message of more than {:,} bytes"


class DamagedError(ValueError):
    """Bytes without which the notes cannot be known."""


class Event(NamedTuple):
    """A message: its time in ticks from the beginning, its status byte, its data (of a meta message its type first)."""

    time: int
    status: int
    data: bytes


class MidiBytes:
    """The bytes of a file that are read from one place to the next, and what was wrong with them.

    `repairs` counts what was damaged, in words, and could be read past.
    """

    def __init__(self, data: bytes) -> None:
        self.data, self.at, self.repairs = data, 0, Counter[str]()

    def byte(self) -> int:
        if self.at >= len(self.data):
            raise DamagedError("it ends too early")
        self.at += 1
        return self.data[self.at - 1]

    def take(self, size: int) -> bytes:
        if size > len(self.data) - self.at:
            raise DamagedError("it ends too early")
        self.at += size
        return self.data[self.at - size : self.at]

    def number(self, too_large: str) -> int:
        """A number in bytes of seven bits, the last of which is below 128."""
        value, byte = 0, 0x80
        while byte >= 0x80:
            byte = self.byte()
            value = value << 7 | byte & 0x7F
            if value > LONGEST:
                raise DamagedError(too_large.format(LONGEST))
        return value

    def header(self) -> tuple[int, int, int]:
        """The type of the file, the number of its tracks as declared, and the division of a quarter note."""
        self.at = self.data.find(b"MThd", 0, 4096)  # in RIFF, or after the header of an old file system
        if self.at < 0:
            raise DamagedError("MThd not found. Probably not a MIDI file")
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

    def tracks(self) -> Iterator[list[Event]]:
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

    def _track(self, stop: int) -> list[Event]:
        """The messages of a track that is declared to end at `stop`: up to its last message, or without one to there.

        Where the declared end is wrong, the last message decides.
        """
        events = list[Event]()
        whole: int | None = None
        try:
            for event in self._events(0, None):
                if event is not None:
                    events.append(event)
                    if event.status == META and event.data[0] == _END:
                        break
                if self.at == stop:
                    if self._is_chunk(stop):
                        return events
                    whole = len(events)
        except DamagedError:
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

    def _after_the_end(self, now: int, stop: int) -> list[Event]:
        """What stands between the last message of a track and its declared end, if it is messages."""
        begun, events = self.at, list[Event]()
        try:
            for event in self._events(now, stop):
                events += [event] if event is not None else []
        except DamagedError:
            events = []
        if events and self.at == stop and self._is_chunk(stop):
            self.repairs["messages after the end of a track"] += 1
            return events
        after = self.data.find(b"MTrk", begun, stop + 3)
        self.at = stop if after < 0 else after
        self.repairs[f"{counted(self.at - begun, 'byte')} that are in no track"] += 1
        return []

    def _events(self, now: int, stop: int | None) -> Iterator[Event | None]:
        """Messages one after another, to a place if one is given; first None, where none has been read yet."""
        running, interrupted = 0, False
        yield None
        while stop is None or self.at < stop:
            now += self.number("a pause of more than {:,} ticks")
            status = self.byte()
            if status < 0x80:
                if not running:
                    raise DamagedError("running status without last_status")
                self.at -= 1
                status = running
                self.repairs["a running status that continues after other messages"] += interrupted
            elif status < 0xF0:
                running = status
            interrupted = 0xF0 <= status < 0xF8 or status == META
            if status == META:
                kind = self.take(1)
                yield Event(now, status, kind + self.take(self.number(_TOO_LONG)))
            elif status in (0xF0, 0xF7):
                yield Event(now, status, self.take(self.number(_TOO_LONG)))
            elif status >= 0xF0:
                if status not in _SYSTEM_LENGTHS:
                    raise DamagedError(f"undefined status byte 0x{status:02x}")
                yield Event(now, status, self.take(_SYSTEM_LENGTHS[status]))
            else:
                data = self.take(_LENGTHS[status & 0xF0])
                if max(data) > 0x7F:
                    if status & 0xF0 in _NOTES:
                        raise DamagedError("data byte must be in range 0..127")
                    self.repairs["a value above 127"] += 1
                yield Event(now, status, data)
