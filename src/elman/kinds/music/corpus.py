"""A corpus of music: the pieces of three splits as piano rolls, from arrays, MIDI, MusicXML or a known corpus."""

import dataclasses
import hashlib
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from elman.config.record import restricted
from elman.data.archives import BLOCK, Archive, read_npz
from elman.data.catalog.known import locate
from elman.data.text.sources import ALIASES, SPLITS, Corpus
from elman.errors import UserError, counted
from elman.files import canonical_json, sha256_lines
from elman.kinds.music.looks import is_abc
from elman.kinds.music.pitches import Pitches, Roll
from elman.kinds.music.reading import SUFFIXES, head_of, read_files
from elman.kinds.music.record import MusicOptions, MusicReading

_COMPRESSED = 15  # the type of a compressed variable in a MATLAB file


@dataclasses.dataclass(frozen=True)
class Pieces:
    """One split: pieces one after another, uint8 [steps of all pieces, P], and their lengths int64 [pieces]."""

    name: str
    frames: Roll
    lengths: npt.NDArray[np.int64]

    @property
    def before(self) -> Roll:
        """The frame before each frame, silence before the first of a piece."""
        found = np.roll(self.frames, 1, axis=0)
        found[np.cumsum(self.lengths) - self.lengths] = 0
        return found

    @property
    def sha256(self) -> str:
        digest = hashlib.sha256(np.packbits(self.frames).tobytes())
        digest.update(self.lengths.astype("<i8").tobytes())
        return digest.hexdigest()


@dataclasses.dataclass(frozen=True, eq=False)
class MusicCorpus(Corpus[MusicOptions, Pieces]):
    """Music as a model reads it.

    `division` is the rule that divided music which came without splits, `unreadable` are the files that were left out.
    """

    division: str | None = None
    unreadable: tuple[str, ...] = ()

    @property
    def symbols(self) -> Pitches:
        return Pitches(self.options.pitches)

    @property
    def digest(self) -> str:
        pieces = (f"{name} {pieces.sha256}" for name, pieces in self.splits.items())
        return sha256_lines(canonical_json(restricted(self.options, MusicOptions)), *pieces)

    def facts(self) -> dict[str, Any]:
        """For `describe`; the tokens of a split are its steps."""
        splits = {
            name: {"tokens": len(pieces.frames), "pieces": len(pieces.lengths), "sha256": pieces.sha256}
            for name, pieces in self.splits.items()
        }
        others = {"division": self.division, "unreadable": list(self.unreadable)}
        return {"splits": splits} | {name: value for name, value in others.items() if value}


def open_music(source: str | Path, options: MusicReading) -> MusicCorpus:
    """Read music: a known corpus (`elman data list`), an `.npz` or `.mat` file, a folder of MIDI files, or one of them.

    The `.npz` file has `{split}_roll` uint8 [steps, 88 or 93] and `{split}_len` [pieces] for train, valid and test; the
    `.mat` file cells of matrices [steps, 88 or 93], `traindata`, `validdata` and `testdata`. A folder has subfolders
    train, valid and test of MIDI files (.mid, .midi, .kar, .rmi), MusicXML (.mxl, .musicxml) and ABC notation (.abc),
    or only such files, which `divide` divides; where it has no folder valid or no folder test, `hold_out` takes that
    split from train.

    Raises UserError where the source cannot be used.
    """
    path, division, unreadable = locate(source, "music"), None, list[Path]()
    if path.is_dir() or (path.is_file() and _is_midi(path)):
        parts = midi_files(path)
        rolls, unreadable = read_files([file for files in parts.values() for file in files], options, path)
        absent = [split for split in ("valid", "test") if split in parts and not _folder(path, split).is_dir()]
        found = {
            split: {piece: roll for piece, roll in rolls.items() if piece in files or piece.parent in files}
            for split, files in parts.items()
        }
        for split, files in parts.items():
            if not found[split] and [split] != absent:
                raise UserError(
                    f"{path / split}: no MIDI files (.mid, .midi){' that can be read' if files else ''}; a folder of"
                    " music has some, or train, valid and test of them"
                )
        if absent:
            division = hold_out(found, absent[0], path)
        splits = {split: list(part.values()) for split, part in found.items()}
        if "" in parts:
            splits, division = divide(rolls)
    elif path.is_file():
        with path.open("rb") as file:
            matlab = not file.read(2).startswith(b"PK") and path.suffix.lower() != ".npz"
        arrays, pitches = _read_mat(path) if matlab else read_npz(path), Pitches(options.pitches)
        splits = {split: _cut(arrays, split, pitches, path) for split in SPLITS}
    else:
        raise UserError(
            f"{source}: no such file or folder, and no known corpus has this name; give an .npz or .mat file of piano"
            " rolls, a MIDI file, a folder of MIDI files, or a name that `elman data list` shows"
        )
    pieces = {
        split: Pieces(split, np.concatenate(rolls), np.array([len(roll) for roll in rolls], np.int64))
        for split, rolls in splits.items()
    }
    name = path.stem if path.is_file() else path.resolve().name
    left_out = tuple(str(file.relative_to(path)) for file in unreadable)
    return MusicCorpus(name, str(source), options, pieces, division, left_out)


