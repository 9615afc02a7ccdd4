"""A corpus and its splits: files of a folder, or ranges of one text; each in one file or many."""

import contextlib
import dataclasses
import glob
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec

from elman.config.text import TextOptions
from elman.data.text.files import COMPRESSED, Files, plain_name
from elman.errors import UserError, notice

SPLITS = ("train", "valid", "test")
ALIASES = {"train": ("train",), "valid": ("valid", "validation", "val", "dev"), "test": ("test",)}
"""What files, folders and their parts are called that hold a split; the first that is there counts."""

Options = TypeVar("Options")
Found = TypeVar("Found")


def named(splits: Mapping[str, Found], name: str, source: str | Path, advice: str = "") -> Found:
    """The split of this name; raises UserError, whose message ends with `advice`, where the source does not have it."""
    if name not in splits:
        raise UserError(f"{source}: no {name} split; it has {', '.join(splits)}{advice}")
    return splits[name]


@dataclasses.dataclass(frozen=True, eq=False)
class Corpus(ABC, Generic[Options, Found]):
    """A corpus as a model reads it: its name, where it is from, the options it was read with, and its splits."""

    name: str
    source: str
    options: Options
    splits: dict[str, Found]

    def split(self, name: str) -> Found:
        return named(self.splits, name, self.source)

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
    """The bytes of `files`, which are read as one, from `start` to `stop` (`None`: to the end)."""

    files: Files
    start: int = 0
    stop: int | None = None

    @property
    def end(self) -> int:
        return self.files.size if self.stop is None else self.stop

    @property
    def sha256(self) -> str:
        """The digest of the whole text that it is a part of."""
        return self.files.measure.sha256


_SHUFFLED = "monolingual.tokenized.shuffled"
ONE_BILLION_WORD = {
    "train": (f"training-{_SHUFFLED}", r"news\.en-\d{5}-of-\d{5}"),
    "valid": (f"heldout-{_SHUFFLED}", r"news\.en\.heldout-00001-of-000\d\d"),
    "test": (f"heldout-{_SHUFFLED}", r"news\.en\.heldout-00000-of-000\d\d"),
}
"""The usual split of the shards of that benchmark (Jozefowicz et al. 2016): for each split a folder, and its files."""


def find_sections(
    source: Path, options: TextOptions, as_utf8: Callable[[Path], Path] = lambda path: path
) -> dict[str, Section]:
    """The splits that `source` has, by name, in the order train, valid, test; `as_utf8` maps files to what is read.

    In a folder a split is the file `train.txt` (`valid.txt`, `test.txt`), the files of the folder `train`, or those
    that have the split's name (`ALIASES`) as a part of their own between points, hyphens and underscores:
    `ptb.train.txt`, `wiki.valid.tokens`; there may be several if their names differ in numbers alone. The folder of One
    Billion Word has its own names (`ONE_BILLION_WORD`). A single file, files that a pattern such as `news/*.txt.gz`
    finds, and a folder of files whose names differ in numbers alone, are one text, which is cut by `cut`. A byte order
    mark is a part of a text where `eos` is `exact`. Where a folder lacks only `valid` or `test`, it is the last
    `valid_fraction` or `test_fraction` of the training text, which a notice says.

    Raises UserError where there is no such path, or a folder has two files for a split.
    """

    def read(paths: Sequence[Path]) -> Files:
        return Files(tuple(map(as_utf8, paths)), options.eos == "exact")

    if source.is_dir():
        found = {split: _find(source, split) for split in SPLITS}
        if any(found.values()):
            return _with_third(
                {split: Section(read(paths)) for split, paths in found.items() if paths}, source, options
            )
    if paths := one_text(source):
        return cut(read(paths), options)
    if source.is_dir():
        return {}
    raise UserError(
        f"{source}: no such file or folder, and no known corpus has this name; give a folder with train.txt, "
        "valid.txt and test.txt, one text file, or a name that `elman data list` shows"
    )


def _with_third(found: dict[str, Section], source: Path, options: TextOptions) -> dict[str, Section]:
    """Splits of a folder; where only `valid` or `test` is missing it is the last share of the training text.

    As where a text is cut, it begins at a whole unit; a notice reports it. Where nothing begins there it stays missing.
    """
    lacking = [split for split in SPLITS if split not in found]
    if lacking not in (["valid"], ["test"]) or not (share := _shares(options)[lacking[0]]):
        return found
    split, train = lacking[0], found["train"].files
    start = next_unit(train, round(train.size * (1 - share)), options.eos)
    if not 0 < start < train.size:
        return found
    notice(f"{source}: no {split} split: the last {share:.2g} of the training text is held out for it")
    found |= {"train": Section(train, 0, start), split: Section(train, start, train.size)}
    return {split: found[split] for split in SPLITS}


def one_text(source: Path) -> list[Path]:
    """The files of one text that is to be cut: a file, shards in a folder, or what a pattern of names finds."""
    if source.is_file():
        return [source]
    if source.is_dir():
        shards = _files_of(source)
        return shards if len(shards) > 1 and _are_shards(shards) else []
    found = glob.iglob(str(source), recursive=True) if glob.has_magic(str(source)) else ()  # noqa: PTH207 - any path
    return sorted(path for path in map(Path, found) if path.is_file())


def training_files(source: Path) -> list[Path]:
    """The files of the training text in a folder, else as `one_text` finds them; none where that is not clear."""
    with contextlib.suppress(UserError):
        return (_find(source, "train") if source.is_dir() else []) or one_text(source)
    return []


