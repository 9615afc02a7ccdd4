"""A text prepared: its words counted and its ids written, block by block, in constant memory.

One process at a time prepares a text. What is written is complete or absent; a preparation that was killed begins
again.
"""

from collections import Counter
from collections.abc import Collection, Iterator
from pathlib import Path

import numpy as np

from elman.config.text import TextOptions
from elman.data.text import subwords as subword_models
from elman.data.text.block_reading import SUMS, BlockReader, Progress, read_blocks
from elman.data.text.cache import CONTENTS, Counts, contents, place, seal
from elman.data.text.lacking import require_known
from elman.data.text.passages import clean, first_token, only_blank_lines, passages
from elman.data.text.sources import Section
from elman.data.text.subwords import Subwords
from elman.data.text.utf8 import BYTES, read_lines
from elman.data.text.vocabulary import EOS, Vocabulary
from elman.data.text.word_counts import WordCounts
from elman.errors import UserError
from elman.files import explain, replacing, temporary_folder, write_atomic
from elman.jobs.locks import waiting_for

_TABLE = "vocabulary.tsv"


def vocabulary_of(
    source: Path, sections: dict[str, Section], options: TextOptions, folder: Path, progress: Progress | None
) -> tuple[Vocabulary, Subwords | None]:
    """The vocabulary of a text, and the model of its subwords if there are any: read from `folder`, or made and kept.

    The vocabulary of bytes has all 256 of them and that of subwords has every piece, whether they occur or not. Raises
    UserError where the text or the sizes cannot be used.
    """
    folder = place(folder)
    if contents(folder) is None:
        with waiting_for(folder / CONTENTS):
            if contents(folder) is None:
                return _make_vocabulary(source, sections, options, folder, progress)
    subwords = subword_models.load(folder) if options.tokenisation == "subwords" else None
    return Vocabulary.load(folder / _TABLE), subwords


def _make_vocabulary(
    source: Path, sections: dict[str, Section], options: TextOptions, folder: Path, progress: Progress | None
) -> tuple[Vocabulary, Subwords | None]:
    subwords = None
    if options.tokenisation == "subwords":
        subwords = subword_models.train(_cleaned(sections["train"], options), options.subwords)
    least = 0 if options.open_vocabulary else options.min_count
    try:
        with temporary_folder(folder / "counting") as written:
            tally = WordCounts(written)
            for name in sections if options.vocabulary_from == "all" else ["train"]:
                count_words(sections[name], options, tally, progress, subwords)
            counts, rare = tally.total(least, options.max_vocabulary)
    except OSError as error:
        raise UserError(explain(folder / _TABLE, error)) from error
    for piece in subwords.pieces if subwords is not None else BYTES if options.tokenisation == "bytes" else ():
        if piece != "\n":  # it is <eos>, or a space
            counts.setdefault(piece, 0)
    rules = {"add_eos": options.eos != "none", "add_unk": options.tokenisation == "raw"}
    try:
        vocabulary = Vocabulary.from_counts(counts, least, options.max_vocabulary, **rules, rare=rare)
    except UserError as error:
        raise UserError(f"{source}: {error}") from None
    if subwords is not None:
        write_atomic(folder / subword_models.FILE, subwords.model)
    vocabulary.save(folder / _TABLE)
    seal(folder, [_TABLE, *([] if subwords is None else [subword_models.FILE])])
    return vocabulary, subwords


def _cleaned(section: Section, options: TextOptions) -> Iterator[str]:
    """The lines of a section as subwords are found in them."""
    for line in read_lines(section.files, section.start, section.stop, options):
        text = clean(line.text, options).removesuffix("\n")
        yield text.lower() if options.lowercase else text


def count_words(
    section: Section,
    options: TextOptions,
    counts: WordCounts,
    progress: Progress | None = None,
    subwords: Subwords | None = None,
) -> None:
    """Add the words of a section to counts; raises UserError where the text cannot be used."""
    found = False
    for tokens in read_blocks(BlockReader(section, options, subwords), "count", "counting words", progress):
        found = found or _has_words(tokens)
        counts.add(tokens)
    if not found:
        raise only_blank_lines(section.files, section.start, section.stop)


def encoded(
    sections: dict[str, tuple[Section, str]],
    vocabulary: Vocabulary,
    options: TextOptions,
    folder: Path,
    progress: Progress | None,
    subwords: Subwords | None = None,
) -> dict[str, Counts]:
    """The counts of each section of a text, with the digest of its file, whose ids `folder` has as NAME.int32."""
    found = contents(folder)
    if found is not None:
        return found.splits
    with waiting_for(folder / CONTENTS):
        if (found := contents(folder)) is not None:
            return found.splits
        counts = {
            name: encode(section, sha256, vocabulary, options, folder / f"{name}.int32", progress, subwords)
            for name, (section, sha256) in sections.items()
        }
        seal(folder, [f"{name}.int32" for name in counts], counts)
    return counts


def encode(
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
    counts, has_words = Counter[str](), False
    reader = BlockReader(section, options, subwords)
    with replacing(path) as temporary, temporary.open("wb") as file:
        for words, numbers, sums in read_blocks(reader, "number", "encoding", progress):
            require_known(words, vocabulary, options, section)
            ids = vocabulary.encode(words)
            lacks = np.fromiter((word not in vocabulary.ids for word in words), np.bool_, len(words))
            counts.update(sums, tokens=len(numbers), unknown=int(np.count_nonzero(lacks[numbers])))
            file.write(ids[numbers].astype("<i4").tobytes())
            has_words = has_words or _has_words(words)
        if not has_words:
            raise only_blank_lines(section.files, section.start, section.stop)
    lines = read_lines(section.files, section.start, section.stop, options)
    first = first_token(passages(lines, options, subwords), options, vocabulary)
    return Counts(**{name: counts[name] for name in ("tokens", "unknown", *SUMS, "lines")}, first=first, sha256=sha256)


def _has_words(tokens: Collection[str]) -> bool:
    """Whether different tokens are more than `<eos>`."""
    return len(tokens) > (EOS in tokens)
