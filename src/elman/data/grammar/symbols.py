"""Symbols of a grammar file as they stand there, and what is asked of the rules between them."""

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from elman.data.grammar.rules import Alternative


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
