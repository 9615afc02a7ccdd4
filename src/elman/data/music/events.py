"""The bytes of MIDI files: notes that begin and end, in ticks, read and written.

Standard MIDI Files 1.0. Every number of a file is bounded, so that a damaged file takes neither time nor memory.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

_SYSTEM_DATA = {0xF1: 1, 0xF2: 2, 0xF3: 1, 0xF6: 0, **dict.fromkeys((0xF8, 0xFA, 0xFB, 0xFC, 0xFE), 0)}
"""System messages and how many bytes follow them."""

_LONGEST = (1 << 28) - 1
"""The largest number that four bytes of seven bits hold."""


class DamagedFileError(ValueError):
    """Bytes that are not those of a MIDI file; the message states which."""


class Strike(NamedTuple):
    """A note begins or, with velocity 0, ends: ticks since the beginning of the track."""

    time: int
    channel: int
    pitch: int
    velocity: int


class Track(NamedTuple):
    """The notes of a track in the order of time, and its length in ticks."""

    strikes: list[Strike]
    end: int


class Events(NamedTuple):
    """A MIDI file: its type, the field of its header that defines a tick, its tracks and first tempo.

    The tempo is in microseconds per quarter note; None where the file has none.
    """

    kind: int
    division: int
    tracks: list[Track]
    tempo: int | None


class _Bytes:
    """A range of bytes that are read one after another."""

    def __init__(self, data: bytes, at: int, stop: int) -> None:
        self.data, self.at, self.stop = data, at, stop

    def damaged(self, problem: str) -> DamagedFileError:
        return DamagedFileError(f"at byte {self.at}: {problem}")

    def take(self, count: int) -> bytes:
        if self.stop - self.at < count:
            raise self.damaged("it ends too early")
        self.at += count
        return self.data[self.at - count : self.at]

    def byte(self) -> int:
        return self.take(1)[0]

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size), "big")

    def variable(self) -> int:
        """A number in groups of seven bits, of which a file may use four."""
        value = 0
        for _ in range(4):
            byte = self.byte()
            value = value << 7 | byte & 0x7F
            if byte < 0x80:
                return value
        raise self.damaged("a number of more than 4 bytes")


def decode(data: bytes) -> Events:
    """The notes of a MIDI file; raises DamagedFileError where its bytes are not those of one."""
    file = _Bytes(data, 0, len(data))
    if data[:4] != b"MThd":
        raise DamagedFileError("it does not begin with MThd")
    file.take(4)
    header = _Bytes(data, 8, 8 + file.number(4))
    file.take(header.stop - header.at)
    kind, count, division = header.number(2), header.number(2), header.number(2)
    tracks, tempos = list[Track](), list[int]()
    while len(tracks) < count:
        name, size = file.take(4), file.number(4)
        content = _Bytes(data, file.at, file.at + size)
        file.take(size)
        if name == b"MTrk":
            tracks.append(_track(content, tempos))
    return Events(kind, division, tracks, next(iter(tempos), None))


def _track(content: _Bytes, tempos: list[int]) -> Track:
    """A track; its tempos are added to `tempos`."""
    now, status, strikes = 0, 0, list[Strike]()
    while content.at < content.stop:
        now += content.variable()
        first = content.byte()
        if first == 0xFF:  # text, tempo and others; the status of the last message stays in force
            name, data = content.byte(), content.take(content.variable())
            if name == 0x51 and len(data) == 3:
                tempos.append(int.from_bytes(data, "big"))
            continue
        if first < 0x80:
            content.at -= 1
        else:
            status = first
        if status in (0xF0, 0xF7):
            content.take(content.variable())
            status = 0
            continue
        data = content.take(_data_bytes(status, content))
        if any(byte >= 0x80 for byte in data):
            raise content.damaged("a message is cut short by another")
        if status & 0xE0 == 0x80:
            strikes.append(Strike(now, status & 0x0F, data[0], data[1] if status & 0x10 else 0))
    return Track(strikes, now)


def _data_bytes(status: int, content: _Bytes) -> int:
    """How many bytes follow a status byte."""
    if 0x80 <= status < 0xF0:
        return 1 if 0xC0 <= status < 0xE0 else 2
    if status in _SYSTEM_DATA:
        return _SYSTEM_DATA[status]
    raise content.damaged("data without a message before them" if status < 0x80 else "an unknown message")


def encode(strikes: Iterable[Strike], end: int, division: int, tempo: int) -> bytes:
    """A MIDI file of type 0 with one track: its notes in the order of time, its length and its only tempo."""
    track = b"".join(_messages(strikes, end, tempo))
    header = b"".join(number.to_bytes(2, "big") for number in (0, 1, division))
    return b"MThd" + len(header).to_bytes(4, "big") + header + b"MTrk" + len(track).to_bytes(4, "big") + track


def _messages(strikes: Iterable[Strike], end: int, tempo: int) -> Iterator[bytes]:
    now, last = 0, 0
    yield b"\x00\xff\x51\x03" + tempo.to_bytes(3, "big")
    for time, channel, pitch, velocity in strikes:
        status = (0x90 if velocity else 0x80) | channel
        yield _pause(time - now) + (b"" if status == last else bytes([status])) + bytes([pitch, velocity])
        now, last = time, status
    yield _pause(end - now) + b"\xff\x2f\x00"


def _pause(ticks: int) -> bytes:
    """The ticks before a message; those beyond four bytes precede empty texts."""
    texts, rest = divmod(ticks, _LONGEST)
    return (_variable(_LONGEST) + b"\xff\x01\x00") * texts + _variable(rest)


def _variable(value: int) -> bytes:
    groups = [value & 0x7F]
    while value := value >> 7:
        groups.append(value & 0x7F | 0x80)
    return bytes(reversed(groups))
