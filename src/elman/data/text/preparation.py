"""A text prepared: its words counted and its ids written, block by block, in constant memory.

One process at a time prepares a text. What is written is complete or absent; a preparation that was killed begins
again. Counts are over the whole text: nothing is estimated or forgotten.
"""

import zlib
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from elman.config.text import TextOptions
from elman.data.text.block_reading import SUMS, BlockReader, Progress, read_blocks
from elman.data.text.cache import Encoded, Made, kept
from elman.data.text.lacking import require_known
from elman.data.text.passages import clean, first_token, only_blank_lines, passages
from elman.data.text.sources import Section
from elman.data.text.utf8 import BYTES, read_lines
from elman.data.text.vocabulary import EOS, NO_WORDS, TABLE, UNK, Rare, Vocabulary, escaped, unescaped
from elman.errors import UserError
from elman.files import explain, replacing, temporary_folder

if TYPE_CHECKING:
    from elman.data.text.subwords import Subwords

WORDS = 1 << 20  # different words that are held in memory while they are counted, some 150 MB
PARTS = 16  # files that words are divided among, by a sum over the word; one of them is added up at a time
_COUNT = 48
"""Bits of a count below the place of its word in the order of first appearance: both are one number, which adds up."""


class WordCounts:
    """Counts that grow as a text is read; an empty `folder` takes what does not fit, which is added up part by part."""

    def __init__(self, folder: Path, most: int | None = None) -> None:
        self._folder, self._most, self._written = folder, most or WORDS, 0
        self._held: Counter[str] = Counter()

    def add(self, counts: Mapping[str, int]) -> None:
        self._held.update(counts)
        if len(self._held) >= self._most:
            self._write()

    def total(self, min_count: int, max_size: int | None) -> tuple[Counter[str], Rare]:
        """The counts of all words in order of first appearance, and what was left out of them.

        Words below `min_count` are left out, and the rarest beyond `max_size`, where counts have been written.
        """
        if not self._written:
            return self._held, NO_WORDS
        self._write()
        kept, rare, tokens, counted = dict[str, int](), 0, 0, (1 << _COUNT) - 1
        for part in range(PARTS):
            added = dict[str, int]()  # the counts of the words of a file, each under the first place of its word
            with (self._folder / f"{part}.tsv").open(encoding="utf-8", newline="\n") as file:
                for row in file:
                    place, count, word = row.removesuffix("\n").split("\t")
                    word = unescaped(word)
                    added[word] = added.get(word, int(place) << _COUNT) + int(count)
            below = [word for word, held in added.items() if held & counted < min_count and word not in (EOS, UNK)]
            tokens += sum(added.pop(word) & counted for word in below)
            rare += len(below)
            kept |= added
            if max_size is not None and len(kept) > 2 * (max_size + 1):
                ranked = sorted(kept, key=lambda word: (word not in (EOS, UNK), -(kept[word] & counted), kept[word]))
                rare += len(ranked) - max_size - 3
                tokens += sum(kept[word] & counted for word in ranked[max_size + 3 :])
                kept = {word: kept[word] for word in ranked[: max_size + 3]}
        in_order = sorted(kept, key=kept.__getitem__)
        return Counter({word: kept[word] & counted for word in in_order}), Rare(rare, tokens)

    def _write(self) -> None:
        """Add the counts in memory to the files, each with the place of its word."""
        rows: list[list[str]] = [[] for _ in range(PARTS)]
        for place, (word, count) in enumerate(self._held.items(), start=self._written):
            rows[zlib.crc32(word.encode()) % PARTS].append(f"{place}\t{count}\t{escaped(word)}\n")
        for part, some in enumerate(rows):
            with (self._folder / f"{part}.tsv").open("ab") as file:
                file.write("".join(some).encode())
        self._written += len(self._held)
        self._held.clear()


def vocabulary_of(
    source: Path, sections: dict[str, Section], options: TextOptions, folder: Path, progress: Progress | None
) -> "tuple[Vocabulary, Subwords | None]":
    """The vocabulary of a text, and the model of its subwords if there are any: read from `folder`, or made and kept.

    A vocabulary of bytes has all 256, and one of subwords has every piece, whether they occur or not. Raises
    UserError where the text or the sizes cannot be used.
    """
    by_subwords = options.tokenisation == "subwords"

    def make(folder: Path) -> Made:
        subwords = None
        if by_subwords:
            from elman.data.text.subwords import train

            subwords = train(_cleaned(sections["train"], options), options.subwords)
        least = 0 if options.open_vocabulary else options.min_count
        try:
            with temporary_folder(folder / "counting") as written:
                tally = WordCounts(written)
                for name in sections if options.vocabulary_from == "all" else ["train"]:
                    count_words(sections[name], options, tally, progress, subwords)
                counts, rare = tally.total(least, options.max_vocabulary)
        except OSError as error:
            raise UserError(explain(folder / TABLE, error)) from error
        for piece in subwords.pieces if subwords is not None else BYTES if options.tokenisation == "bytes" else ():
            if piece != "\n":  # it is <eos>, or a space
                counts.setdefault(piece, 0)
        rules = {"add_eos": options.eos != "none", "add_unk": options.tokenisation == "raw"}
        try:
            vocabulary = Vocabulary.from_counts(counts, least, options.max_vocabulary, **rules, rare=rare)
        except UserError as error:
            raise UserError(f"{source}: {error}") from None
        vocabulary.save(folder / TABLE)
        return [TABLE] if subwords is None else [TABLE, subwords.save(folder)], {}

    folder, _ = kept(folder, make)
    vocabulary = Vocabulary.load(folder / TABLE)
    if not by_subwords:
        return vocabulary, None
    from elman.data.text.subwords import load

    return vocabulary, load(folder)


def _cleaned(section: Section, options: TextOptions) -> Iterator[str]:
    """The lines of a section, cleaned, from which subwords are learnt."""
    for line in read_lines(section.files, section.start, section.stop, options):
        text = clean(line.text, options).removesuffix("\n")
        yield text.lower() if options.lowercase else text


def count_words(
    section: Section,
    options: TextOptions,
    counts: WordCounts,
    progress: Progress | None = None,
    subwords: "Subwords | None" = None,
) -> None:
    """Add the words of a section to counts; raises UserError where the text cannot be used."""
    found = False
    for tokens in read_blocks(BlockReader(section, options, subwords), "count", "counting words", progress):
        found = found or _has_words(tokens)
        counts.add(tokens)
    if not found:
        raise only_blank_lines(section.files, section.start, section.stop)


def encode(
    section: Section,
    vocabulary: Vocabulary,
    options: TextOptions,
    path: Path,
    progress: Progress | None,
    subwords: "Subwords | None" = None,
) -> Encoded:
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
    found = {name: counts[name] for name in ("tokens", "unknown", *SUMS, "lines")}
    return Encoded(**found, first=first, sha256=section.sha256)


def _has_words(tokens: Collection[str]) -> bool:
    """Whether different tokens are more than `<eos>`."""
    return len(tokens) > (EOS in tokens)
