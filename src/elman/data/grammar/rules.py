"""A grammar: rules with probabilities and number agreement, read from a small file.

A file has four kinds of lines; `#` begins a comment::

    start S                                   what a sentence is
    number sg pl                              the two values of number
    nouns N                                   categories that have a number of their own
    verbs V                                   categories that agree; their sg and pl words correspond in order
    embedding RC                              categories whose words are one clause deeper
    S -> NP[n] VP[n]                          what stands for what
    NP[n] -> N[n] (0.8) | N[n] RC[n] (0.2)    alternatives with weights; without one it is 1
    N[sg] : boy girl (2)                      words with weights

The name in brackets is a value, or a variable that is every value in turn. Equal names in one rule are the same number,
and what shares it agrees: a variable that is not on the left is drawn anew. Weights are scaled to sum to one.
"""

import dataclasses
import functools
from typing import NamedTuple


class Part(NamedTuple):
    """A symbol on the right of a rule.

    Attributes:
        symbol: such as `NP[sg]`.
        bond: which number it shares: 0 that of the left side, 1, 2, ... a new one; None: it has no number.

    """

    symbol: str
    bond: int | None


class Alternative(NamedTuple):
    """One way to write a symbol, and how probable it is."""

    parts: tuple[Part, ...]
    probability: float


@dataclasses.dataclass(frozen=True)
class Grammar:
    """A probabilistic context-free grammar with number agreement.

    Attributes:
        name: of its file.
        text: the file as it stands.
        start: the symbol of a sentence.
        rules: alternatives by left side; probabilities of each sum to one.
        words: words and their probabilities by symbol.
        number: the value of number of a symbol, where it has one.
        nouns, verbs, embedding: symbols of these kinds.
        partners: the other form of a verb, by symbol and word.

    """

    name: str
    text: str
    start: str
    rules: dict[str, tuple[Alternative, ...]]
    words: dict[str, dict[str, float]]
    number: dict[str, str]
    nouns: frozenset[str]
    verbs: frozenset[str]
    embedding: frozenset[str]
    partners: dict[tuple[str, str], str]

    @functools.cached_property
    def vocabulary(self) -> tuple[str, ...]:
        """All words, each once, in the order of the file."""
        return tuple(dict.fromkeys(word for words in self.words.values() for word in words))

    def verb_forms(self, number: str) -> tuple[str, ...]:
        """The verbs of one number."""
        forms = (self.words[verb] for verb in self.words if verb in self.verbs and self.number[verb] == number)
        return tuple(dict.fromkeys(word for words in forms for word in words))

    def embeds(self, alternative: Alternative) -> bool:
        """Whether an alternative opens a clause."""
        return any(part.symbol in self.embedding for part in alternative.parts)

    def alternatives(self, symbol: str, depth: int, max_depth: int | None) -> tuple[Alternative, ...]:
        """How a symbol may be written at a depth; where no clause may open any more the others are scaled up."""
        found = self.rules[symbol]
        if max_depth is None or depth < max_depth:
            return found
        flat = [one for one in found if not self.embeds(one)]
        total = sum(one.probability for one in flat)
        return tuple(Alternative(parts, probability / total) for parts, probability in flat)
