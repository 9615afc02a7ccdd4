"""What music looks like: MIDI, scores, arrays of piano rolls; pickles, in which some are published, are refused."""

import re
from pathlib import Path

from elman.data.kinds import SPLITS, Look, Seen, looks
from elman.errors import counted

ORDER, MIDI_FILE, SCORE, ABC = 1, "a MIDI file", "a MusicXML score", "music in ABC notation"

SUFFIXES = (".mid", ".midi", ".kar", ".rmi", ".mxl", ".musicxml", ".npz", ".mat")
"""Endings of names that promise music."""

_SUFFIXES = (*SUFFIXES[:6], ".abc")
_BEGINS = re.compile(
    rb"(?:\xef\xbb\xbf)?(?:%[^\r\n]*[\r\n]+|\s)*X:[ \t]*\d+[^\r\n]*[\r\n]+(?:[^\r\n]*[\r\n]+){0,40}?K:"
)


def claim(seen: Seen) -> Look | None:
    """A MIDI file, also in RIFF, or piano rolls in an .npz or a .mat file."""
    if seen.head.startswith(b"MThd") or (seen.head.startswith(b"RIFF") and seen.head[8:12] == b"RMID"):
        return looks("music", MIDI_FILE)
    zipped = seen.suffix == ".mxl" and seen.head.startswith(b"PK")
    if zipped or (seen.suffix == ".musicxml" and b"<score-partwise" in seen.head):
        return looks("music", SCORE)
    if seen.head.startswith(b"MATLAB"):
        return looks("music", "matrices (.mat)")
    if (seen.head[:1] == b"\x80" and seen.head[1:2] in b"\2\3\4\5") or seen.suffix in (".pickle", ".pkl"):
        return Look(None, "a pickle, which may run code when it is opened and is never read", frozenset())
    if is_abc(seen.path, seen.head):
        return looks("music", ABC, "text")
    if any(name.endswith("_roll") for name in seen.arrays):
        return looks("music", "piano rolls (.npz)")
    return None


def claim_folder(source: Path) -> Look | None:
    """A folder with files of MIDI or MusicXML in it or in its splits, or with folders that hold nothing else."""
    there = _inside(source) if source.is_dir() else []
    splits = [path for one in there if one.name in SPLITS and one.is_dir() for path in _inside(one)]
    found = {path.suffix.lower() for path in (*there, *splits)} & {*_SUFFIXES}
    if not found and all(one.is_dir() for one in there):
        below = {path.suffix.lower() for one in there for path in _inside(one)}
        found = below if below <= {*_SUFFIXES} else set()
    kind = "MIDI" if found.intersection(_SUFFIXES[:4]) else "ABC" if found == {".abc"} else "MusicXML"
    others = sum(path.is_file() and path.suffix.lower() not in _SUFFIXES for path in there)
    left = f", beside {counted(others, 'other file')} in it, not read" if found and others else ""
    return looks("music", f"a folder of {kind} files{left}") if found else None


def is_abc(path: Path, head: bytes) -> bool:
    """Whether a file is in ABC notation: by the name, or by the fields at its beginning."""
    return path.suffix.lower() == ".abc" or _BEGINS.match(head) is not None


def _inside(folder: Path) -> list[Path]:
    return [path for path in folder.iterdir() if not path.name.startswith(".")]