def midi_files(path: Path) -> dict[str, list[Path]]:
    """The files of each split, or of the one split "" where a folder has none, or the single file."""
    if path.is_file():
        return {"": [path]}
    folders = {split: _folder(path, split) for split in SPLITS}
    folders = folders if any(folder.is_dir() for folder in folders.values()) else {"": path}
    return {
        split: sorted(file for file in folder.rglob("*") if file.suffix.lower() in SUFFIXES)
        for split, folder in folders.items()
    }


def _folder(path: Path, split: str) -> Path:
    """The folder of a split, by the first of its names that is there."""
    return next((path / name for name in ALIASES[split] if (path / name).is_dir()), path / split)


def _is_midi(path: Path) -> bool:
    """Whether a file of music holds one piece, not arrays: by its first bytes, or its name where they are damaged."""
    first = head_of(path)
    if first.startswith((b"MThd", b"RIFF")) or path.suffix.lower() in SUFFIXES or is_abc(path, first):
        return True
    if first.startswith((b"PK", b"MATLAB")) or path.suffix.lower() in (".npz", ".mat"):
        return False
    raise UserError(
        f"{path}: not an .npz or .mat file of piano rolls, nor a MIDI file (.mid); give music, or train on a text with"
        " a recipe for text, such as recipes/shakespeare/demo.toml"
    )


def _read_mat(path: Path) -> dict[str, npt.NDArray[Any]]:
    """The cells of a MATLAB file, named and joined as the arrays of an .npz file are."""
    from scipy.io import loadmat  # it takes long to import

    archive, arrays = Archive(path, "not a .mat file of plain matrices", "give another"), dict[str, Any]()
    with archive.reading():
        _count_unpacked(archive, path.read_bytes())
        found = loadmat(path, variable_names=[f"{split}data" for split in SPLITS])
    for split in SPLITS:
        if (name := f"{split}data") not in found:
            raise UserError(f"{path}: no variable {name}; it must have {', '.join(f'{one}data' for one in SPLITS)}")
        cells = list(found[name].flat) if found[name].dtype == object else []
        for number, cell in enumerate(cells):
            if not isinstance(cell, np.ndarray) or cell.ndim != 2 or cell.shape[1] not in (88, 93):
                cells, what = [], f"cell {number + 1} is {_form(cell)}"
                break
        else:
            what = f"it is {_form(found[name])}"
        if not cells:
            raise UserError(f"{path}: {name} must be cells of matrices [steps, 88] or [steps, 93]; {what}")
        if len({cell.shape[1] for cell in cells}) > 1:
            raise UserError(f"{path}: the matrices of {name} have 88 columns and 93; give one number to all")
        arrays |= {f"{split}_roll": np.concatenate(cells), f"{split}_len": np.array([len(cell) for cell in cells])}
    return arrays