_UNITS = {"line": "line", "exact": "line", "paragraph": "paragraph", "none": "word"}
_SMALL = 0.2  # of its share of a text, what a split has at least unless it is reported
_ENOUGH = 2000  # bytes of which a text is long enough to be cut, were it not for its long lines or paragraphs


def require_all(sections: dict[str, Section], source: Path, options: TextOptions) -> None:
    """Raises UserError where one of the three splits is missing, as where a text is too short to be cut."""
    for split in SPLITS:
        if split in sections:
            continue
        whole = next((section.files for section in sections.values() if section.stop is not None), None)
        if whole is not None and _shares(options)[split] > 0:
            unit, empty = _UNITS[options.eos], f"the {split} split would be empty"
            if options.eos == "none" or whole.size < _ENOUGH:
                raise UserError(
                    f"{source}: too short to be cut by whole {unit}s: {empty}; give more text, or a folder with"
                    " train.txt, valid.txt and test.txt"
                )
            few = "it is one line, so" if next_unit(whole, 1, "line") == whole.size else f"it has so few {unit}s"
            raise UserError(
                f"{source}: cannot be cut by whole {unit}s: {few} that {empty}; cut it by words instead:"
                " --set data.eos=none"
            )
        if whole is None and source.is_dir():
            names = ", ".join(sorted(path.name for path in source.iterdir())) or "nothing"
            raise UserError(
                f"{source}: no {split} split; looked for {split}.txt, or one file with {split!r} as a "
                f"part of its name such as corpus.{split}.txt; the folder has {names}"
            )
        raise UserError(f"{source}: no {split} split; set valid_fraction and test_fraction so that all three have text")
    for split, section in sections.items():
        size, meant = section.end - section.start, _shares(options)[split] * section.files.size
        if section.stop is not None and size < _SMALL * meant:
            what = f"the {split} split has {size:,} bytes, where its share of the text is {meant:,.0f}"
            remedy = "" if options.eos == "none" else "; --set data.eos=none cuts at words"
            notice(f"{source}: {what}, since {_UNITS[options.eos]}s are not cut{remedy}")


def _shares(options: TextOptions) -> dict[str, float]:
    valid, test = options.valid_fraction, options.test_fraction
    return {"train": round(1 - valid - test, 9), "valid": valid, "test": test}


def cut(files: Files, options: TextOptions) -> dict[str, Section]:
    """Cut a text in order into train, valid and test, at whole units; together the splits are the text.

    In a text of S bytes the train split is what precedes the valid split; the valid split begins with the first line
    that starts at byte S (1 - valid_fraction - test_fraction) or later, and the test split with the first line that
    starts at S (1 - test_fraction) or later. With `eos = "paragraph"` they begin after the first blank line from there
    on, with `eos = "none"` after the first white space. A split whose share is 0, or in which nothing begins, does not
    exist.
    """
    size, shares, valid, test = files.size, _shares(options), options.valid_fraction, options.test_fraction
    edge = {"train": 0, "valid": round(size * (1 - valid - test)), "test": round(size * (1 - test))}
    wanted = [split for split in SPLITS if shares[split] > 0]
    starts = [next_unit(files, edge[split], options.eos) if split != wanted[0] else 0 for split in wanted]
    return {
        split: Section(files, start, stop)
        for split, start, stop in zip(wanted, starts, [*starts[1:], size], strict=True)
        if start < stop or not size
    }


def _find(folder: Path, split: str) -> list[Path]:
    """The files of a split; raises UserError where it is not clear which they are."""
    return next(filter(None, (_called(folder, split, name) for name in ALIASES[split])), [])


def _called(folder: Path, split: str, name: str) -> list[Path]:
    """The files of a split that has this name."""
    exact = [path for end in ("", *COMPRESSED) if (path := folder / f"{name}.txt{end}").is_file()]
    if exact[:1] == [folder / f"{name}.txt"]:
        return exact[:1]
    inner, names = ONE_BILLION_WORD[split]
    if shards := [path for path in _files_of(folder / inner) if re.fullmatch(names, plain_name(path))]:
        return shards
    if shards := _files_of(folder / name):
        return shards
    named = exact or [path for path in _files_of(folder) if name in re.split("[._-]", plain_name(path))]
    if len(named) > 1 and not _are_shards(named):
        found = ", ".join(path.name for path in named)
        raise UserError(f"{folder}: {len(named)} files for the {split} split: {found}; name the one to use {split}.txt")
    return named


def _files_of(folder: Path) -> list[Path]:
    if not folder.is_dir():
        return []
    return [path for path in sorted(folder.iterdir()) if path.is_file() and not path.name.startswith(".")]


def _are_shards(paths: Sequence[Path]) -> bool:
    """Whether the names of files differ in numbers alone, compression apart."""
    names = [plain_name(path) for path in paths]
    return len({re.sub(r"\d+", "0", name) for name in names}) == 1 and len(set(names)) == len(names)


def next_unit(files: Files, target: int, eos: str) -> int:
    """The offset of the first unit from byte `target` on; the text's size if there is none."""
    at = max(0, target - 1)
    with files.reading(at) as file:
        if eos == "none":
            while block := file.read(1 << 16):
                at += len(block)
                if space := re.search(rb"\s", block):
                    return at - len(block) + space.end()
            return at
        at += len(file.readline())
        if eos == "paragraph":
            while line := file.readline():
                at += len(line)
                if line.isspace():
                    break
        return at
