"""What kind of data a file or a folder looks like, by its first bytes and lines; nothing is read as a whole."""

import csv
import re
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from elman.data.lines import lines_of
from elman.data.tags.columns import in_columns, recognised
from elman.data.text.encodings import marked
from elman.data.text.files import is_compressed, plain_name
from elman.data.text.sources import training_files

HEAD = 1 << 16
"""Bytes that are looked at."""

MUSIC_SUFFIXES = (".mid", ".midi")

_SPLITS = {"train", "valid", "validation", "dev", "test"}
_NO_LANGUAGES = {".txt", ".tokens", ".raw", ".csv", ".tsv", ".npy", ".npz", ".json", ".jsonl", ".toml", ".md"}
_BY_SUFFIX = {
    ".csv": frozenset(("series",)),
    ".tsv": frozenset(("series", "pairs", "tags")),
    ".npy": frozenset(("series",)),
    ".npz": frozenset(("music", "series")),
    ".mid": frozenset(("music",)),
    ".midi": frozenset(("music",)),
}
_FORMATS = {
    b"%PDF": "a PDF file",
    b"PK\x03\x04": "an archive (zip, or a document of an office program or an e-book)",
    b"\x1f\x8b": "a compressed file (gzip)",
    b"BZh": "a compressed file (bzip2)",
    b"\xfd7zXZ": "a compressed file (xz)",
    b"{\\rtf": "a document in RTF",
    b"\xd0\xcf\x11\xe0": "a document of an older office program",
    b"RIFF": "a sound or film file",
    b"ID3": "a sound file",
    b"OggS": "a sound file",
    b"fLaC": "a sound file",
    b"\x89PNG": "an image",
    b"\xff\xd8\xff": "an image",
}


class Look(NamedTuple):
    """What data look like.

    Attributes:
        kind: `text`, `music`, `pairs`, `series`, `trees` or `tags`; None: nothing that can be read.
        what: in words.
        possible: the kinds that can read them.
        languages: of parallel files, their endings.
        form: of pairs, `tsv` or `parallel`; `trees` of trees, which can be read as pairs too; of tags, `columns` or
            `conllu`.
    """

    kind: str | None
    what: str
    possible: frozenset[str]
    languages: tuple[str, str] | None = None
    form: str | None = None


def _look(kind: str, what: str, *others: str, form: str | None = None) -> Look:
    return Look(kind, what, frozenset((kind, *others)), form=form)


def name_of(source: str | Path) -> str:
    """What data are called: the name of a file without its ending, of a folder, or of a known corpus."""
    path = Path(source)
    return Path(plain_name(path)).stem if path.is_file() else path.name or path.resolve().name


def look(source: Path) -> Look | None:
    """What a file, a folder, or the beginning of the names of parallel files looks like.

    None where there is nothing of the name, or it cannot be recognised.
    """
    if source.is_file():
        return look_at_file(source)
    if languages := parallel_languages(source):
        what = f"two parallel files for each split, in the languages {' and '.join(languages)}"
        return Look("pairs", what, frozenset(("pairs", "text")), languages, "parallel")
    found = _look_at_folder(source) if source.is_dir() else None
    return found or _look_at_shards(training_files(source))


def _look_at_shards(files: Sequence[Path]) -> Look | None:
    """What many files look like that are read as one text."""
    return _look("text", f"a text in {len(files)} files") if files else None


def look_at_file(path: Path) -> Look:
    """What a file looks like; where its name promises another kind, that kind too is possible.

    A file whose name says that it is compressed is text: only texts are read so.
    """
    if is_compressed(path):
        return _look("text", "a compressed text")
    found = _look_inside(path)
    return found._replace(possible=found.possible | _BY_SUFFIX.get(path.suffix.lower(), frozenset()))


def _look_inside(path: Path) -> Look:
    try:
        with path.open("rb") as file:
            head = file.read(HEAD)
    except OSError:
        return _look("text", "a file that cannot be read", "music", "pairs", "series", "trees", "tags")
    if not head.strip():
        return _look("text", "an empty file", "music", "pairs", "series", "trees", "tags")
    if head.startswith(b"MThd"):
        return _look("music", "a MIDI file")
    if head.startswith(b"\x93NUMPY"):
        return _look("series", "an array of numbers (.npy)")
    if head.startswith(b"PK\x03\x04") and (arrays := _arrays(path)):
        if any(name.endswith("_roll") for name in arrays):
            return _look("music", "piano rolls (.npz)")
        return _look("series", "arrays of numbers (.npz)")
    for start, what in _FORMATS.items():
        if head.startswith(start):
            return Look(None, what, frozenset())
    lines = _lines(head)
    if form := recognised(lines):
        what = "words and tags in columns" if form == "columns" else "words and tags in the form CoNLL-U"
        return _look("tags", what, "text", "pairs", form=form)
    found = _look_at_lines(path, [line for line in lines if line.strip()])
    return found._replace(possible=found.possible | {"tags"}) if in_columns(lines) else found