def _count_unpacked(archive: Archive, data: bytes) -> None:
    """Count what the compressed variables of a MATLAB file unpack to, without keeping it."""
    order: Literal["little", "big"] = "little" if data[126:128] == b"IM" else "big"
    at = 128
    while at + 8 <= len(data):
        kind, size = (int.from_bytes(data[place : place + 4], order) for place in (at, at + 4))
        unpacker, packed = zlib.decompressobj(), data[at + 8 : at + 8 + size] if kind == _COMPRESSED else b""
        while packed and not unpacker.eof:
            archive.count(len(unpacker.decompress(packed, BLOCK)))
            packed = unpacker.unconsumed_tail
        at += 8 + size


def _form(value: Any) -> str:
    array = np.asarray(value)
    return f"{array.dtype} {list(array.shape)}"


def _cut(arrays: dict[str, npt.NDArray[Any]], split: str, pitches: Pitches, path: Path) -> list[Roll]:
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


Splits = dict[str, list[Roll]]


def divide(pieces: Mapping[Path, Roll]) -> tuple[Splits, str]:
    """The pieces of MIDI files, divided, and the rule in words.

    Files of equal content count once. Three or more pieces are ranked by the SHA-256 of their content: the first tenth
    (rounded, at least one) is the test split, the second the valid split, the rest the train split, each in the order
    of the names. One or two pieces are cut in time instead: of the steps of each the last tenth is the test split, the
    tenth before it the valid split.

    Raises UserError where a piece is too short to be cut.
    """
    unique = _unique(pieces)
    copies = len(pieces) - len(unique)
    left_out = f"; {counted(copies, 'copy', 'copies')} left out" if copies else ""
    if len(unique) < 3:
        parts = [_cut_in_time(pieces[file], file) for file in sorted(unique.values())]
        splits = {split: [part[split] for part in parts] for split in parts[0]}
        number = counted(len(unique), "piece")
        counts = ", ".join(f"{split} {sum(map(len, rolls)):,}" for split, rolls in splits.items())
        return splits, f"{number} cut in time, 80/10/10: steps {counts}{left_out}"
    tenth = max(1, round(len(unique) / 10))
    ranked = [unique[digest] for digest in sorted(unique)]
    chosen = {"train": ranked[2 * tenth :], "valid": ranked[tenth : 2 * tenth], "test": ranked[:tenth]}
    counts = ", ".join(f"{split} {len(found)}" for split, found in chosen.items())
    splits = {split: [pieces[file] for file in sorted(found)] for split, found in chosen.items()}
    return splits, f"{len(unique)} pieces ranked by the SHA-256 of their content, 80/10/10: {counts}{left_out}"


def hold_out(splits: dict[str, dict[Path, Roll]], split: str, folder: Path) -> str:
    """Move pieces of the train split to one that a folder has not, and return the rule in words.

    They are the first tenth (rounded, at least one) of the pieces ranked as `divide` does; copies among the training
    pieces count once. Raises UserError where there are fewer than two.
    """
    train = splits["train"]
    unique = _unique(train)
    if len(unique) < 2:
        raise UserError(f"{folder}: no folder {split}, and one piece in train, of which none can be held out; make it")
    held = {unique[digest] for digest in sorted(unique)[: max(1, round(len(unique) / 10))]}
    splits[split] = {file: train[file] for file in sorted(held)}
    splits["train"] = {file: train[file] for file in sorted({*unique.values()} - held)}
    counts = f"train {len(splits['train'])}, {split} {len(held)}"
    return f"no folder {split}: a tenth of train is held out, by the SHA-256 of the content: {counts}"


def _unique(pieces: Mapping[Path, Roll]) -> dict[str, Path]:
    """The first piece of each content, by the digest of its file, or of its frames if its file has several."""
    digests = {
        file: hashlib.sha256(file.read_bytes() if file.is_file() else roll.tobytes()).hexdigest()
        for file, roll in pieces.items()
    }
    return {digest: file for file, digest in reversed(digests.items())}


def _cut_in_time(roll: Roll, file: Path) -> dict[str, Roll]:
    if len(roll) < 3:
        raise UserError(f"{file}: {counted(len(roll), 'step')}, too few to be cut in three; give more music")
    tenth = max(1, round(len(roll) / 10))
    return {"train": roll[: -2 * tenth], "valid": roll[-2 * tenth : -tenth], "test": roll[-tenth:]}
