"""A grammar: rules with probabilities and number agreement, and the conditions that rules must meet.

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
from collections.abc import Collection
from typing import NamedTuple

from elman.errors import UserError


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
        """All words, each once, in the order of the file."""
        return tuple(dict.fromkeys(word for words in self.words.values() for word in words))

    def verb_forms(self, number: str) -> tuple[str, ...]:
        """The verbs of one number, without forms that are also those of the other."""
        forms = [(word, self.number[verb]) for verb in self.words if verb in self.verbs for word in self.words[verb]]
        others = {word for word, own in forms if own != number}
        return tuple(dict.fromkeys(word for word, own in forms if own == number and word not in others))

    def embeds(self, alternative: Alternative) -> bool:
        """Whether an alternative opens a clause."""
        return any(part.symbol in self.embedding for part in alternative.parts)

    def alternatives(self, symbol: str, depth: int, max_depth: int | None) -> tuple[Alternative, ...]:
        """The alternatives of a symbol at a depth; where no further clause may open the others are scaled up."""
        found = self.rules[symbol]
        if max_depth is None or depth < max_depth:
            return found
        flat = [one for one in found if not self.embeds(one)]
        total = sum(one.probability for one in flat)
        return tuple(Alternative(parts, probability / total) for parts, probability in flat)


@dataclasses.dataclass(frozen=True)
class Draft:
    """The content of a grammar file, which `check` turns into a `Grammar`.

    `heads` holds the symbols after `start`, `nouns`, `verbs` and `embedding`, where the file has them; `values` the two
    values of number; `rules` alternatives with weights, by left side; `words` their probabilities, by symbol; `lines`
    the line that defines a symbol.
    """

    name: str
    text: str
    heads: dict[str, list[str]]
    values: list[str]
    rules: dict[str, list[Alternative]] = dataclasses.field(default_factory=dict)
    words: dict[str, dict[str, float]] = dataclasses.field(default_factory=dict)
    lines: dict[str, int] = dataclasses.field(default_factory=dict)

    def check(self) -> Grammar:
        """The grammar, its weights scaled to probabilities.

        Raises UserError where a symbol is undefined, can begin with itself or never ends, or a verb lacks a partner;
        the message names the line.
        """
        self._require_defined()
        start = self._start()
        self._require_no_left_recursion()
        self._require_an_end()
        embedding = self._symbols("embedding", {**self.rules, **self.words})
        nouns, verbs = (self._symbols(kind, self.words) for kind in ("nouns", "verbs"))
        number = {symbol: value for symbol in self.lines for value in self.values if symbol.endswith(f"[{value}]")}
        for symbol in sorted(nouns | verbs):
            if symbol not in number:
                raise self._wrong(symbol, f"{symbol} has no number; write {symbol}[{self.values[0]}] : WORDS")
        totals = {symbol: sum(one.probability for one in found) for symbol, found in self.rules.items()}
        rules = {
            symbol: tuple(Alternative(parts, weight / totals[symbol]) for parts, weight in found)
            for symbol, found in self.rules.items()
        }
        partners = self._partners(verbs)
        grammar = Grammar(self.name, self.text, start, rules, self.words, number, nouns, verbs, embedding, partners)
        for symbol, found in rules.items():
            if all(map(grammar.embeds, found)):
                advice = "add one that does not, so that sentences can end"
                raise self._wrong(symbol, f"every alternative of {symbol} opens a clause; {advice}")
        return grammar

    def _wrong(self, symbol: str, message: str) -> UserError:
        return UserError(f"{self.name}:{self.lines[symbol]}: {message}")

    def _require_defined(self) -> None:
        for left, alternatives in self.rules.items():
            for symbol in (part.symbol for one in alternatives for part in one.parts):
                if symbol not in self.rules and symbol not in self.words:
                    advice = f"write a line {symbol} -> SYMBOLS or {symbol} : WORDS"
                    raise self._wrong(left, f"{left} needs {symbol}, which is not defined; {advice}")

    def _start(self) -> str:
        start = self.heads.get("start", ["S"])
        if len(start) != 1 or start[0] not in self.rules:
            advice = f"write one: {start[0]} -> SYMBOLS"
            raise UserError(f"{self.name}: the start symbol {' '.join(start)} has no rules; {advice}")
        return start[0]

    def _require_no_left_recursion(self) -> None:
        """With left recursion the first word of a symbol could not be found by expanding it."""
        rules = self.rules
        firsts = {left: {one.parts[0].symbol for one in found} & rules.keys() for left, found in rules.items()}
        for left in rules:
            reached = firsts[left]
            while grown := {first for symbol in reached for first in firsts[symbol]} - reached:
                reached = reached | grown
            if left in reached:
                advice = "put the recursion at the right, as in NP[n] -> N[n] PP"
                raise self._wrong(left, f"{left} can begin with itself; {advice}")

    def _require_an_end(self) -> None:
        ends = set(self.words)
        while grown := {
            left
            for left, found in self.rules.items()
            if left not in ends and any(all(part.symbol in ends for part in one.parts) for one in found)
        }:
            ends |= grown
        for left in self.rules:
            if left not in ends:
                raise self._wrong(left, f"{left} never ends; give it an alternative of words alone")

    def _symbols(self, kind: str, defined: Collection[str]) -> frozenset[str]:
        """The symbols of a kind: the named ones with each of their numbers."""
        bases = self.heads.get(kind, [])
        found = {base: [symbol for symbol in defined if symbol.partition("[")[0] == base] for base in bases}
        for base, symbols in found.items():
            if not symbols:
                what = "is not defined" if kind == "embedding" else "has no words"
                raise UserError(f"{self.name}: {kind} names {base}, which {what}; there are {', '.join(defined)}")
        return frozenset(symbol for symbols in found.values() for symbol in symbols)

    def _partners(self, verbs: frozenset[str]) -> dict[tuple[str, str], str]:
        partners: dict[tuple[str, str], str] = {}
        for verb in sorted(verbs):
            base, one = verb.partition("[")[0], verb.endswith(f"[{self.values[0]}]")
            other = f"{base}[{self.values[1] if one else self.values[0]}]"
            words, forms = self.words[verb], self.words.get(other, {})
            if len(forms) != len(words):
                advice = "write the two forms of every verb, in the same order"
                raise self._wrong(verb, f"{verb} has {len(words)} words and {other} {len(forms)}; {advice}")
            partners |= {(verb, word): form for word, form in zip(words, forms, strict=True)}
        return partners
