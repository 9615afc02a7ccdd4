"""MIDI files made byte by byte."""


def number(value):
    """In bytes of seven bits, of which all but the last have the eighth."""
    data = [value & 0x7F]
    while value := value >> 7:
        data.append(0x80 | value & 0x7F)
    return bytes(reversed(data))


def note(pitch, ticks=240, *, pause=0, channel=0, velocity=80):
    return number(pause) + bytes([0x90 | channel, pitch, velocity]) + number(ticks) + bytes([0x80 | channel, pitch, 0])


def meta(kind, *data, pause=0):
    return number(pause) + bytes([0xFF, kind, len(data), *data])


END = meta(0x2F)


def chunk(name, data, size=None):
    return name + (len(data) if size is None else size).to_bytes(4, "big") + data


def header(tracks, kind=1, division=480):
    return chunk(b"MThd", b"".join(value.to_bytes(2, "big") for value in (kind, tracks, division)))


def midi(*tracks, count=None, kind=1, division=480):
    """A file of tracks that end with their end message."""
    return header(len(tracks) if count is None else count, kind, division) + b"".join(
        chunk(b"MTrk", track + END) for track in tracks
    )


def notes(pitches, ticks=240, **how):
    return b"".join(note(pitch, ticks, **how) for pitch in pitches)
