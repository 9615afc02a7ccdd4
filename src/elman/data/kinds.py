"""What kind of data a file or a folder looks like, by its first bytes and lines; nothing is read as a whole.

Each kind that recognises its data has a module `looks` (of a plug-in `Data.looks`) with `claim(seen)`, which returns
what a file of this kind looks like, and may have `claim_folder(source)`, and `reads(seen, found)`: whether the kind can
read what another one claims. Modules with a lower `ORDER` are asked first. A file that no kind claims is text. What
plainly is no data of a kind is seen by few lines of code; what looks closer is imported for the rest.
"""

import csv
import functools
import re
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, NamedTuple

from elman.config.data import Data
from elman.config.parts import added, members, own_kinds
from elman.data.lines import lines_of
from elman.data.text.encodings import of_head
from elman.data.text.files import Files, is_compressed, plain_name
from elman.data.text.sources import ALIASES, one_text, training_files
from elman.errors import UserError, counted
from elman.formats import NPY

HEAD = 1 << 16  # bytes that are looked at
SPLITS = frozenset(name for names in ALIASES.values() for name in names)

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
_OF_BYTES = {".mid", ".midi", ".kar", ".rmi", ".mxl", ".npy", ".npz", ".mat"}
"""How names end that promise bytes in a format, never a text."""
_JSON = re.compile(r'\s*(?:[\[{]\s*"|\[\{"|"[^"]*"\s*:|[\[\]{}]+,?$)')
_WITHOUT_LINES = (b"MThd", NPY, *_FORMATS)


class Look(NamedTuple):
    """What data look like.

    Attributes:
        kind: `text`, `music`, `pairs`, `series`, `trees` or `tags`; None: nothing that can be read.
        what: in words.
        possible: the kinds that can read them.
        languages: of parallel files, their endings.
        form: of pairs, `tsv` or `parallel`; `trees` of trees, which can be read as pairs too; of tags, `columns` or
            `conllu`.
        advice: what to do first where nothing reads them.
    """

    kind: str | None
    what: str
    possible: frozenset[str]
    languages: tuple[str, str] | None = None
    form: str | None = None
    advice: str = "convert it to plain text, MIDI or a table of numbers first"


def looks(kind: str, what: str, *others: str, **facts: Any) -> Look:
    return Look(kind, what, frozenset((kind, *others)), **facts)


class Seen:
    def __init__(self, path: Path, head: bytes) -> None:
        self.path, self.head, self.suffix = path, head, path.suffix.lower()

    @functools.cached_property
    def arrays(self) -> list[str]:
        """The names of the arrays of an .npz file; none where it is another."""
        if not self.head.startswith(b"PK\x03\x04"):
            return []
        try:
            with zipfile.ZipFile(self.path) as archive:
                names = archive.namelist()
        except (OSError, ValueError, zipfile.BadZipFile, NotImplementedError):
            return []
        arrays = [name.removesuffix(".npy") for name in names if name.endswith(".npy")]
        return arrays if len(arrays) == len(names) else []

    @functools.cached_property
    def text(self) -> str:
        """The beginning as a text; empty of a file in a known format of bytes."""
        known = self.head.startswith(_WITHOUT_LINES)
        return "" if known else self.head.decode(of_head(self.head), errors="replace")

    @functools.cached_property
    def lines(self) -> list[str]:
        """The lines of the beginning without the last one, which may be cut."""
        lines = lines_of(self.text)
        return lines if len(self.head) < HEAD or len(lines) == 1 else lines[:-1]

    @functools.cached_property
    def rows(self) -> list[str]:
        return [line for line in self.lines if line.strip()]

    @property
    def in_two_columns(self) -> bool:
        return bool(self.rows) and all(row.count("\t") == 1 for row in self.rows)


def name_of(source: str | Path) -> str:
    """What data are called: a file by its name without the ending, a folder, the folder of a pattern, or a corpus."""
    path = Path(source)
    if set("*?[") & set(path.name) and not path.exists():
        return name_of(path.parent)
    return Path(plain_name(path)).stem if path.is_file() else path.name or path.resolve().name


def look(source: Path) -> Look | None:
    """What a file, a folder, or the beginning of the names of parallel files looks like.

    None where there is nothing of the name, or it cannot be recognised.
    """
    if source.is_file():
        return look_at_file(source)
    for _, module in _modules():
        if hasattr(module, "claim_folder") and (found := module.claim_folder(source)):
            return found
    there = sorted(source.iterdir()) if source.is_dir() else []
    named = (
        path for path in there if not path.name.startswith(".") and path.is_file() and "train" in parts_of(path.name)
    )
    if train := next(named, None):
        found = look_at_file(train)
        return found._replace(what=f"a folder whose training file looks like {found.what}")
    files, text = all_files(source), training_files(source)
    found = _alike(files)
    if found is not None and found.form in ("trees", "columns", "conllu", "joined", "tsv", "pronunciations"):
        return found._replace(what=f"{len(files)} files, which look like {found.what}")
    if found is not None and found.kind != "text" and (found.kind is not None or not source.is_dir()):
        what = f"{len(files)} files that each look like {found.what}, which are not read together"
        return Look(None, what, found.possible, advice="give one of them, or join them")
    return looks("text", f"a text in {len(text)} files") if text else None


