r"""ARPA files of n-gram models, as SRILM, KenLM and elman write them, read section by section.

A file is text or gzip. What stands before `\data\` is skipped, fields are separated by tabs or spaces and by nothing
else, as KenLM reads them, lines may end with a carriage return, blank lines are skipped, and a back-off weight may be
missing (1). Where the header announces no n-grams of the greatest lengths, as SRILM writes, their sections may be
missing. An n-gram whose first n - 1 words are no n-gram of the file, as SRILM's pruning leaves, gets them as a context
of weight 1 with the probability that they have by backing off, which changes no probability.
"""

import codecs
import gzip
import math
import re
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, NoReturn

import numpy as np
import numpy.typing as npt

from elman.data.text.utf8 import from_bytes
from elman.data.text.vocabulary import UNK
from elman.errors import UserError, counted, notice
from elman.evaluation.ngram.model import BEGIN, NGramModel, markers_of
from elman.evaluation.ngram.table import BackoffTable, Floats, Int64s, Level
from elman.jobs import Advance

BLOCK = 1 << 22  # bytes read at once

ROUNDING = 1e-4  # how far above 0 the logarithm of a probability may be, since it was rounded

LN10 = math.log(10)

_BLANK = b" \t\r\n"
_SPACES = np.isin(np.arange(256), list(_BLANK))
_FIELD = re.compile(rb"[^ \t\r\n]+")
_COUNT = re.compile(rb"ngram\s+(\d{1,18})\s*=\s*(\d{1,18})")
_SECTION = re.compile(rb"\\(\d{1,18})-grams:")


def read_arpa(path: Path, advance: Advance = None) -> NGramModel:
    """The model of an ARPA file; `advance` is called with (n-grams read, n-grams in all).

    Raises UserError, with the line, where the file is not an ARPA file, is damaged, or has no words.
    """
    try:
        with path.open("rb") as raw:
            zipped = raw.read(2) == b"\x1f\x8b"
            raw.seek(0)
            with gzip.open(raw) if zipped else raw as file:
                return _Reader(str(path), file, advance).model()
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise UserError(f"{path}: the compressed file is damaged or incomplete ({error}); write it again") from None
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror}); give an ARPA file") from None


