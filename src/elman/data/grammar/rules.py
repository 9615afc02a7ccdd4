"""A grammar: rules with probabilities and agreement in features such as number, gender, case or tense.

A file has these kinds of lines; `#` begins a comment::

    start S                                   the symbol of a sentence
    feature number sg pl                      a feature and its values; one line for each (`number sg pl` is short)
    controllers N                             categories whose features others agree with (also: nouns)
    targets V                                 categories that agree; their forms correspond in order (also: verbs)
    embedding RC                              categories that open an embedded clause
    S -> NP[n] VP[n]                          a rule
    NP[n] -> N[n] (0.8) | N[n] RC[n] (0.2)    alternatives with weights; without one it is 1
    N[sg] : boy girl (2)                      words with weights

What stands in brackets, with commas between, is a value, or a variable that is every value in turn. Where there are
several features a variable begins their names: `n`, `n2` and `number` are variables of number. Equal names in one rule
are the same value, and what shares it agrees: a variable that is not on the left is drawn again. Weights are scaled to
sum to one.
"""

import dataclasses
import functools
from collections.abc import Collection, Container, Mapping, Sequence
from typing import NamedTuple


class Part(NamedTuple):
    """A symbol on the right of a rule, such as `NP[sg]`.

    `bonds` has (feature, number) for each value that it shares: number 0 is the left side's value of this feature, 1,
    2, ... a new one.
    """

    symbol: str
    bonds: tuple[tuple[str, int], ...]


class Alternative(NamedTuple):
    """A right side of a rule, and its probability."""

    parts: tuple[Part, ...]
    probability: float


@dataclasses.dataclass(frozen=True)
class Grammar:
    """A probabilistic context-free grammar with agreement.

    `rules` holds the alternatives by left side, whose probabilities sum to one, and `words` the words and their
    probabilities by symbol; `values` the features of a symbol that has any, and their values. `controllers`, `targets`
    and `embedding` are the symbols of these kinds, and `partners` the forms of a target that differ from it in one
    feature alone, as (other value, form), by symbol, word and feature.
    """

    name: str
    text: str
    features: dict[str, tuple[str, ...]]
    start: str
    rules: dict[str, tuple[Alternative, ...]]
    words: dict[str, dict[str, float]]
    values: dict[str, dict[str, str]]
    controllers: frozenset[str]
    targets: frozenset[str]
    embedding: frozenset[str]
    partners: dict[tuple[str, str, str], tuple[tuple[str, str], ...]]

    @functools.cached_property
    def vocabulary(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(word for words in self.words.values() for word in words))

    def forms(self, feature: str, known: Container[str]) -> dict[str, tuple[str, ...]]:
        """The words of targets by their value of a feature: of several values under each, without words of all values.

        A word is left out where itself or a form that differs from it in this feature alone is not `known`.
        """
        found, every = dict[str, set[str]](), self.features[feature]
        for (symbol, word, own), others in self.partners.items():
            if own == feature and word in known and all(form in known for _, form in others):
                found.setdefault(word, set()).add(self.values[symbol][feature])
        return {
            value: tuple(word for word, values in found.items() if value in values and len(values) < len(every))
            for value in every
        }

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


class Token(NamedTuple):
    text: str
    line: int
    column: int


Values = dict[str, tuple[str, bool]]
"""What stands in brackets, by feature: a value or a variable, and whether it is a value."""


class Name(NamedTuple):
    base: str
    values: Values
    token: Token

    def spelt(self, bindings: dict[tuple[str, str], str]) -> str:
        found = [name if fixed else bindings[feature, name] for feature, (name, fixed) in self.values.items()]
        return f"{self.base}[{','.join(found)}]" if found else self.base


class Rule(NamedTuple):
    left: Token
    choices: list[tuple[list[Token], float]]


def left_recursion(rules: Mapping[str, Sequence[Alternative]]) -> tuple[str, ...]:
    """The way from a symbol to itself by first symbols, of the first that has one; empty where none can begin so."""
    firsts = {left: {one.parts[0].symbol: None for one in found} for left, found in rules.items()}
    for left in rules:
        paths: dict[str, tuple[str, ...]] = {first: (left, first) for first in firsts[left]}
        new = list(paths)
        while new and left not in paths:
            symbol = new.pop(0)
            more = [first for first in firsts.get(symbol, ()) if first not in paths]
            paths |= {first: (*paths[symbol], first) for first in more}
            new += more
        if left in paths:
            return paths[left]
    return ()


def endless(rules: Mapping[str, Sequence[Alternative]], words: Collection[str]) -> list[str]:
    """The symbols that no choice of alternatives leads to words alone."""
    ends = set(words)
    while grown := {
        left
        for left, found in rules.items()
        if left not in ends and any(all(part.symbol in ends for part in one.parts) for one in found)
    }:
        ends |= grown
    return [left for left in rules if left not in ends]
