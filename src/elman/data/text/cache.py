"""The cache folder: vocabularies, models of subwords and encoded texts are computed once and kept."""

import atexit
import contextlib
import functools
import os
import shutil
import tempfile
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path

import filelock
import msgspec

from elman.config.text import TextOptions
from elman.data.text import subwords as subword_models
from elman.data.text.block_reading import Progress
from elman.data.text.passages import clean
from elman.data.text.preparation import Counts, count_words
from elman.data.text.sources import Section
from elman.data.text.subwords import Subwords
from elman.data.text.utf8 import BYTES, read_lines
from elman.data.text.vocabulary import Vocabulary
from elman.data.text.word_counts import WordCounts
from elman.errors import UserError, notice
from elman.files import canonical_json, remove_abandoned, sha256_lines, write_atomic
from elman.formats import parse_json


class Contents(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a complete folder of the cache holds: the size and CRC-32 of each file, and the counts of each split."""

    files: dict[str, tuple[int, int]]
    splits: dict[str, Counts]


_TABLE = "vocabulary.tsv"
CONTENTS = "contents.json"
"""In a folder of the cache: its `Contents`, with their digest; written last."""


def counted(
    source: Path, sections: dict[str, Section], options: TextOptions, folder: Path, progress: Progress | None
) -> tuple[Vocabulary, Subwords | None]:
    """The vocabulary of a text, and the model of its subwords if there are any: read from `folder`, or made and kept.

    The vocabulary of bytes has all 256 of them and that of subwords has every piece, whether they occur or not. Raises
    UserError where the text or the sizes cannot be used.
    """
    folder = place(folder)
    if (found := _counted_before(folder, options)) is not None:
        return found
    with alone(folder):
        return _counted_before(folder, options) or _count(source, sections, options, folder, progress)


def _counted_before(folder: Path, options: TextOptions) -> tuple[Vocabulary, Subwords | None] | None:
    if contents(folder) is None:
        return None
    subwords = subword_models.load(folder) if options.tokenisation == "subwords" else None
    return Vocabulary.load(folder / _TABLE), subwords


def _count(
    source: Path, sections: dict[str, Section], options: TextOptions, folder: Path, progress: Progress | None
) -> tuple[Vocabulary, Subwords | None]:
    of_subwords, table = options.tokenisation == "subwords", folder / _TABLE
    subwords = subword_models.train(_cleaned(sections["train"], options), options.subwords) if of_subwords else None
    tally, start = WordCounts(folder / "counting"), 0
    for name in sections if options.vocabulary_from == "all" else ["train"]:
        count_words(sections[name], options, tally, progress, subwords, start)
        start += sections[name].end - sections[name].start
    least = 0 if options.open_vocabulary else options.min_count
    counts, rare = tally.total(least, options.max_vocabulary)
    pieces = subwords.pieces if subwords is not None else BYTES if options.tokenisation == "bytes" else ()
    for piece in pieces:
        if piece != "\n":  # it is <eos>, or a space
            counts.setdefault(piece, 0)
    try:
        vocabulary = Vocabulary.from_counts(
            counts,
            least,
            options.max_vocabulary,
            add_eos=options.eos != "none",
            add_unk=options.tokenisation == "raw",
            rare=rare,
        )
    except UserError as error:
        raise UserError(f"{source}: {error}") from None
    if subwords is not None:
        write_atomic(folder / subword_models.FILE, subwords.model)
    vocabulary.save(table)
    seal(folder, [table.name, *([] if subwords is None else [subword_models.FILE])])
    tally.remove()
    return vocabulary, subwords


def save_record(folder: Path, record: dict[str, Counts]) -> None:
    """Mark `folder` as complete; called after everything else is written."""
    seal(folder, [f"{name}.int32" for name in record], record)


def load_record(folder: Path) -> dict[str, Counts] | None:
    """The record of `save_record`; None if the folder is not complete, or damaged, which is reported."""
    found = contents(folder)
    return None if found is None else found.splits


def seal(folder: Path, names: Iterable[str], splits: dict[str, Counts] | None = None) -> None:
    """Mark `folder` as complete with these files; called after they are written."""
    sums = {name: _sum_of(folder / name) for name in names}
    found = Contents(files=sums, splits=splits or {})
    sealed = {"digest": sha256_lines(canonical_json(found)), "contents": msgspec.to_builtins(found)}
    write_atomic(folder / CONTENTS, msgspec.json.format(msgspec.json.encode(sealed)))


def contents(folder: Path) -> Contents | None:
    """What `seal` recorded; None if the folder is not complete, or its files are not those, which is reported."""
    path = folder / CONTENTS
    if not path.is_file():
        return None
    try:
        sealed = parse_json(path.read_bytes())
        found = msgspec.convert(sealed["contents"], Contents)
        sums = ((name, wanted, folder / name) for name, wanted in found.files.items())
        damaged = [name for name, wanted, file in sums if not file.is_file() or _sum_of(file) != wanted]
        if sealed["digest"] != sha256_lines(canonical_json(found)):
            damaged = [CONTENTS]
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        damaged = [CONTENTS]
    if damaged:
        notice(f"{folder / damaged[0]}: this file of the cache is damaged; it is made again from the text")
        return None
    return found


def _sum_of(path: Path) -> tuple[int, int]:
    """The size of a file and its CRC-32, which takes a quarter of the time of SHA-256; it finds damage, not forgery."""
    size, crc = 0, 0
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            size, crc = size + len(block), zlib.crc32(block, crc)
    return size, crc


def place(folder: Path) -> Path:
    """A folder of the cache; where it is not complete and cannot be written, one that ends with the process."""
    with contextlib.suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
    if os.access(folder, os.W_OK):
        remove_abandoned(folder)
        return folder
    if contents(folder) is not None:
        return folder
    notice(
        f"{folder.parents[1]}: the cache cannot be written; texts are encoded into a temporary folder each time, unless"
        " the variable ELMAN_CACHE names a folder that can"
    )
    return _temporary() / folder.parent.name / folder.name


@contextlib.contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Within the block no other process fills the same folder of the cache; where one does, its end is waited for."""
    lock = filelock.FileLock(folder / ".lock", thread_local=False)
    try:
        lock.acquire(blocking=False)
    except filelock.Timeout:
        notice(f"{folder}: another process writes this part of the cache; it is waited for")
        lock.acquire()
    except (OSError, NotImplementedError):  # a file system without locks, or one that cannot be written
        yield
        return
    try:
        yield
        _remove(lock)  # who waits for it finds the folder complete
    except UserError:
        _remove(lock)  # and the same error
        raise
    finally:
        lock.release()


def _remove(lock: filelock.BaseFileLock) -> None:
    with contextlib.suppress(OSError):
        Path(lock.lock_file).unlink()


@functools.cache
def _temporary() -> Path:
    folder = tempfile.mkdtemp(prefix="elman-cache-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


def _cleaned(section: Section, options: TextOptions) -> Iterator[str]:
    """The lines of a section as subwords are found in them."""
    for line in read_lines(section.files, section.start, section.stop, options):
        text = clean(line.text, options).removesuffix("\n")
        yield text.lower() if options.lowercase else text
