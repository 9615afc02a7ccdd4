"""Sentences drawn from a grammar, each with its parse."""

import itertools
import random
from collections.abc import Iterator
from typing import NamedTuple

from elman.data.grammar.agreement import Leaf, Sentence, annotate
from elman.data.grammar.rules import Grammar
from elman.errors import UserError

_TRIES, _SYMBOLS = 10_000, 10_000


class Wish(NamedTuple):
    """What sentences should be like; see `elman.data.grammar.options.GrammarOptions`."""

    complex: float | None = None
    max_depth: int | None = None
    max_length: int | None = None


class _Open(NamedTuple):
    symbol: str
    bond: int | None
    clauses: tuple[int, ...]


def sentences(grammar: Grammar, wish: Wish, seed: str) -> Iterator[Sentence]:
    """Sentences without end; equal seeds give equal sentences.

    With `wish.complex` it is drawn first whether a sentence has an embedded clause, then sentences of the grammar until
    one is so: within simple and within complex sentences the shares are those of the grammar.

    Raises:
        UserError: such sentences are not to be had from these rules.

    """
    draw = random.Random(seed)
    while True:
        wanted = None if wish.complex is None else draw.random() < wish.complex
        yield _one(grammar, wish, wanted, draw)


def _one(grammar: Grammar, wish: Wish, wanted: bool | None, draw: random.Random) -> Sentence:
    for _ in range(_TRIES):
        leaves = _derive(grammar, wish, draw)
        if leaves is None or wanted not in (None, any(leaf.clauses for leaf in leaves)):
            continue
        return annotate(grammar, leaves)
    kind = {None: "", True: "complex ", False: "simple "}[wanted]
    raise UserError(
        f"{grammar.name}: none of {_TRIES:,} sentences was a {kind}one within max_depth = {wish.max_depth} and"
        f" max_length = {wish.max_length}; raise them, or change the weights of the rules"
    )


def _derive(grammar: Grammar, wish: Wish, draw: random.Random) -> list[Leaf] | None:
    """The words of one derivation, leftmost first; None when it is longer than wished."""
    leaves: list[Leaf] = []
    bonds, clauses = itertools.count(), itertools.count()
    longest = _SYMBOLS if wish.max_length is None else wish.max_length
    stack = [_Open(grammar.start, None, ())]
    for _ in range(_SYMBOLS):
        if not stack:
            return leaves
        top = stack.pop()
        within = (*top.clauses, next(clauses)) if top.symbol in grammar.embedding else top.clauses
        if top.symbol in grammar.words:
            choices = grammar.words[top.symbol]
            (word,) = draw.choices(list(choices), list(choices.values()))
            leaves.append(Leaf(word, top.symbol, top.bond, within))
            if len(leaves) > longest:
                return None
            continue
        alternatives = grammar.alternatives(top.symbol, len(within), wish.max_depth)
        (chosen,) = draw.choices(alternatives, [one.probability for one in alternatives])
        own = {0: top.bond}
        for part in reversed(chosen.parts):
            if part.bond is not None and part.bond not in own:
                own[part.bond] = next(bonds)
        stack += [
            _Open(part.symbol, None if part.bond is None else own[part.bond], within) for part in reversed(chosen.parts)
        ]
    if wish.max_length is not None:
        return None
    raise UserError(
        f"{grammar.name}: a sentence did not end within {_SYMBOLS:,} symbols; lower the weights of recursive rules, or"
        " set max_depth or max_length"
    )
