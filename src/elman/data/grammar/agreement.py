"""What a sentence's parse says about agreement: which verb agrees with which noun, and what stands between them."""

from collections.abc import Sequence
from typing import NamedTuple

from elman.data.grammar.rules import Grammar


class Leaf(NamedTuple):
    """A word with its place in the parse.

    Attributes:
        word: as it stands.
        symbol: its category, such as `N[sg]`.
        bond: what it shares its number with, unique within the sentence; None: it has no number.
        clauses: the embedded clauses it is in, outermost first.

    """

    word: str
    symbol: str
    bond: int | None
    clauses: tuple[int, ...]


class Dependency(NamedTuple):
    """A verb and the noun it agrees with.

    Attributes:
        noun, verb: positions in the sentence, from 0.
        right, wrong: the verb as it is, and in the other number.
        number: of both, such as `sg`.
        depth: clauses that the verb is in.
        levels: clauses within each other between noun and verb, at the deepest place.
        attractors: nouns of the other number between them (Linzen et al. 2016).

    """

    noun: int
    verb: int
    right: str
    wrong: str
    number: str
    depth: int
    levels: int
    attractors: int


class Sentence(NamedTuple):
    """Words and what is known of them.

    Attributes:
        words: in order, without `<eos>`.
        dependencies: one for every verb that agrees with a noun, in the order of the verbs.
        depth: clauses within each other, at the deepest place; 0: a simple sentence.

    """

    words: tuple[str, ...]
    dependencies: tuple[Dependency, ...]
    depth: int


def annotate(grammar: Grammar, leaves: Sequence[Leaf]) -> Sentence:
    """The sentence of a parse."""
    nouns = {leaf.bond: at for at, leaf in enumerate(leaves) if leaf.symbol in grammar.nouns}
    pairs = [
        (nouns[leaf.bond], at) for at, leaf in enumerate(leaves) if leaf.symbol in grammar.verbs and leaf.bond in nouns
    ]
    return Sentence(
        words=tuple(leaf.word for leaf in leaves),
        dependencies=tuple(_dependency(grammar, leaves, noun, verb) for noun, verb in pairs),
        depth=max(len(leaf.clauses) for leaf in leaves),
    )


def _dependency(grammar: Grammar, leaves: Sequence[Leaf], noun: int, verb: int) -> Dependency:
    target = leaves[verb]
    number = grammar.number[target.symbol]
    between = leaves[min(noun, verb) + 1 : max(noun, verb)]
    return Dependency(
        noun=noun,
        verb=verb,
        right=target.word,
        wrong=grammar.partners[target.symbol, target.word],
        number=number,
        depth=len(target.clauses),
        levels=max((len(set(leaf.clauses) - set(target.clauses)) for leaf in between), default=0),
        attractors=sum(leaf.symbol in grammar.nouns and grammar.number[leaf.symbol] != number for leaf in between),
    )
