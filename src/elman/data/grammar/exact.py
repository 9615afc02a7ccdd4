"""The exact probabilities of the next word under a grammar, summed over all parses of the words so far.

A parse in progress is a stack of the symbols that remain. All stacks that agree with the words so far are kept with
their probabilities; the next word's probability is the share of stacks that can begin with it. Grammars have no left
recursion, so the stacks are finitely many. Stolcke 1995 computes the same from Earley's chart.
"""

import functools
import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from elman.data.grammar.rules import Grammar
from elman.data.grammar.sample import Wish
from elman.errors import UserError

_ROUNDING = 1e-12  # shares of sentences below this are 0 but for rounding


class _Item(NamedTuple):
    symbol: str
    depth: int


Parses: TypeAlias = dict[tuple[tuple[_Item, ...], bool], float]
"""Stacks that fit the words so far, top first, with whether a clause has opened, and their probabilities."""


class Oracle:
    """The true distribution of sentences of a grammar, with the share of complex ones that `wish` sets.

    Raises UserError where the rules give no complex sentence, and these are to have a share.

    `wish.max_length` is ignored: the distribution includes the sentences that sampling rejects for their length.
    `words`, `<eos>` among them, gives the order of the distributions; words that the grammar lacks get 0.
    """

    def __init__(self, grammar: Grammar, wish: Wish, words: Sequence[str]) -> None:
        self.grammar, self.wish = grammar, wish
        self.index = {word: at for at, word in enumerate(words)}
        self.simple = self._simple_shares()
        self._openings = functools.lru_cache(maxsize=None)(self._find_openings)
        whole = self.simple[grammar.start]
        share = wish.complex
        if share and 1 - whole < _ROUNDING:
            depth = "" if wish.max_depth is None else f" within max_depth = {wish.max_depth}"
            raise UserError(
                f"{grammar.name}: the rules give no complex sentence{depth}, and complex = {share:g}; change it"
            )
        self.factors = (1.0, 1.0) if share is None else ((1 - share) / whole, share / (1 - whole) if share else 0.0)

    def begin(self) -> Parses:
        return {((_Item(self.grammar.start, 0),), False): 1.0}

    def next_words(self, parses: Parses) -> npt.NDArray[np.float64]:
        """Probabilities [V] of what follows; they sum to one where `words` has all words of the grammar."""
        found = np.zeros(len(self.index))
        for (stack, opened), weight in self._tops(parses):
            for word, probability in self.grammar.words[stack[0].symbol].items() if stack else (("<eos>", 1.0),):
                if word in self.index:
                    found[self.index[word]] += weight * probability * self._factor(stack[1:], opened)
        return found / found.sum()

    def read(self, parses: Parses, word: str) -> Parses:
        """After one more word; empty where the grammar does not allow it."""
        after: Parses = defaultdict(float)
        for (stack, opened), weight in self._tops(parses):
            probability = self.grammar.words[stack[0].symbol].get(word, 0.0) if stack else 0.0
            if probability:
                after[stack[1:], opened] += weight * probability
        total = sum(after.values())
        return {key: weight / total for key, weight in after.items()}

    def log_prob(self, words: Sequence[str]) -> float:
        """Log-probability (nats) of a sentence and its end."""
        parses, total = self.begin(), 0.0
        for word in [*words, "<eos>"]:
            total += math.log(self.next_words(parses)[self.index[word]])
            parses = self.read(parses, word) if word != "<eos>" else parses
        return total

    def _tops(self, parses: Parses) -> Iterator[tuple[tuple[tuple[_Item, ...], bool], float]]:
        """The stacks with a category of words on top, or empty."""
        for (stack, opened), weight in parses.items():
            if not stack:
                yield (stack, opened), weight
            else:
                for probability, above, opens in self._openings(stack[0]):
                    yield (above + stack[1:], opened or opens), weight * probability

    def _find_openings(self, top: _Item) -> tuple[tuple[float, tuple[_Item, ...], bool], ...]:
        """Every way to write a symbol until a category of words is on top: probability, stack, whether one opened."""
        opens = top.symbol in self.grammar.embedding
        depth = top.depth + opens
        if top.symbol in self.grammar.words:
            return ((1.0, (top,), opens),)
        seen = 0 if self.wish.max_depth is None else depth  # without a limit all depths are equivalent: fewer stacks
        found = []
        for parts, probability in self.grammar.alternatives(top.symbol, depth, self.wish.max_depth):
            first, *rest = (_Item(part.symbol, seen) for part in parts)
            for inner, above, opened in self._openings(first):
                found.append((probability * inner, above + tuple(rest), opens or opened))
        return tuple(found)

    def _factor(self, rest: tuple[_Item, ...], opened: bool) -> float:
        """The factor by which the share of complex sentences changes the probability of a stack's continuations."""
        simple, complex_ = self.factors
        if opened:
            return complex_
        still = math.prod(self.simple[item.symbol] for item in rest)
        return simple * still + complex_ * (1 - still)

    def _simple_shares(self) -> dict[str, float]:
        """The probability that a symbol is completed without an embedded clause, by symbol, at depth 0."""
        shares = dict.fromkeys(self.grammar.words, 1.0) | dict.fromkeys(self.grammar.rules, 0.0)
        shares |= dict.fromkeys(self.grammar.embedding, 0.0)
        while True:
            change = 0.0
            for symbol in self.grammar.rules.keys() - self.grammar.embedding:
                new = sum(
                    probability * math.prod(shares[part.symbol] for part in parts)
                    for parts, probability in self.grammar.alternatives(symbol, 0, self.wish.max_depth)
                )
                change, shares[symbol] = max(change, abs(new - shares[symbol])), new
            if change < 1e-14:
                return shares
