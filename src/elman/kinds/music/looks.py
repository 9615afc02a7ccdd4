"""What music looks like: MIDI files, and arrays of piano rolls; pickles, in which some are published, are refused."""

from pathlib import Path

from elman.data.kinds import SPLITS, Look, Seen, looks

ORDER, MIDI_FILE = 1, "a MIDI file"

_MIDI = (".mid", ".midi", ".kar", ".rmi")


def claim(seen: Seen) -> Look | None:
    """A MIDI file, also in RIFF, or piano rolls in an .npz or a .mat file."""
    if seen.head.startswith(b"MThd") or (seen.head.startswith(b"RIFF") and seen.head[8:12] == b"RMID"):
        return looks("music", MIDI_FILE)
    if seen.head.startswith(b"MATLAB"):
        return looks("music", "matrices (.mat)")
    if (seen.head[:1] == b"\x80" and seen.head[1:2] in b"\2\3\4\5") or seen.suffix in (".pickle", ".pkl"):
        return Look(None, "a pickle, which may run code when it is opened and is never read", frozenset())
    if any(name.endswith("_roll") for name in seen.arrays):
        return looks("music", "piano rolls (.npz)")
    return None


def claim_folder(source: Path) -> Look | None:
    """A folder with MIDI files in it, or in its splits."""
    there = [path for path in source.iterdir() if not path.name.startswith(".")] if source.is_dir() else []
    below = [path for one in there if one.name in SPLITS and one.is_dir() for path in one.iterdir()]
    midi = any(path.suffix.lower() in _MIDI for path in (*there, *below))
    return looks("music", "a folder of MIDI files") if midi else None
