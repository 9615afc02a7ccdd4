"""Counts of words in bounded memory: what does not fit is written to files, which are added up part by part.

Nothing is estimated or forgotten: the counts, and the order of first appearance, are those of the whole text.
"""

import zlib
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from elman.data.text.vocabulary import EOS, NO_WORDS, UNK, Rare, escaped, unescaped

WORDS = 1 << 20
"""Different words that are held in memory while they are counted, some 150 MB."""

PARTS = 16
"""Files that words are divided among, by a sum over the word; one of them is added up at a time."""

_COUNT = 48
"""Bits of a count below the place of its word in the order of first appearance: both are one number, which adds up."""


class WordCounts:
    """Counts that grow as a text is read; an empty `folder` takes what does not fit."""

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
            added = self._added(part)
            below = [word for word, place in added.items() if place & counted < min_count and word not in (EOS, UNK)]
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
            with self._file(part).open("ab") as file:
                file.write("".join(some).encode())
        self._written += len(self._held)
        self._held.clear()

    def _file(self, part: int) -> Path:
        return self._folder / f"{part}.tsv"

    def _added(self, part: int) -> dict[str, int]:
        """The counts of the words of a file, each under the first place of its word."""
        found = dict[str, int]()
        with self._file(part).open(encoding="utf-8", newline="\n") as file:
            for row in file:
                place, count, word = row.removesuffix("\n").split("\t")
                word = unescaped(word)
                found[word] = found.get(word, int(place) << _COUNT) + int(count)
        return found