class _Reader:
    """Reads one file; `line` is the number of the first line that is still to be read."""

    def __init__(self, name: str, file: "IO[bytes] | gzip.GzipFile", advance: Advance) -> None:
        self.name, self.line, self._file, self._advance = name, 1, file, advance
        self._waiting: list[bytes] = []
        self._done, self._total = 0, 0

    def model(self) -> NGramModel:
        counts = self._counts()
        self._total = sum(counts)
        ids, levels = dict[bytes, int](), list[Level]()
        for length, expected in enumerate(counts, start=1):
            if not any(counts[length - 1 :]) and self._ahead() == b"\\end\\":
                notice(f"{self.name}: there are no {length}-grams, as the header says; the order is {length - 1}")
                break
            self._head(length)
            begin = self.line
            grams, log_prob, backoff, lines = self._section(length, ids, highest=length == len(counts))
            if len(grams) != expected:
                self._fail(f"{len(grams):,} {length}-grams begin here, but the header announces {expected:,}", begin)
            if length == 1:
                levels.append(Level(np.arange(len(ids)), log_prob, backoff))
            else:
                levels = _with_contexts(levels, grams, self.name)
                levels.append(self._level(levels, grams, log_prob, backoff, lines))
        if self._ahead() != b"\\end\\":
            self._fail("the file is incomplete: there is no \\end\\ after the last n-gram")
        return _model(ids, levels, self.name)

    def _counts(self) -> list[int]:
        while (line := self._next()) is not None and line.removeprefix(codecs.BOM_UTF8) != b"\\data\\":
            pass
        if line is None:
            raise UserError(f"{self.name}: no ARPA file, since no line is \\data\\; give an n-gram model")
        counts = list[int]()
        while (line := self._ahead()) is not None and not line.startswith(b"\\"):
            found = _COUNT.fullmatch(line)
            if found is None or int(found[1]) != len(counts) + 1:
                self._fail(f"expected ngram {len(counts) + 1}=COUNT, found {_shown(line)}")
            counts.append(int(found[2]))
            self._next()
        if not counts or not counts[0]:
            self._fail("the header announces no words")
        return counts

    def _head(self, length: int) -> None:
        line = self._ahead()
        found = None if line is None else _SECTION.fullmatch(line)
        if found is None or int(found[1]) != length:
            what = "the file ends" if line is None else f"found {_shown(line)}"
            self._fail(f"expected \\{length}-grams:, {what}")
        self._next()

    def _section(self, length: int, ids: dict[bytes, int], *, highest: bool) -> tuple[Int64s, Floats, Floats, Int64s]:
        """The words of each n-gram [U, length], log-probabilities, back-off weights (natural) and lines."""
        grams, numbers, weights, places = list[Int64s](), list[Floats](), list[Floats](), list[Int64s]()
        for first, lines in self._entries():
            fields, sizes = _fields(lines)
            full = np.flatnonzero(sizes)
            begins, place = (np.cumsum(sizes) - sizes)[full], first + full
            sizes = sizes[full]
            wrong = np.flatnonzero((sizes != length + 1) & (sizes != length + 2))
            if len(wrong):
                at = wrong[0]
                self._fail(
                    f"expected a logarithm, {counted(length, 'word')} and perhaps a back-off weight, found"
                    f" {_shown(b' '.join(fields[begins[at] : begins[at] + sizes[at]]))}",
                    int(place[at]),
                )
            columns = [fields[begins + column].tolist() for column in range(length + 1)]
            if length == 1:
                self._add_words(columns[1], place, ids)
            grams.append(np.stack([self._numbers(column, place, ids) for column in columns[1:]], axis=1))
            numbers.append(self._logarithms(columns[0], place))
            weight = np.zeros(len(place))
            if not highest:
                has = np.flatnonzero(sizes == length + 2)
                weight[has] = self._logarithms(fields[begins[has] + length + 1].tolist(), place[has], weights=True)
            weights.append(weight)
            places.append(place)
            self._done += len(place)
            if self._advance is not None:
                self._advance(self._done, self._total)
        empty = np.empty(0)
        found = np.concatenate(grams) if grams else np.empty((0, length), dtype=np.int64)
        log_prob, backoff = np.concatenate([empty, *numbers]), np.concatenate([empty, *weights])
        return found, log_prob, backoff, np.concatenate([empty, *places]).astype(np.int64)

    def _add_words(self, words: list[bytes], place: Int64s, ids: dict[bytes, int]) -> None:
        for word, line in zip(words, place, strict=True):
            if word in ids:
                self._fail(f"the word {_shown(word)} appears twice", int(line))
            ids[word] = len(ids)

    def _numbers(self, words: list[bytes], place: Int64s, ids: dict[bytes, int]) -> Int64s:
        try:
            return np.array(list(map(ids.__getitem__, words)), dtype=np.int64)
        except KeyError:
            at = next(at for at, word in enumerate(words) if word not in ids)
            self._fail(f"the word {_shown(words[at])} is not among the 1-grams", int(place[at]))

    def _logarithms(self, fields: list[bytes], place: Int64s, *, weights: bool = False) -> Floats:
        """Natural logarithms of logarithms to base ten; -inf is a probability of 0."""
        what = "a back-off weight" if weights else "the logarithm of a probability"
        try:
            found = np.array(list(map(float, fields)))
        except ValueError:
            at = next(at for at, field in enumerate(fields) if not _is_number(field))
            self._fail(f"expected {what}, found {_shown(fields[at])}", int(place[at]))
        possible = np.isfinite(found) if weights else found <= ROUNDING
        if not possible.all():
            at = int(np.flatnonzero(~possible)[0])
            self._fail(f"{_shown(fields[at])} cannot be {what}", int(place[at]))
        return (found if weights else np.minimum(found, 0.0)) * LN10

    def _level(self, levels: Sequence[Level], grams: Int64s, log_prob: Floats, backoff: Floats, lines: Int64s) -> Level:
        keys = _keys(levels, grams)
        order = np.argsort(keys, kind="stable")
        keys = keys[order]
        same = np.flatnonzero(keys[1:] == keys[:-1])
        if len(same):
            first, again = (int(lines[order[at]]) for at in (same[0], same[0] + 1))
            self._fail(f"the n-gram of line {first:,} appears again", again)
        return Level(keys, log_prob[order], backoff[order])

    def _entries(self) -> Iterator[tuple[int, list[bytes]]]:
        """Lines up to the one that begins with a backslash, in blocks, each with the number of its first line."""
        while self._fill():
            lines, begin = self._waiting, self.line
            stop = next((at for at, line in enumerate(lines) if line[:1] == b"\\"), len(lines))
            self._waiting, self.line = lines[stop:], begin + stop
            if stop:
                yield begin, lines[:stop]
            if self._waiting:
                return

    def _ahead(self) -> bytes | None:
        """The next line that is not blank, without white space around it; it is not consumed. None: the file ends."""
        while self._fill():
            if stripped := self._waiting[0].strip(_BLANK):
                return stripped
            self._next()
        return None

    def _next(self) -> bytes | None:
        if not self._fill():
            return None
        self.line += 1
        return self._waiting.pop(0).strip(_BLANK)

    def _fill(self) -> bool:
        if not self._waiting:
            self._waiting = self._file.readlines(BLOCK)
        return bool(self._waiting)

    def _fail(self, what: str, line: int | None = None) -> NoReturn:
        raise UserError(f"{self.name}:{self.line if line is None else line}: {what}; give a complete ARPA file")


