"""Words of ordinary text as a text that was tokenised before training would have had them; the vocabulary decides."""

import functools
import itertools
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from elman.data.text.tokeniser import split_raw
from elman.data.text.vocabulary import EOS, UNK, Vocabulary

_CLITICS = ("n't", "'t", "'s", "'re", "'ve", "'ll", "'d", "'m")
_NUMBER = re.compile(r"\d+(?:[.,:/-]\d+)*")
_JOINED = re.compile(r"(?<=\w)([-.,])(?=\w)")
_PLAIN = str.maketrans("\u2018\u2019\u201c\u201d", "''\"\"")
_ATTACHED = re.compile(r"^[\"(\[\u201c\u2018$]|[,;:!?\")\]\u201d\u2026%]$|\.\.$")
_KEPT_WORDS = 1 << 16


class Piece(NamedTuple):
    """A part of a text as it stands there, and the token that it is read as.

    Attributes:
        text: together the pieces of a word are the word.
        token: None where it is left out.
        unknown: whether the vocabulary lacks it, marks that are left out apart.
        begins: whether it is known to begin a word of a sentence.
    """

    text: str
    token: str | None
    unknown: bool = False
    begins: bool = False


class Fitting:
    """How the words of ordinary text are read by a model whose training text was tokenised already.

    A word that the vocabulary has as it stands stays. Any other is looked up in lower case if the vocabulary has no
    capitals, with plain quotation marks for curved ones, and as N if numbers are N in it (Penn Treebank). If it is
    still unknown, the marks at its ends stand apart, as few of them as make the rest known; then n't, 's and the like,
    if the vocabulary has them; then marks within it, hyphens and points as @-@ and @.@ if the vocabulary has these
    (WikiText). Marks that the vocabulary lacks are left out.

    Marks stand apart in ordinary text only (`line`): a line that has capitals where the vocabulary has none, or more
    marks at its words than apart. There the point of a last word that is known with it and without (no., wash.) ends
    the line. Nothing is split if the words of the vocabulary have marks at their ends themselves.

    Example:
        >>> from collections import Counter
        >>> words = Fitting(Vocabulary.from_counts(Counter(["do", "n't", "the", "mr.", "cat"]), add_unk=True))
        >>> [piece.token for word in "Don't Mr. Cat, (the dog)".split() for piece in words.word(word) if piece.token]
        ['do', "n't", 'mr.', 'cat', 'the', 'dog']
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._known = vocabulary.ids
        self._lower = vocabulary.in_lower_case
        self._splits = vocabulary.marks_apart
        self._numbers = vocabulary.has_n_for_numbers
        self.word = functools.lru_cache(_KEPT_WORDS)(self._word)

    def line(self, words: Sequence[str]) -> Iterator[tuple[Piece, ...]]:
        """The pieces of each word of a line."""
        ordinary = self._splits and self._is_ordinary(words)
        for number, word in enumerate(words, start=1):
            ends = ordinary and number == len(words) and word.endswith(".")
            if ends and self._find(word) is not None and self._find(word[:-1]) is not None:
                yield (*self.word(word[:-1], ordinary), self._part("."))
            else:
                yield self.word(word, ordinary)

    def _is_ordinary(self, words: Sequence[str]) -> bool:
        """Whether a line is ordinary text: capitals that the vocabulary lacks, or more marks at words than apart.

        A point ends abbreviations too: it counts at the end of the line alone.
        """
        unknown = [word for word in words if word not in self._known]
        if self._lower and any(word != word.lower() for word in unknown):
            return True
        apart = sum(word in self._known and not _has_letters(word) for word in words)
        attached = sum(_has_letters(word) and _ATTACHED.search(word) is not None for word in unknown)
        last = words[-1] if words else ""
        point = last.endswith(".") and last not in self._known and any(self._find(one) for one in (last[:-1], "."))
        return attached + point > apart

    def _word(self, word: str, ordinary: bool = True) -> tuple[Piece, ...]:
        if (token := self._find(word)) is not None:
            return (Piece(word, token),)
        if not self._splits:
            return (self._unknown(word),)
        if not ordinary:
            clitic = self._clitic(word)
            return (self._unknown(word),) if clitic is None else tuple(self._core(word))
        return tuple(self._split(word))

    def _find(self, text: str) -> str | None:
        """The word of the vocabulary that a text is, if any."""
        for form in (text, text.translate(_PLAIN)):
            for cased in (form, form.lower()) if self._lower else (form,):
                if cased in self._known:
                    return cased
        return "N" if self._numbers and _NUMBER.fullmatch(text) else None

    def _unknown(self, text: str) -> Piece:
        return Piece(text, text.lower() if self._lower and text not in (UNK, EOS) else text, unknown=True)

    def _part(self, text: str) -> Piece:
        """A word or a mark; a mark that the vocabulary lacks is left out."""
        token = self._find(text)
        return self._unknown(text) if token is None and _has_letters(text) else Piece(text, token)

    def _split(self, word: str) -> Iterator[Piece]:
        parts = split_raw(word)
        before = next((index for index, part in enumerate(parts) if _has_letters(part)), len(parts))
        after = next((index for index, part in enumerate(reversed(parts)) if _has_letters(part)), 0)
        if before == len(parts):
            yield from map(self._part, parts)
            return
        begin, end = before, len(parts) - after
        fewest_first = sorted(itertools.product(range(before + 1), range(after + 1)), key=sum)
        for first, last in fewest_first:
            if self._find("".join(parts[first : len(parts) - last])) is not None:
                begin, end = first, len(parts) - last
                break
        yield from map(self._part, parts[:begin])
        yield from self._core("".join(parts[begin:end]))
        yield from map(self._part, parts[end:])

    def _core(self, text: str) -> Iterator[Piece]:
        """A word without marks at its ends."""
        if (token := self._find(text)) is not None:
            yield Piece(text, token)
        elif (clitic := self._clitic(text)) is not None:
            yield from self._core(text[: -len(clitic)])
            yield self._part(clitic)
        elif (joined := self._joined(text)) is not None:
            yield from joined
        elif len(parts := split_raw(text)) > 1 and any(len(part) > 1 and self._find(part) for part in parts):
            yield from map(self._part, parts)
        else:
            yield self._unknown(text)

    def _clitic(self, text: str) -> str | None:
        plain = text.translate(_PLAIN).lower()
        ending = (one for one in _CLITICS if plain.endswith(one) and len(plain) > len(one))
        found = next((one for one in ending if self._find(one) is not None), None)
        return None if found is None else text[-len(found) :]

    def _joined(self, text: str) -> list[Piece] | None:
        """The pieces of a word with inner marks that the vocabulary writes between @ and @."""
        parts = _JOINED.split(text)
        if len(parts) == 1 or not all(f"@{mark}@" in self._known for mark in parts[1::2]):
            return None
        return [Piece(part, f"@{part}@") if index % 2 else self._part(part) for index, part in enumerate(parts)]


def _has_letters(text: str) -> bool:
    return any(character.isalnum() for character in text)
