"""The words that a model knows: numbered, counted, saved with it."""

import contextlib
import dataclasses
import functools
import itertools
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from contextvars import ContextVar
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from elman.data.text.utf8 import read_bytes, strict
from elman.errors import UserError
from elman.files import sha256_lines, write_atomic

UNK = "<unk>"
EOS = "<eos>"

TABLE = "vocabulary.tsv"  # the file of a run folder that has its words
LARGEST_SHARE_ATTACHED = 0.005
"""Share of the words that may end in a mark where marks stand apart, as some abbreviations and titles do."""

_ESCAPES = {"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"}
_UNESCAPES = {written: plain for plain, written in _ESCAPES.items()}
_MARKS = frozenset(",;:!?\n")
_LONGEST_COUNT = 18  # digits of a count at most
_SPECIAL, _ESCAPED = re.compile(r"[\\\t\n\r]"), re.compile(r"\\[\\tnr]")

_STARTED_FROM = ContextVar[Path | None]("started_from", default=None)


@contextlib.contextmanager
def words_of(run: Path | None) -> Iterator[None]:
    """Within the block, texts with `vocabulary_from = "init"` have this run folder's words too; None: as around it."""
    before = _STARTED_FROM.set(run or _STARTED_FROM.get())
    try:
        yield
    finally:
        _STARTED_FROM.reset(before)


class Numbered:
    """Words in the order of their ids, `<unk>` and `<eos>` among them or not."""

    words: tuple[str, ...]

    @functools.cached_property
    def ids(self) -> dict[str, int]:
        return {word: index for index, word in enumerate(self.words)}

    @property
    def unk(self) -> int | None:
        return self.ids.get(UNK)

    @property
    def eos(self) -> int | None:
        return self.ids.get(EOS)


class Rare(NamedTuple):
    """Words that were left out while they were counted: how many they are, and how often they occurred."""

    words: int = 0
    tokens: int = 0


NO_WORDS = Rare()