def _fields(lines: list[bytes]) -> tuple[npt.NDArray[np.object_], Int64s]:
    """The fields of all lines in a row, and how many each line has."""
    block = b"".join(lines)
    ends = np.cumsum(np.fromiter(map(len, lines), dtype=np.int64, count=len(lines)))
    begins = ~_SPACES[np.frombuffer(block, dtype=np.uint8)]
    begins[1:] &= ~begins[:-1]
    sizes = np.add.reduceat(begins, np.concatenate([[0], ends[:-1]]), dtype=np.int64)
    found = _FIELD.findall(block) if b"\v" in block or b"\f" in block else block.split()
    return np.array(found, dtype=object), sizes


def _keys(levels: Sequence[Level], grams: Int64s) -> Int64s:
    """The keys of n-grams whose contexts the levels have; negative where one is missing."""
    size = len(levels[0].keys)
    table, number = BackoffTable(levels, size), grams[:, 0]
    for length in range(2, grams.shape[1]):
        number = table.find(length, number, grams[:, length - 1])
    return number * size + grams[:, -1]


def _with_contexts(levels: list[Level], grams: Int64s, name: str) -> list[Level]:
    """The levels with the contexts of n-grams, where they lack some."""
    missing = grams[_keys(levels, grams) < 0, :-1]
    if not len(missing):
        return levels
    size, added = len(levels[0].keys), 0
    levels = list(levels)
    for length in range(2, missing.shape[1] + 1):
        below = BackoffTable(levels[: length - 1], size)
        rows = np.unique(missing[:, :length], axis=0)
        keys, old = _keys(below.levels, rows), levels[length - 1]
        new = ~np.isin(keys, old.keys)
        rows, keys = rows[new], keys[new]
        backed_off = below.levels[-1].backoff[keys // size] + below.score(rows[:, 1:], rows[:, 1:])[0][:, -1]
        together = np.concatenate([old.keys, keys])
        order = np.argsort(together)
        log_prob, zeros = np.concatenate([old.log_prob, backed_off]), np.zeros(len(keys))
        levels[length - 1] = Level(together[order], log_prob[order], np.concatenate([old.backoff, zeros])[order])
        if length < len(levels):
            moved, above = np.argsort(order)[: len(old.keys)], levels[length]
            renumbered = moved[above.keys // size] * size + above.keys % size
            levels[length] = above._replace(keys=renumbered)
        added += len(keys)
    notice(f"{name}: {added:,} contexts that pruning had left out are added; no probability changes")
    return levels


def _model(ids: dict[bytes, int], levels: list[Level], name: str) -> NGramModel:
    """The model; `<UNK>` is `<unk>`, and `<s>` is never predicted, whatever its probability in the file."""
    words = [from_bytes(word) for word in ids]
    if UNK not in words and "<UNK>" in words:
        words[words.index("<UNK>")] = UNK
    numbers = {word: index for index, word in enumerate(words)}
    if BEGIN in numbers:
        levels[0].log_prob[numbers[BEGIN]] = -np.inf
    markers = markers_of(numbers)
    if markers is None and "<eos>" not in numbers:
        notice(f"{name} lacks <s> or </s>; contexts run across the ends of sentences, which have no probability")
    return NGramModel(tuple(words), BackoffTable(levels, len(words), markers))


def _is_number(field: bytes) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True


def _shown(field: bytes) -> str:
    text = from_bytes(field)
    return repr(text if len(text) <= 60 else f"{text[:60]}...")
