"""Words as the numbers of their characters, concatenated in one array."""

from collections.abc import Sequence
from itertools import accumulate
from typing import Final, NamedTuple

import torch
from torch import Tensor

from elman.data.text.vocabulary import EOS, UNK

BEGIN, END = 0, 1
"""The marks before and after every word."""

WHOLE: Final = {UNK: 2, EOS: 3}
"""Symbols that are not words have one character of their own each, so that `<unk>` is not spelled like a word."""


class Alphabet:
    """The characters (Unicode code points) that the words are spelled with.

    The blank `nothing` pads words shorter than a filter and replaces characters that are not in the alphabet.
    """

    def __init__(self, words: Sequence[str]) -> None:
        characters = sorted({character for word in words if word not in WHOLE for character in word})
        first = 2 + len(WHOLE)
        self._numbers = {character: number for number, character in enumerate(characters, start=first)}
        self.nothing = first + len(characters)

    def __len__(self) -> int:
        return self.nothing

    def __contains__(self, character: str) -> bool:
        return character in self._numbers

    def shared(self, other: "Alphabet") -> list[tuple[int, int]]:
        """The numbers, here and there, of the marks, of the words that are one character, and of shared characters."""
        marks = [(number, number) for number in range(2 + len(WHOLE))]
        return marks + [(number, other._numbers[one]) for one, number in self._numbers.items() if one in other]

    def spell(self, word: str) -> list[int]:
        """The numbers of a word's characters between its two marks."""
        if word in WHOLE:
            return [BEGIN, WHOLE[word], END]
        return [BEGIN, *(self._numbers.get(character, self.nothing) for character in word), END]


class Spellings(NamedTuple):
    """Concatenated words: characters [S], the index of each word's first one, and how many each word has [n].

    A word is padded with `Alphabet.nothing` to at least the width of the widest filter; counts include the two marks.
    """

    characters: Tensor
    starts: Tensor
    lengths: Tensor

    @classmethod
    def of(cls, words: Sequence[str], alphabet: Alphabet, widest: int) -> "Spellings":
        """Spell words for filters of width `widest` at most."""
        spelled = [alphabet.spell(word) for word in words]
        filled = [[*word, *[alphabet.nothing] * (widest - len(word))] for word in spelled]
        starts = list(accumulate((len(word) for word in filled), initial=0))[:-1]
        return cls(
            torch.tensor([character for word in filled for character in word], dtype=torch.int64),
            torch.tensor(starts, dtype=torch.int64),
            torch.tensor([len(word) for word in spelled], dtype=torch.int64),
        )

    def to(self, device: torch.device) -> "Spellings":
        return Spellings(*(part.to(device) for part in self))

    def windows(self, words: Tensor, width: int) -> tuple[Tensor, Tensor]:
        """All windows [P, width] of characters within words [n], word by word, and the number per word, [n].

        A word shorter than `width` has one window, padded with `Alphabet.nothing`.
        """
        count = (self.lengths[words] - (width - 1)).clamp_(min=1)
        ends = count.cumsum(0)
        total = int(ends[-1]) if len(words) else 0
        first = torch.repeat_interleave(self.starts[words] - ends + count, count, output_size=total)
        begin = first + torch.arange(total, device=words.device)
        return self.characters[begin.unsqueeze(1) + torch.arange(width, device=words.device)], count