def _arrays(path: Path) -> list[str]:
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
    except (OSError, ValueError, zipfile.BadZipFile, NotImplementedError):
        return []
    arrays = [name.removesuffix(".npy") for name in names if name.endswith(".npy")]
    return arrays if len(arrays) == len(names) else []


def _lines(head: bytes) -> list[str]:
    """The lines of the beginning of a text, without the last one, which may be cut."""
    lines = lines_of(head.decode(marked(head) or "utf-8-sig", errors="replace"))
    return lines if len(head) < HEAD or len(lines) == 1 else lines[:-1]


def _look_at_lines(path: Path, lines: Sequence[str]) -> Look:
    tabs = [line.count("\t") for line in lines]
    two_columns = bool(lines) and tabs.count(1) == len(lines)
    if _is_table(path.suffix.lower(), lines):
        return _look("series", "a table of numbers", "text", *(["pairs"] if two_columns else []))
    # Before each tree of a treebank there may be an identifier and a tab.
    text = "\n".join(line.split("\t", 1)[-1] for line in lines)
    if text.startswith("(") and len(re.findall(r"\([A-Z.,:$`'-]*\s", text)) > len(text) / 40:
        return _look("trees", "bracketed trees", "pairs", "text", "tags", form="trees")
    if two_columns or (len(lines) >= 20 and tabs.count(1) > 0.95 * len(lines)):
        return _look("pairs", "lines of two columns with a tab between", "text", form="tsv")
    return _look("text", "text", *(["pairs"] if any(tabs) else []))


def _is_table(suffix: str, lines: Sequence[str]) -> bool:
    """Whether lines but the first are rows of equally many cells: all of them numbers, in .csv and .tsv one of them."""
    if not lines:
        return False
    second = lines[1] if len(lines) > 1 else lines[0]
    mark = max("\t;,", key=second.count)
    parted = second.count(mark) > 0
    cells = list(csv.reader([f"{line}\n" for line in lines], delimiter=mark)) if parted else [*map(str.split, lines)]
    if any("\n" in cell for cell in cells[-1]):
        cells.pop()  # the head may end within it
    cells = cells[1:] or cells
    if len({len(row) for row in cells}) != 1:
        return False
    numeric = [all(_is_number(cell) for cell in column) for column in zip(*cells, strict=True)]
    return any(numeric) if suffix in (".csv", ".tsv") else all(numeric)


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return cell.strip().lower() in ("", "na", "null", "none")
    return True


def _look_at_folder(folder: Path) -> Look | None:
    there = [path for path in sorted(folder.iterdir()) if not path.name.startswith(".")]
    below = [path for one in there if one.name in _SPLITS and one.is_dir() for path in one.iterdir()]
    if any(path.suffix.lower() in MUSIC_SUFFIXES for path in (*there, *below)):
        return _look("music", "a folder of MIDI files")
    train = next((path for path in there if path.is_file() and "train" in _parts(path.name)), None)
    if train is None:
        return None
    found = look_at_file(train)
    return found._replace(what=f"a folder whose training file looks like {found.what}")


def _parts(name: str) -> set[str]:
    return set(re.split("[._-]", name))


def begins_names(source: Path) -> bool:
    """Whether names of files begin with this name and a point, hyphen or underscore, as those of parallel files do."""
    folder, beginnings = source.parent, tuple(f"{source.name}{mark}" for mark in "._-")
    return folder.is_dir() and any(path.name.startswith(beginnings) for path in folder.iterdir())


def parallel_languages(source: Path) -> tuple[str, str] | None:
    """The endings of two parallel files, or of two for each split, in a folder or beside a beginning of their names.

    They are sorted by name: which of them is the source cannot be known.
    """
    folder, prefix = (source, "") if source.is_dir() else (source.parent, f"{source.name}.")
    splits: dict[str, set[str]] = {}
    for path in folder.iterdir() if folder.is_dir() else ():
        found = _parts(path.name.removeprefix(prefix)) & _SPLITS
        named = path.is_file() and path.name.startswith(prefix) and bool(found or prefix)
        if named and path.suffix not in ("", *_NO_LANGUAGES) and path.suffix[1:] not in _SPLITS:
            splits.setdefault(path.suffix[1:], set()).update(found or {"all"})
    if len(splits) != 2:
        return None
    one, other = sorted(splits)
    return (one, other) if splits[one] == splits[other] else None
