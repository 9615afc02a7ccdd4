"""Counts of words in bounded memory: what does not fit is written to files, which are added up part by part.

Nothing is estimated or forgotten: the counts, and the order of first appearance, are those of the whole text. A folder
of such files also remembers how far the text was read, so that counting is continued there after it was interrupted.
"""

import shutil
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from elman.data.text.vocabulary import EOS, UNK, Rare, escaped, unescaped
from elman.files import write_atomic

WORDS = 1 << 20
"""Different words that are held in memory while they are counted, some 150 MB."""

BYTES = 1 << 29
"""Bytes of text after which counts are written, however few words they are of."""

PARTS = 16
"""Parts of a file, by a sum over the word; one part of all files is added up at a time."""


class _Written(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The files of a folder: the places in each where its parts end, its CRC-32; and where the text was left."""

    stop: int
    edges: list[list[int]]
    sums: list[int]


_COUNT = 48
"""Bits of a count below the place of its word in the order of first appearance: both are one number, which adds up."""


class WordCounts:
    """Counts that grow as a text is read; `folder` holds what does not fit, and is empty otherwise.

    `stop` is where the text has been read to, where that is known from before (None: it begins).
    """

    def __init__(self, folder: Path, words: int | None = None, size: int | None = None) -> None:
        self.folder, self._most, self._size = folder, words or WORDS, size or BYTES
        self.held: Counter[str] = Counter()
        self._written = _found(folder)
        self.stop = self._written.stop if self._written.edges else None
        self._last = self.stop or 0

    def add(self, counts: Mapping[str, int], stop: int) -> None:
        """Add the counts of a piece of text, which ends at a byte."""
        self.held.update(counts)
        if len(self.held) >= self._most or stop - self._last >= self._size:
            self._write(stop)

    def total(self, min_count: int, max_size: int | None) -> tuple[Counter[str], Rare]:
        """The counts of all words in order of first appearance, and what was left out of them.

        Words below `min_count` are left out, and the rarest beyond `max_size`, where counts have been written.
        """
        if not self._written.edges:
            return self.held, Rare()
        if self.held:
            self._write(self._last, mark=False)
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

    def remove(self) -> None:
        """Remove what was written."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def _write(self, stop: int, *, mark: bool = True) -> None:
        """Write the counts that are held; with `mark` the files are complete up to `stop`, for a continuation."""
        parts: list[list[str]] = [[] for _ in range(PARTS)]
        for order, (word, count) in enumerate(self.held.items()):
            parts[zlib.crc32(word.encode()) % PARTS].append(f"{order}\t{count}\t{escaped(word)}\n")
        edges, data = [], bytearray()
        for rows in parts:
            data += "".join(rows).encode()
            edges.append(len(data))
        before = self._written
        write_atomic(self._file(len(before.edges)), bytes(data))
        self._written = _Written(stop=stop, edges=[*before.edges, edges], sums=[*before.sums, zlib.crc32(data)])
        if mark:
            write_atomic(self.folder / _JOURNAL, msgspec.json.encode(self._written))
        self.held.clear()
        self._last = stop

    def _file(self, number: int) -> Path:
        return self.folder / f"{number}.tsv"

    def _added(self, part: int) -> dict[str, int]:
        """The sums of a part over all files, each under the word's place, which counts on from file to file."""
        found = dict[str, int]()
        for number, edges in enumerate(self._written.edges):
            for order, count, word in _rows(self._file(number), edges[part - 1] if part else 0, edges[part]):
                found[word] = found.get(word, (number << 32 | order) << _COUNT) + count
        return found


_JOURNAL = "read.json"


def _found(folder: Path) -> _Written:
    """What an earlier reading of the text left, if all of it is there."""
    try:
        written = msgspec.json.decode((folder / _JOURNAL).read_bytes(), type=_Written)
        if all(zlib.crc32((folder / f"{n}.tsv").read_bytes()) == total for n, total in enumerate(written.sums)):
            return written
    except (OSError, msgspec.MsgspecError):
        pass
    return _Written(stop=0, edges=[], sums=[])


def _rows(path: Path, start: int, stop: int) -> Iterator[tuple[int, int, str]]:
    with path.open("rb") as file:
        file.seek(start)
        data = file.read(stop - start).decode()
    for row in data.split("\n")[:-1]:
        order, count, word = row.split("\t")
        yield int(order), int(count), unescaped(word)
