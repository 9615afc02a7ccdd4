"""A corpus and its splits: three files of a folder, or three ranges of one file."""

import dataclasses
import re
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec

from elman.config.text import TextOptions
from elman.errors import UserError

SPLITS = ("train", "valid", "test")
Options = TypeVar("Options")
Found = TypeVar("Found")


@dataclasses.dataclass(frozen=True)
class Corpus(ABC, Generic[Options, Found]):
    """A corpus as a model reads it: its name, where it is from, the options it was read with, and its splits."""

    name: str
    source: str
    options: Options
    splits: dict[str, Found]

    def split(self, name: str) -> Found:
        """The split of this name; raises UserError where the corpus does not have it."""
        if name not in self.splits:
            raise UserError(f"{self.source}: no {name} split; it has {', '.join(self.splits)}")
        return self.splits[name]

    @property
    @abstractmethod
    def digest(self) -> str:
        """SHA-256 over the options and the data."""

    @abstractmethod
    def facts(self) -> dict[str, Any]:
        """What `describe` says of the data, for JSON; `splits` among it."""

    def describe(self) -> dict[str, Any]:
        """The record that a run keeps of its data, for JSON."""
        options = msgspec.to_builtins(self.options)
        return {"name": self.name, "source": self.source, **options, **self.facts(), "digest": self.digest}


@dataclasses.dataclass(frozen=True)
class Section:
    """The bytes of `path` from `start` to `stop` (`None`: to the end)."""

    path: Path
    start: int = 0
    stop: int | None = None


def find_sections(
    source: Path, options: TextOptions, as_utf8: Callable[[Path], Path] = lambda path: path
) -> dict[str, Section]:
    """The splits that `source` has, by name, in the order train, valid, test; `as_utf8` maps files to what is read.

    In a folder a split is the file `train.txt` (`valid.txt`, `test.txt`), or else the one file that has the
    split's name as a part of its own between points, hyphens and underscores: `ptb.train.txt`,
    `wiki.valid.tokens`. A single file is cut by `cut`.

    Raises UserError where there is no such path, a folder has two files for a split, or a file is too short to be cut.
    """
    if source.is_dir():
        found = {split: _find(source, split) for split in SPLITS}
        return {split: Section(as_utf8(path)) for split, path in found.items() if path is not None}
    if source.is_file():
        return cut(as_utf8(source), options, str(source))
    raise UserError(
        f"{source}: no such file or folder, and no known corpus has this name; give a folder with train.txt, "
        "valid.txt and test.txt, one text file, or a name that `elman data list` shows"
    )


def require_all(sections: dict[str, Section], source: Path) -> None:
    """Raises UserError where one of the three splits is missing."""
    for split in SPLITS:
        if split in sections:
            continue
        if source.is_dir():
            names = ", ".join(sorted(path.name for path in source.iterdir())) or "nothing"
            raise UserError(
                f"{source}: no {split} split; looked for {split}.txt, or one file with {split!r} as a "
                f"part of its name such as corpus.{split}.txt; the folder has {names}"
            )
        raise UserError(f"{source}: no {split} split; set valid_fraction and test_fraction so that all three have text")


def cut(path: Path, options: TextOptions, name: str | None = None) -> dict[str, Section]:
    """Cut one file in order into train, valid and test, at whole units; raises UserError where a split would be empty.

    The error calls the file by its `name`, if it has another one than its path.

    In a file of S bytes the train split is what precedes the valid split; the valid split begins with the first line
    that starts at byte S (1 - valid_fraction - test_fraction) or later, and the test split with the first line that
    starts at S (1 - test_fraction) or later. With `eos = "paragraph"` they begin after the first blank line from there
    on, with `eos = "none"` after the first white space. A split whose share is 0 does not exist.
    """
    size = path.stat().st_size
    valid, test = options.valid_fraction, options.test_fraction
    shares = {"train": round(1 - valid - test, 9), "valid": valid, "test": test}
    edge = {"train": 0, "valid": round(size * (1 - valid - test)), "test": round(size * (1 - test))}
    wanted = [split for split in SPLITS if shares[split] > 0]
    starts = [_next_unit(path, edge[split], options.eos) if split != wanted[0] else 0 for split in wanted]
    sections = {
        split: Section(path, start, stop)
        for split, start, stop in zip(wanted, starts, [*starts[1:], size], strict=True)
    }
    for split, section in sections.items():
        if size and section.start == section.stop:
            raise UserError(f"{name or path}: {_too_short(path, size, options.eos, split)}")
    return sections


_UNITS = {"line": "line", "exact": "line", "paragraph": "paragraph", "none": "word"}
_ENOUGH = 2000
"""Bytes of which a text is long enough to be cut, were it not for its long lines or paragraphs."""


def _too_short(path: Path, size: int, eos: str, split: str) -> str:
    cut, empty = f"cut by whole {_UNITS[eos]}s", f"the {split} split would be empty"
    if eos == "none" or size < _ENOUGH:
        return f"too short to be {cut}: {empty}; give more text, or a folder with train.txt, valid.txt and test.txt"
    few = "it is one line, so" if _next_unit(path, 1, "line") == size else f"it has so few {_UNITS[eos]}s"
    return f"cannot be {cut}: {few} that {empty}; cut it by words instead: --set data.eos=none"


def _find(folder: Path, split: str) -> Path | None:
    exact = folder / f"{split}.txt"
    if exact.is_file():
        return exact
    files = [path for path in sorted(folder.iterdir()) if path.is_file() and not path.name.startswith(".")]
    named = [path for path in files if split in re.split("[._-]", path.name)]
    if len(named) > 1:
        names = ", ".join(path.name for path in named)
        raise UserError(f"{folder}: {len(named)} files for the {split} split: {names}; name the one to use {split}.txt")
    return named[0] if named else None


def _next_unit(path: Path, target: int, eos: str) -> int:
    """The offset of the first unit from byte `target` on; the file's size if there is none."""
    with path.open("rb") as file:
        file.seek(max(0, target - 1))
        if eos == "none":
            while block := file.read(1 << 16):
                if space := re.search(rb"\s", block):
                    return file.tell() - len(block) + space.end()
            return file.tell()
        file.readline()
        if eos == "paragraph":
            while (line := file.readline()) and not line.isspace():
                pass
        return file.tell()
