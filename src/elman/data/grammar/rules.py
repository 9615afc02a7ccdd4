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
and what shares it agrees: a variable that is not on the left is drawn anew. Weights are scaled to sum to one.
"""

import dataclasses
import functools
from collections.abc import Collection
from typing import NamedTuple

from elman.errors import UserError


class Part(NamedTuple):
    """A symbol on the right of a rule.

    Attributes:
        symbol: such as `NP[sg]`.
        bond: the number it shares: 0 that of the left side, 1, 2, ... a new one; None: it has no number.

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

    Attributes:
        name: of its file.
        text: the content of the file.
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
        """The alternatives of a symbol at a depth; where no further clause may open the others are scaled up."""
        found = self.rules[symbol]
        if max_depth is None or depth < max_depth:
            return found
        flat = [one for one in found if not self.embeds(one)]
        total = sum(one.probability for one in flat)
        return tuple(Alternative(parts, probability / total) for parts, probability in flat)


def check(
    name: str,
    text: str,
    heads: dict[str, list[str]],
    values: list[str],
    rules: dict[str, list[Alternative]],
    words: dict[str, dict[str, float]],
    lines: dict[str, int],
) -> Grammar:
    """The grammar of these rules and words, with weights scaled to probabilities.

    Args:
        name: of its file, for messages.
        text: the content of the file.
        heads: the symbols after `start`, `nouns`, `verbs` and `embedding`, where the file has them.
        values: the two values of number.
        rules: alternatives with weights, by left side.
        words: words and their probabilities, by symbol.
        lines: the line that defines a symbol.

    Raises:
        UserError: an undefined symbol, a symbol that can begin with itself or never ends, verbs without partners; the
            message names the line.

    """
    _require_defined(name, rules, words, lines)
    start = _start(name, heads, rules)
    _require_no_left_recursion(name, rules, lines)
    _require_an_end(name, rules, words, lines)
    kinds = {kind: _symbols(name, kind, heads.get(kind, []), {**rules, **words}) for kind in ("embedding",)}
    kinds |= {kind: _symbols(name, kind, heads.get(kind, []), words) for kind in ("nouns", "verbs")}
    number = {symbol: value for symbol in lines for value in values if symbol.endswith(f"[{value}]")}
    for symbol in sorted(kinds["nouns"] | kinds["verbs"]):
        if symbol not in number:
            raise UserError(f"{name}:{lines[symbol]}: {symbol} has no number; write {symbol}[{values[0]}] : WORDS")
    grammar = Grammar(
        name=name,
        text=text,
        start=start,
        rules={symbol: _scaled(found) for symbol, found in rules.items()},
        words=words,
        number=number,
        nouns=kinds["nouns"],
        verbs=kinds["verbs"],
        embedding=kinds["embedding"],
        partners=_partners(name, kinds["verbs"], values, words, lines),
    )
    for symbol, found in grammar.rules.items():
        if all(map(grammar.embeds, found)):
            raise UserError(
                f"{name}:{lines[symbol]}: every alternative of {symbol} opens a clause; add one that does not, so that"
                " sentences can end"
            )
    return grammar


def _require_defined(
    name: str, rules: dict[str, list[Alternative]], words: dict[str, dict[str, float]], lines: dict[str, int]
) -> None:
    for left, alternatives in rules.items():
        for part in (part for one in alternatives for part in one.parts):
            if part.symbol not in rules and part.symbol not in words:
                raise UserError(
                    f"{name}:{lines[left]}: {left} needs {part.symbol}, which is not defined; write a line"
                    f" {part.symbol} -> SYMBOLS or {part.symbol} : WORDS"
                )


def _start(name: str, heads: dict[str, list[str]], rules: dict[str, list[Alternative]]) -> str:
    start = heads.get("start", ["S"])
    if len(start) != 1 or start[0] not in rules:
        raise UserError(f"{name}: the start symbol {' '.join(start)} has no rules; write one: {start[0]} -> SYMBOLS")
    return start[0]


def _require_no_left_recursion(name: str, rules: dict[str, list[Alternative]], lines: dict[str, int]) -> None:
    """With left recursion the first word of a symbol could not be found by expanding it."""
    firsts = {
        left: {one.parts[0].symbol for one in found if one.parts[0].symbol in rules} for left, found in rules.items()
    }
    for left in rules:
        reached, todo = set[str](), list(firsts[left])
        while todo:
            symbol = todo.pop()
            if symbol not in reached:
                reached.add(symbol)
                todo += firsts[symbol]
        if left in reached:
            raise UserError(
                f"{name}:{lines[left]}: {left} can begin with itself; put the recursion at the right, as in"
                " NP[n] -> N[n] PP"
            )


def _require_an_end(
    name: str, rules: dict[str, list[Alternative]], words: dict[str, dict[str, float]], lines: dict[str, int]
) -> None:
    ends = set(words)
    while grown := {
        left
        for left, found in rules.items()
        if left not in ends and any(all(part.symbol in ends for part in one.parts) for one in found)
    }:
        ends |= grown
    for left in rules:
        if left not in ends:
            raise UserError(f"{name}:{lines[left]}: {left} never ends; give it an alternative of words alone")


def _symbols(name: str, kind: str, bases: list[str], defined: Collection[str]) -> frozenset[str]:
    found = {base: [symbol for symbol in defined if symbol.partition("[")[0] == base] for base in bases}
    for base, symbols in found.items():
        if not symbols:
            what = "is not defined" if kind == "embedding" else "has no words"
            raise UserError(f"{name}: {kind} names {base}, which {what}; there are {', '.join(defined)}")
    return frozenset(symbol for symbols in found.values() for symbol in symbols)


def _partners(
    name: str,
    verbs: frozenset[str],
    values: list[str],
    words: dict[str, dict[str, float]],
    lines: dict[str, int],
) -> dict[tuple[str, str], str]:
    partners: dict[tuple[str, str], str] = {}
    for verb in sorted(verbs):
        base = verb.partition("[")[0]
        other = f"{base}[{values[1] if verb.endswith(f'[{values[0]}]') else values[0]}]"
        if len(words.get(other, ())) != len(words[verb]):
            raise UserError(
                f"{name}:{lines[verb]}: {verb} has {len(words[verb])} words and {other} {len(words.get(other, ()))};"
                " write the two forms of every verb, in the same order"
            )
        partners |= {(verb, word): form for word, form in zip(words[verb], words[other], strict=True)}
    return partners


def _scaled(alternatives: list[Alternative]) -> tuple[Alternative, ...]:
    total = sum(one.probability for one in alternatives)
    return tuple(Alternative(parts, probability / total) for parts, probability in alternatives)
