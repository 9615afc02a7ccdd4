"""What music looks like: MIDI files, and arrays of piano rolls."""

from pathlib import Path

from elman.data.kinds import SPLITS, Look, Seen, looks

ORDER = 1


def claim(seen: Seen) -> Look | None:
    """A MIDI file, or an .npz file of piano rolls."""
    if seen.head.startswith(b"MThd"):
        return looks("music", "a MIDI file")
    if any(name.endswith("_roll") for name in seen.arrays):
        return looks("music", "piano rolls (.npz)")
    return None


def claim_folder(source: Path) -> Look | None:
    """A folder with MIDI files in it, or in its splits."""
    there = [path for path in source.iterdir() if not path.name.startswith(".")] if source.is_dir() else []
    below = [path for one in there if one.name in SPLITS and one.is_dir() for path in one.iterdir()]
    midi = any(path.suffix.lower() in (".mid", ".midi") for path in (*there, *below))
    return looks("music", "a folder of MIDI files") if midi else None
