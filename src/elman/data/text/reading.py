"""Text for a trained model: read sentence by sentence as the training text was, with its own spelling kept beside."""

import functools
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, TypeVar

import msgspec
import numpy as np
import numpy.typing as npt

from elman.config.text import TextOptions
from elman.data.lines import with_breaks
from elman.data.text.fitting import Fitting, Piece
from elman.data.text.lacking import Tally, refusal, unit_of
from elman.data.text.passages import Passage, passages
from elman.data.text.patterns import ENDED, FEED
from elman.data.text.tokeniser import Tokeniser, fold, spelt, split_raw, word_slices, word_starts
from elman.data.text.utf8 import LONGEST, Line, from_bytes, parts, to_bytes
from elman.data.text.vocabulary import EOS, UNK, Vocabulary

ValueT = TypeVar("ValueT")

KEPT_WORDS = 1 << 16  # words whose pieces are kept for the next time


class Word(NamedTuple):
    """A word of a text: what white space separates, `<eos>`, or in characters and bytes what reaches to the next one.

    Attributes:
        text: as it stands in the text.
        pieces: its pieces, numbers in `Sentence.pieces`.
        read: its tokens, numbers in `Sentence.read`; empty where nothing of it is read.
        unknown: whether the vocabulary lacks it or a part of it.
    """

    text: str
    pieces: slice
    read: slice
    unknown: bool


