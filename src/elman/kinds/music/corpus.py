"""A corpus of music: the pieces of three splits as piano rolls, from an .npz file, MIDI files or a known corpus."""

import dataclasses
import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from elman.data.archives import read_npz
from elman.data.catalog import prepare
from elman.data.text.sources import SPLITS, Corpus
from elman.errors import UserError
from elman.files import canonical_json, sha256_lines
from elman.kinds.music.division import divide
from elman.kinds.music.midi import SUFFIXES, read_midi
from elman.kinds.music.pitches import Pitches, Roll
from elman.kinds.music.record import MusicOptions


@dataclasses.dataclass(frozen=True)
class Pieces:
    """One split: pieces one after another, uint8 [steps of all pieces, P], and their lengths int64 [pieces]."""

    name: str
    frames: Roll
    lengths: npt.NDArray[np.int64]

    @property
    def sha256(self) -> str:
        """Digest of the frames and the lengths."""
        digest = hashlib.sha256(np.packbits(self.frames).tobytes())
        digest.update(self.lengths.astype("<i8").tobytes())
        return digest.hexdigest()


@dataclasses.dataclass(frozen=True)
class MusicCorpus(Corpus[MusicOptions, Pieces]):
    """Music as a model reads it; `division` is the rule that divided music which came without splits."""

    division: str | None = None

    @property
    def symbols(self) -> Pitches:
        """The pitches of a frame."""
        return Pitches(self.options.pitches)

    @property
    def digest(self) -> str:
        """SHA-256 over the options and the pieces."""
        pieces = (f"{name} {pieces.sha256}" for name, pieces in self.splits.items())
        return sha256_lines(canonical_json(self.options), *pieces)

    def facts(self) -> dict[str, Any]:
        """For `describe`; the tokens of a split are its steps."""
        return {
            "splits": {
                name: {"tokens": len(pieces.frames), "pieces": len(pieces.lengths), "sha256": pieces.sha256}
                for name, pieces in self.splits.items()
            },
        } | ({"division": self.division} if self.division else {})


def open_music(source: str | Path, options: MusicOptions) -> MusicCorpus:
    """Read music: a known corpus (`elman data list`), an `.npz` file, MIDI files in a folder, or one MIDI file.

    The `.npz` file has `{split}_roll` uint8 [steps, 88 or 93] and `{split}_len` [pieces] for train, valid and test. A
    folder has subfolders train, valid and test of MIDI files (.mid, .midi), or only MIDI files, which `divide` divides.

    Raises UserError where the source cannot be used.
    """
    path, division = prepare.locate_data(source, "music", "rolls.npz"), None
    if path.is_dir():
        if any((path / split).is_dir() for split in SPLITS):
            splits = {split: [read_midi(file, options) for file in _midi_files(path / split)] for split in SPLITS}
        else:
            splits, division = divide(_midi_files(path), options)
    elif path.is_file():
        if _is_midi(path):
            splits, division = divide([path], options)
        else:
            splits = _read_npz(path, Pitches(options.pitches))
    else:
        raise UserError(
            f"{source}: no such file or folder, and no known corpus has this name; give an .npz file of piano rolls, a"
            " MIDI file, a folder of MIDI files, or a name that `elman data list` shows"
        )
    pieces = {
        split: Pieces(split, np.concatenate(rolls), np.array([len(roll) for roll in rolls], np.int64))
        for split, rolls in splits.items()
    }
    name = path.stem if path.is_file() else path.resolve().name
    return MusicCorpus(name, str(source), options, pieces, division)


def _midi_files(folder: Path) -> list[Path]:
    files = sorted(file for file in folder.rglob("*") if file.suffix.lower() in SUFFIXES)
    if not files:
        raise UserError(
            f"{folder}: no MIDI files (.mid, .midi); a folder of music has some, or train, valid and test of them"
        )
    return files


def _is_midi(path: Path) -> bool:
    """Whether a file of music is MIDI, else an `.npz` file: by its first bytes, or its name where they are damaged."""
    try:
        with path.open("rb") as file:
            first = file.read(4)
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror}); give another file of music") from None
    if first == b"MThd" or path.suffix.lower() in SUFFIXES:
        return True
    if first.startswith(b"PK") or path.suffix.lower() == ".npz":
        return False
    raise UserError(
        f"{path}: not an .npz file of piano rolls, nor a MIDI file (.mid); give music, or train on a text with a recipe"
        " for text, such as recipes/shakespeare/demo.toml"
    )


def _read_npz(path: Path, pitches: Pitches) -> dict[str, list[Roll]]:
    arrays = read_npz(path)
    return {split: _cut(arrays, split, pitches, path) for split in SPLITS}


def _cut(arrays: dict[str, npt.NDArray[Any]], split: str, pitches: Pitches, path: Path) -> list[Roll]:
    """The pieces of a split, each in `pitches`."""
    for key in (f"{split}_roll", f"{split}_len"):
        if key not in arrays:
            raise UserError(f"{path}: no array {key}; it has {', '.join(arrays) or 'none'}")
    roll, lengths = arrays[f"{split}_roll"], arrays[f"{split}_len"]
    if roll.ndim != 2 or roll.shape[1] not in (88, 93) or not np.isin(roll, (0, 1)).all():
        raise UserError(
            f"{path}: {split}_roll is {roll.dtype} {list(roll.shape)}; it must hold zeros and ones, [steps, 88] or"
            " [steps, 93]"
        )
    if lengths.ndim != 1 or lengths.dtype.kind not in "iu" or not len(lengths):
        raise UserError(
            f"{path}: {split}_len is {lengths.dtype} {list(lengths.shape)}; it must be whole numbers, one per piece"
        )
    if lengths.min() < 1:
        raise UserError(f"{path}: {split}_len[{int(lengths.argmin())}] is {lengths.min()}: an empty piece; remove it")
    if (total := sum(lengths.tolist())) != len(roll):
        raise UserError(
            f"{path}: {split}_len adds up to {total:,} steps, but {split}_roll has {len(roll):,}; make them agree"
        )
    given = pitches.reform(roll.astype(np.uint8), Pitches(roll.shape[1]), f"{path}: {split}_roll")
    return np.split(given, np.cumsum(lengths)[:-1])