def all_files(source: Path) -> list[Path]:
    """The files of a folder and of the folders in it, or those that a pattern finds."""
    found = source.rglob("*") if source.is_dir() else one_text(source)
    return sorted(path for path in found if path.is_file() and not path.name.startswith("."))


def _alike(files: Sequence[Path]) -> Look | None:
    """What the first, the middle and the last of some files look like; None where they differ, or there is none."""
    seen = [look_at_file(path) for path in (*files[:1], *files[len(files) // 2 :][:1], *files[-1:])]
    return seen[0] if seen and len({(one.kind, one.form) for one in seen}) == 1 else None


def _modules() -> list[tuple[str, Any]]:
    """The kinds that recognise their data, with their modules, in the order in which they are asked."""
    found = [(kind, resolve_name(f"{Data.folder}.{kind}.looks")) for kind in own_kinds(Data)]
    found += [(kind, resolve_name(one.looks)) for kind, one in added(Data).items() if one.looks is not None]
    return sorted(found, key=lambda pair: pair[1].ORDER)


def _promised(suffix: str) -> set[str]:
    """The kinds whose data have names that end so."""
    own = {kind for kind, module in _modules() if suffix in getattr(module, "SUFFIXES", ())}
    return own | {kind for kind, one in added(Data).items() if suffix in one.suffixes}


def look_at_file(path: Path) -> Look:
    """What a file looks like; where its name promises another kind, that kind too is possible.

    Of compressed files, by their name, only texts are read.
    """
    found, suffix = _look_inside(path), path.suffix.lower()
    if is_compressed(path):
        if found.kind == "text":
            return looks("text", "a compressed text")
        what = f"a compressed file which looks like {found.what}, and only texts are read so"
        return Look(None, what, frozenset(("text",)), advice="unpack it first")
    if found.kind == "text" and suffix in _OF_BYTES:
        what = f"a file called {suffix} whose bytes are nothing such (if it is a text, call it .txt)"
        found = Look(None, what, found.possible)
    return found._replace(possible=found.possible | _promised(suffix))


def _look_inside(path: Path) -> Look:
    try:
        with Files.of(path, exact=True).reading() as file:
            head = file.read(HEAD)
    except UserError:
        return looks("text", "a file that cannot be read", *members(Data))
    if not head.strip():
        return looks("text", "an empty file", *members(Data))
    seen, modules = Seen(path.with_name(plain_name(path)), head), _modules()
    found: Look | None = next(filter(None, (module.claim(seen) for _, module in modules)), None)
    if found is None:
        if what := next((what for start, what in _FORMATS.items() if head.startswith(start)), None):
            return Look(None, what, frozenset())
        found = looks("text", _text_of(seen))
    others = [kind for kind, module in modules if hasattr(module, "reads") and module.reads(seen, found)]
    return found._replace(possible=found.possible.union(others))


def _text_of(seen: Seen) -> str:
    """What a text is, in words: prose, or what is read with all its marks for want of a reader of its own."""
    rows, found = seen.rows, ""

    def are(share: float, test: Callable[[str], bool]) -> bool:
        return sum(map(test, rows)) > share * len(rows)

    if any(" --> " in row for row in rows) and are(0.4, lambda row: row[:1].isdecimal() or " --> " in row):
        found = "subtitles"
    elif rows and re.match(r"(?:\ufeff)?\s*<(?:!doctype|html|\?xml)", rows[0], re.IGNORECASE):
        found = "a document with marks of HTML or XML"
    elif are(0.9, lambda row: _JSON.match(row) is not None):
        found = "lines of JSON"
    elif are(0.9, lambda row: " ||| " in row):
        found = "pairs with ||| between"
    elif rows and seen.suffix in (".csv", ".tsv"):
        mark = next((mark for mark in "\t,;" if mark in rows[0]), ",")
        columns = len(next(csv.reader(rows[:1], delimiter=mark)))
        found = f"a table of {counted(columns, 'column')}, no series and no pairs"
    return f"text: {found}, read as it stands" if found else "text"


def parts_of(name: str) -> set[str]:
    """The parts of the name of a file between points, hyphens and underscores."""
    return set(re.split("[._-]", name))


def begins_names(source: Path) -> bool:
    """Whether names of files begin with this name and a point, hyphen or underscore, as names of parallel files do."""
    folder, beginnings = source.parent, tuple(f"{source.name}{mark}" for mark in "._-")
    return folder.is_dir() and any(path.name.startswith(beginnings) for path in folder.iterdir())