class Sentence(NamedTuple):
    """A sentence as it stands in a text, and as a model reads it.

    Attributes:
        pieces: what the text was cut into: the tokens, and between them what is left out.
        starts: whether each piece begins a word.
        unknown: whether the vocabulary lacks each piece, marks that are left out apart.
        left_out: the numbers of the pieces that are not read; mostly none.
        read: the tokens as the vocabulary has them, unknown ones too.
        ids: of the tokens, [n].
        line: the number of its last line in the text.
    """

    pieces: list[str]
    starts: list[bool]
    unknown: list[bool]
    left_out: frozenset[int]
    read: list[str]
    ids: npt.NDArray[np.int32]
    line: int

    @property
    def tokens(self) -> list[str]:
        """The tokens as they stand in the text, [n]."""
        return self._read_of(self.pieces)

    @property
    def unknown_tokens(self) -> list[bool]:
        """Whether the vocabulary lacks each token, [n]."""
        return self._read_of(self.unknown)

    def _read_of(self, values: list[ValueT]) -> list[ValueT]:
        if not self.left_out:
            return values
        return [value for index, value in enumerate(values) if index not in self.left_out]

    @property
    def lacking(self) -> list[str]:
        """The tokens that the vocabulary lacks."""
        return [token for token, flag in zip(self.read, self.unknown_tokens, strict=True) if flag]

    def spread(self, values: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """The values of tokens [n], each at its piece, NaN at pieces that are left out."""
        if not self.left_out:
            return values
        found = np.full(len(self.pieces), np.nan, dtype=values.dtype)
        found[self._read_of(list(range(len(self.pieces))))] = values
        return found

    def words(self, tokeniser: Tokeniser) -> Iterator[Word]:
        """The words in order; together their pieces are all pieces."""
        at, whole = 0, not tokeniser.options.spelt
        for part in word_slices(self.starts):
            pieces = self.pieces[part]
            count = len(pieces) - sum(index in self.left_out for index in range(part.start, part.stop))
            text = "".join(pieces) if whole else spelt(pieces, tokeniser.options)
            yield Word(text, part, slice(at, at + count), any(self.unknown[part]))
            at += count


class TextReader:
    """Reads lines as the training text of a vocabulary was read, and tallies what the vocabulary lacks.

    Ordinary text, characters, bytes and subwords are cut by the rule of the training text. Where that was tokenised
    already, each word is fitted to the vocabulary (`Fitting`), unless it is to be read `as_is`.

    Where the vocabulary has no `<unk>`, what it lacks is refused in a message that names the text as `name` and ends
    with `cure`; or with `leave_out` it is not read.
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        tokeniser: Tokeniser,
        *,
        as_is: bool = False,
        leave_out: bool = False,
        name: str = "",
        cure: str = "take it out",
    ) -> None:
        self.vocabulary, self.tokeniser, self.tally = vocabulary, tokeniser, Tally()
        self._name, self._cure, self._leave_out = name, cure, leave_out
        options = tokeniser.options
        self._options = options
        self._fitting = Fitting(vocabulary) if options.tokenisation == "words" and not as_is else None
        self._written = msgspec.structs.replace(options, lowercase=False) if options.folds_tokens else options
        self._cut = functools.lru_cache(KEPT_WORDS)(self._cut_word)

    def sentences(self, lines: Iterable[str], number: int = 1) -> Iterator[Sentence]:
        """The sentences of lines, numbered from `number`: what `<eos>` ends, or without `<eos>` a line.

        With `eos = "exact"` a line has its `<eos>` only where it has its line feed. Raises UserError where a word or a
        character is not known, the vocabulary has no `<unk>`, and it is not left out.
        """
        every_line, found = self._options.eos in ("none", "exact"), list[Piece]()
        for passage in self._passages(lines, number):
            found += self._read(passage)
            if passage.closed or (every_line and passage.line.ended):
                if any(piece.token is not None for piece in found):
                    yield self._sentence(found, passage.line.number)
                found = []

    def one(self, text: str, number: int = 1) -> Sentence:
        """A text as one sentence, whatever ends within it."""
        lines = with_breaks(text, exact=self._options.eos == "exact")
        return self._sentence([piece for one in self._passages(lines, number) for piece in self._read(one)], number)

    def complete(self, text: str, number: int = 1) -> Sentence:
        """As `one`, with the end of its last line: `<eos>` where the training text has it.

        Where nothing else of the text is read the sentence is `<eos>` alone, or empty without `<eos>`.
        """
        sentence = self.one(with_last_break(text), number)
        return sentence if len(sentence.ids) or self._options.eos == "none" else self._sentence([_END], number)

    def tokens(self, text: str) -> list[str]:
        """The tokens of a text without `<eos>`, as the vocabulary has them or would have them."""
        if self._fitting is None:
            return self.tokeniser.encode(text)
        pieces = (piece for word in self._fitting.line(self.tokeniser.parts(text)) for piece in word)
        return [piece.token for piece in pieces if piece.token is not None]

    def report(self) -> list[str]:
        """What the vocabulary lacks of the text that was read, and what was read otherwise than it stands."""
        return self.tally.lines(unit_of(self._options), "left out" if self.vocabulary.unk is None else f"read as {UNK}")

    def _passages(self, lines: Iterable[str], number: int) -> Iterator[Passage]:
        """The passages of lines with their numbers."""
        numbered = (
            Line(part, ended, at) for at, text in enumerate(lines, start=number) for part, ended in _parts(text)
        )
        return passages(numbered, self._written, self.tokeniser.subwords)

    def _read(self, passage: Passage) -> Iterator[Piece]:
        number, known = passage.line.number, self.vocabulary.ids
        if self._options.spelt:
            for token in passage.words:
                (piece,) = self._settled(self._cut(token), number)
                if token != EOS:
                    self.tally.add(token, (piece,), fitted=False, known=known)
                yield piece
            return
        words = self.tokeniser.parts(passage.line.text)
        cut = map(self._cut, words) if self._fitting is None else self._fitting.line(words)
        for word, pieces in zip(words, cut, strict=True):
            settled = self._settled(pieces, number)
            folded, fitted = word.lower() if self._options.lowercase else word, self._fitting is not None
            self.tally.add(folded, settled, fitted=fitted, known=known)
            for place, piece in enumerate(settled):
                yield piece if place else piece._replace(begins=True)
        if passage.closed:
            yield _END

    def _sentence(self, pieces: Sequence[Piece], line: int) -> Sentence:
        texts = [piece.text for piece in pieces]
        starts = [piece.begins for piece in pieces]
        return Sentence(
            pieces=texts,
            starts=word_starts(texts, self._options) if self._options.spelt else starts,
            unknown=[piece.unknown for piece in pieces],
            left_out=frozenset(place for place, piece in enumerate(pieces) if piece.token is None),
            read=(read := [piece.token for piece in pieces if piece.token is not None]),
            ids=self.vocabulary.encode(read),
            line=line,
        )

    def _cut_word(self, word: str) -> tuple[Piece, ...]:
        """The pieces of a word by the rule of the training text; characters, bytes and subwords are one each."""
        raw = self._options.tokenisation == "raw"
        texts = split_raw(word, elisions=self._options.elisions) if raw else [word]
        tokens = fold(texts) if self._options.folds_tokens else texts
        known = self.vocabulary.ids
        return tuple(Piece(text, token, unknown=token not in known) for text, token in zip(texts, tokens, strict=True))

    def _settled(self, pieces: tuple[Piece, ...], number: int) -> tuple[Piece, ...]:
        """Pieces of which none is unknown, or a vocabulary with `<unk>` reads them, or they are left out."""
        if self.vocabulary.unk is not None or not any(piece.unknown for piece in pieces):
            return pieces
        if self._leave_out:
            return tuple(piece._replace(token=None) if piece.unknown else piece for piece in pieces)
        lacking = next(piece.text for piece in pieces if piece.unknown)
        place = f"{self._name}{':' if self._name else 'line '}{number}"
        raise refusal(lacking, self.vocabulary, self._options, place, self._cure)


def _parts(text: str) -> list[tuple[str, bool]]:
    """A line, or the parts in which a long one would be read from a file, and whether it ends there."""
    if len(text) < LONGEST // 4:
        return [(text, True)]
    return [(from_bytes(part), ended) for part, ended in parts(io.BytesIO(to_bytes(text)))]


def with_last_break(text: str) -> str:
    return text if text.endswith("\n") else f"{text}\n"


_END = Piece(EOS, EOS, begins=True)


def is_ended(text: str, options: TextOptions) -> bool:
    """Whether the last line, or paragraph, of a text has its end."""
    return re.search(ENDED.get(options.eos, FEED), text) is not None
