"""A grammar: rules with probabilities and number agreement.

A file has four kinds of lines; `#` begins a comment::

    start S                                   the symbol of a sentence
    number sg pl                              the two values of number
    nouns N                                   categories that have a number of their own
    verbs V                                   categories that agree; their sg and pl words correspond in order
    embedding RC                              categories that open an embedded clause
    S -> NP[n] VP[n]                          a rule
    NP[n] -> N[n] (0.8) | N[n] RC[n] (0.2)    alternatives with weights; without one it is 1
    N[sg] : boy girl (2)                      words with weights

The name in brackets is a value, or a variable that is every value in turn. Equal names in one rule are the same number,
and what shares it agrees: a variable that is not on the left is drawn again. Weights are scaled to sum to one.
"""

import dataclasses
import functools
from typing import NamedTuple


class Part(NamedTuple):
    """A symbol on the right of a rule, such as `NP[sg]`.

    `bond` is the number it shares: 0 that of the left side, 1, 2, ... a new one; None: it has no number.
    """

    symbol: str
    bond: int | None


class Alternative(NamedTuple):
    """A right side of a rule, and its probability."""

    parts: tuple[Part, ...]
    probability: float


@dataclasses.dataclass(frozen=True)
class Grammar:
    """A probabilistic context-free grammar with number agreement.

    `rules` holds the alternatives by left side, whose probabilities sum to one, and `words` the words and their
    probabilities by symbol; `number` is the value of a symbol's number, where it has one. `nouns`, `verbs` and
    `embedding` are the symbols of these kinds, and `partners` the other form of a verb, by symbol and word.
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
        return tuple(dict.fromkeys(word for words in self.words.values() for word in words))

    def verb_forms(self, number: str) -> tuple[str, ...]:
        """The verbs of one number, without forms that are also those of the other."""
        forms = [(word, self.number[verb]) for verb in self.words if verb in self.verbs for word in self.words[verb]]
        others = {word for word, own in forms if own != number}
        return tuple(dict.fromkeys(word for word, own in forms if own == number and word not in others))

    def embeds(self, alternative: Alternative) -> bool:
        return any(part.symbol in self.embedding for part in alternative.parts)

    def alternatives(self, symbol: str, depth: int, max_depth: int | None) -> tuple[Alternative, ...]:
        """The alternatives of a symbol at a depth; where no further clause may open the others are scaled up."""
        found = self.rules[symbol]
        if max_depth is None or depth < max_depth:
            return found
        flat = [one for one in found if not self.embeds(one)]
        total = sum(one.probability for one in flat)
        return tuple(Alternative(parts, probability / total) for parts, probability in flat)
