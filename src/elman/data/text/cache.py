"""The cache folder: vocabularies, models of subwords and encoded texts are computed once and kept."""

import os
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import numpy as np

from elman.config.text import TextOptions
from elman.data.text import subwords as subword_models
from elman.data.text.passages import Passage, clean, read_passages
from elman.data.text.sources import Section
from elman.data.text.subwords import Subwords
from elman.data.text.utf8 import BYTES, read_lines
from elman.data.text.vocabulary import Vocabulary
from elman.errors import UserError
from elman.files import replacing, write_atomic

Progress = Callable[[str, int, int], None]
"""Receives what is being done, the bytes done and all bytes."""

_EVERY = 1000


class Counts(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The counts of an encoded split, as `splits.json` keeps them, and the digest of the source file.

    Attributes:
        unknown: how many of them are `<unk>`, written in the text or standing for a word that is not known.
        characters, num_bytes, num_words, unseparated: sums over the passages (`elman.data.text.passages.Passage`); with
            many letters in clauses without spaces, `unseparated`, `num_words` is meaningless.
        lines: how many lines were read (one longer than 64 KiB counts as several).
    """

    tokens: int
    unknown: int
    characters: int
    num_bytes: int
    num_words: int
    unseparated: int
    lines: int
    sha256: str


def cache_folder() -> Path:
    """`$ELMAN_CACHE`, or `$XDG_CACHE_HOME/elman`, or `~/.cache/elman`."""
    if own := os.environ.get("ELMAN_CACHE"):
        return Path(own).expanduser()
    shared = os.environ.get("XDG_CACHE_HOME")
    return (Path(shared) if shared else Path.home() / ".cache") / "elman"


def counted(
    source: Path, sections: dict[str, Section], options: TextOptions, folder: Path, progress: Progress | None
) -> tuple[Vocabulary, Subwords | None]:
    """The vocabulary of a text, and the model of its subwords if there are any: read from `folder`, or made and kept.

    The vocabulary of bytes has all 256 of them and that of subwords has every piece, whether they occur or not. Raises
    UserError where the text or the sizes cannot be used.
    """
    table, of_subwords = folder / "vocabulary.tsv", options.tokenisation == "subwords"
    if table.is_file():
        return Vocabulary.load(table), subword_models.load(folder) if of_subwords else None
    subwords = subword_models.train(_cleaned(sections["train"], options), options.subwords) if of_subwords else None
    counts: Counter[str] = Counter()
    for name in sections if options.vocabulary_from == "all" else ["train"]:
        for passage in _read(sections[name], options, "counting words", progress, subwords):
            counts.update(passage.words)
    pieces = subwords.pieces if subwords is not None else BYTES if options.tokenisation == "bytes" else ()
    for piece in pieces:
        if piece != "\n":  # it is <eos>, or a space
            counts.setdefault(piece, 0)
    try:
        vocabulary = Vocabulary.from_counts(
            counts,
            0 if options.open_vocabulary else options.min_count,
            options.max_vocabulary,
            add_eos=options.eos != "none",
            add_unk=options.tokenisation == "raw",
        )
    except UserError as error:
        raise UserError(f"{source}: {error}") from None
    if subwords is not None:
        write_atomic(folder / subword_models.FILE, subwords.model)
    vocabulary.save(table)  # last: where it exists the folder is complete
    return vocabulary, subwords


def encode_section(
    section: Section,
    sha256: str,
    vocabulary: Vocabulary,
    options: TextOptions,
    path: Path,
    progress: Progress | None,
    subwords: Subwords | None = None,
) -> Counts:
    """Write the ids of a section to `path` as little-endian int32, completely or not at all.

    Raises UserError where the text is bad, the folder cannot be written, or a word is unknown and there is no `<unk>`.
    """
    counts = Counter(dict.fromkeys(Counts.__struct_fields__[:-1], 0))
    kept = ("characters", "num_bytes", "num_words", "unseparated")
    with replacing(path) as temporary, temporary.open("wb") as file:
        for passage in _read(section, options, "encoding", progress, subwords):
            ids = vocabulary.encode(passage.words)
            file.write(ids.astype("<i4").tobytes())
            unknown = 0 if vocabulary.unk is None else int(np.count_nonzero(ids == vocabulary.unk))
            counts.update(tokens=len(ids), unknown=unknown, lines=1, **{name: getattr(passage, name) for name in kept})
    return Counts(**counts, sha256=sha256)


def save_record(folder: Path, record: dict[str, Counts]) -> None:
    """Mark `folder` as complete; called after everything else is written."""
    write_atomic(folder / "splits.json", msgspec.json.format(msgspec.json.encode(record)))


def load_record(folder: Path) -> dict[str, Counts] | None:
    """The record of `save_record`; None if the folder is not complete."""
    try:
        record = msgspec.json.decode((folder / "splits.json").read_bytes(), type=dict[str, Counts])
        whole = all((folder / f"{name}.int32").stat().st_size == 4 * split.tokens for name, split in record.items())
    except (OSError, msgspec.MsgspecError):
        return None
    return record if whole else None


def _read(
    section: Section, options: TextOptions, what: str, progress: Progress | None, subwords: Subwords | None
) -> Iterator[Passage]:
    stop = section.path.stat().st_size if section.stop is None else section.stop
    total, done = stop - section.start, 0
    for number, passage in enumerate(read_passages(section.path, options, section.start, section.stop, subwords)):
        yield passage
        done += passage.num_bytes
        if progress is not None and number % _EVERY == 0:
            progress(f"{what}: {section.path.name}", min(done, total), total)
    if progress is not None:
        progress(f"{what}: {section.path.name}", total, total)


def _cleaned(section: Section, options: TextOptions) -> Iterator[str]:
    """The lines of a section as subwords are found in them."""
    for line in read_lines(section.path, section.start, section.stop, options):
        text = clean(line.text, options).removesuffix("\n")
        yield text.lower() if options.lowercase else text