@dataclasses.dataclass(frozen=True)
class Vocabulary(Numbered):
    """Words in the order of their ids, each with its count in the text the vocabulary was made from.

    >>> vocabulary = Vocabulary.from_counts(Counter("to be or not to be".split()), add_unk=True)
    >>> vocabulary.words
    ('to', 'be', 'or', 'not', '<eos>', '<unk>')
    >>> vocabulary.encode(["not", "seen"])
    array([3, 5], dtype=int32)
    """

    words: tuple[str, ...]
    counts: tuple[int, ...]

    def __post_init__(self) -> None:
        assert len(self.words) == len(self.counts), "one count per word"
        assert len(self.ids) == len(self.words), "words are unique"

    def __len__(self) -> int:
        return len(self.words)

    @functools.cached_property
    def in_lower_case(self) -> bool:
        """Whether no word of two letters or more has a capital, so that the text was in lower case."""
        return not any(word != word.lower() and len(word) > 1 for word in self.words)

    @functools.cached_property
    def has_n_for_numbers(self) -> bool:
        """Whether the text had N for its numbers, as the usual form of the Penn Treebank has."""
        return "N" in self.ids and not any(word.isdecimal() and len(word) > 1 for word in self.words)

    @functools.cached_property
    def marks_apart(self) -> bool:
        """Whether the text had its marks of punctuation apart from its words: hardly a word ends in one."""
        attached = sum(word[-1:] in _MARKS and re.search(r"\w[,;:!?]$", word) is not None for word in self.words)
        return attached <= LARGEST_SHARE_ATTACHED * len(self)

    @functools.cached_property
    def digest(self) -> str:
        """The SHA-256 of the saved form: what `sha256sum vocabulary.tsv` prints."""
        return sha256_lines(self._table())

    def encode(self, words: Iterable[str]) -> npt.NDArray[np.int32]:
        """The ids of `words`, [N]; a word that is not known gets the id of `<unk>`.

        Raises UserError where a word is not known and there is no `<unk>`.
        """
        ids, unk = self.ids, self.unk
        if unk is not None:
            return np.fromiter(map(ids.get, words, itertools.repeat(unk)), dtype=np.int32)
        try:
            return np.fromiter(map(ids.__getitem__, words), dtype=np.int32)
        except KeyError as missing:
            raise UserError(
                f"the word {missing.args[0]!r} is not in the vocabulary of {len(self)} words, which has no "
                f"{UNK}; train with min_count = 2 or more to have one"
            ) from None

    def decode(self, ids: Iterable[int] | npt.NDArray[Any]) -> list[str]:
        return [self.words[index] for index in ids]

    @classmethod
    def from_counts(
        cls,
        counts: Counter[str],
        min_count: int = 1,
        max_size: int | None = None,
        *,
        add_eos: bool = True,
        add_unk: bool = False,
        rare: Rare = NO_WORDS,
    ) -> "Vocabulary":
        """Choose and number words by falling count; equal counts keep the order of first appearance.

        Words counted less often than `min_count` are left out, then the rarest until there are `max_size` with `<eos>`
        and `<unk>`. `<eos>` is there if it was counted or `add_eos`; `<unk>` if it was counted, if `add_unk`, or if a
        word was left out or could be (`min_count` above 1). What is left out is counted for `<unk>`; `rare` are words
        that were left out of `counts` already.

        Raises UserError where fewer than two words, `<eos>` and `<unk>` not counted, are left.
        """
        ordinary = [(word, count) for word, count in counts.items() if word not in (EOS, UNK)]
        kept = sorted((item for item in ordinary if item[1] >= min_count), key=lambda item: -item[1])
        special = {EOS: counts[EOS]} if add_eos or EOS in counts else {}
        unk = add_unk or UNK in counts or min_count > 1 or rare.words > 0
        if max_size is not None and len(kept) + len(special) + unk > max_size:
            kept, unk = kept[: max(0, max_size - len(special) - 1)], True
        if (counted := len(ordinary) + rare.words) < 2:
            found = f"only the word {ordinary[0][0]!r}" if ordinary else "no word"
            raise UserError(f"the text has {found} besides {EOS} and {UNK}; a vocabulary needs two words or more")
        if len(kept) < 2:
            raise UserError(
                f"of {counted} words {len(kept)} are left with min_count = {min_count} and "
                f"max_vocabulary = {max_size or 'none'}; a vocabulary needs two words or more: lower min_count "
                "or raise max_vocabulary"
            )
        if unk:
            left_out = rare.tokens + sum(count for _, count in ordinary) - sum(count for _, count in kept)
            special[UNK] = counts[UNK] + left_out
        table = sorted([*kept, *special.items()], key=lambda item: -item[1])
        return cls(tuple(word for word, _ in table), tuple(count for _, count in table))

    def with_words_of_start(self) -> "Vocabulary":
        """With the words of the run of `words_of` that are lacking after the others, counted as often as here: never.

        Raises UserError where that run has no vocabulary that can be read.
        """
        if (run := _STARTED_FROM.get()) is None:
            return self
        more = [word for word in Vocabulary.load(run / TABLE).words if word not in self.ids]
        return Vocabulary((*self.words, *more), (*self.counts, *(0 for _ in more)))

    def save(self, path: Path) -> None:
        r"""Write one `word TAB count` per line, by id (`\t`, `\n`, `\r`, `\\` escaped in words)."""
        write_atomic(path, self._table())

    @classmethod
    def load(cls, path: Path, needs: Iterable[str] = ()) -> "Vocabulary":
        """Read what `save` wrote.

        Raises UserError where there is no such file, a line is not `word TAB count`, or a symbol of `needs` is missing.
        """
        lines = strict(read_bytes(path, "a run folder keeps its vocabulary here"), str(path)).split("\n")
        table: dict[str, int] = {}
        for number, line in enumerate(lines[:-1] if lines[-1] == "" else lines, start=1):
            word, _, count = line.partition("\t")
            word = unescaped(word)
            if not word or not (count.isascii() and count.isdecimal() and len(count) <= _LONGEST_COUNT):
                raise UserError(f"{path}:{number}: expected a word, a tab and its count, found {line!r}")
            if word in table:
                raise UserError(f"{path}:{number}: the word {word!r} appears twice; every word has one line")
            table[word] = int(count)
        if not table:
            raise UserError(f"{path}: the vocabulary is empty; restore the file from its run")
        for symbol in needs:
            if symbol not in table:
                raise UserError(f"{path}: damaged (it lacks {symbol}); restore the file of the run")
        return cls(tuple(table), tuple(table.values()))

    def _table(self) -> str:
        words = map(escaped, self.words) if _SPECIAL.search("".join(self.words)) else self.words
        return "".join(f"{word}\t{count}\n" for word, count in zip(words, self.counts, strict=True))


def escaped(word: str) -> str:
    """A word without tabs and line breaks, as a table has it."""
    return _SPECIAL.sub(lambda match: _ESCAPES[match[0]], word)


def unescaped(text: str) -> str:
    return _ESCAPED.sub(lambda match: _UNESCAPES[match[0]], text) if "\\" in text else text
