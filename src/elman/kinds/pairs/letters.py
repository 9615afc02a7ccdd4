"""Letters to sounds without a network: what most often stands for a letter in the widest context that training has.

Letters are aligned with what is written for them: each letter with 0 to 2 symbols, found by Viterbi training on
relative frequencies. A new word is written letter by letter, as in the table look-up of van den Bosch & Daelemans 1993
(Data-oriented methods for grapheme-to-phoneme conversion, EACL), or without a context.
"""

import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from elman.data.sentences import Ids
from elman.kinds.pairs.corpus import PairCorpus, Pairs

SYMBOLS = 2  # the most symbols that stand for one letter
CONTEXTS = ((4, 4), (3, 3), (2, 2), (1, 2), (1, 1), (0, 1), (0, 0))
"""Letters before and after a letter, the widest context first."""

ROUNDS, SAMPLE = 4, 8_000  # rounds of Viterbi training, and the words at the beginning on which it is done
FLOOR = -12.0  # log-probability of a chunk that was never aligned with a letter, and of one with more symbols for each
_FACTOR = 1_000_003

Chunk = tuple[int, ...]


class Aligned(NamedTuple):
    """The sources of the training split that could be aligned, and the number of each letter's chunk in `chunks`."""

    sources: list[Ids]
    chosen: Ids
    chunks: list[Chunk]


def aligned(corpus: PairCorpus) -> Aligned:
    train = corpus.split("train")
    kept = [place for place in range(len(train)) if len(train.target[place]) <= SYMBOLS * len(train.source[place])]
    words = [(train.source[place].tolist(), tuple(train.target[place].tolist())) for place in kept]
    scores = _first_scores(words[:SAMPLE])
    for _ in range(ROUNDS):
        pairs_of = (zip(word[0], _aligned(*word, scores), strict=True) for word in words[:SAMPLE])
        scores = _scores(Counter(itertools.chain.from_iterable(pairs_of)))
    chunks: dict[Chunk, int] = {}
    numbers = (chunks.setdefault(one, len(chunks)) for word in words for one in _aligned(*word, scores))
    found = np.fromiter(numbers, np.int64)
    return Aligned([train.source[place].numpy() for place in kept], found, list(chunks))


def letter_by_letter(
    train: Aligned, corpus: PairCorpus, pairs: Pairs, *, contexts: Sequence[tuple[int, int]] = CONTEXTS
) -> list[str]:
    """The targets of a split in the form that measures take, by the alignment of the training split."""
    if not train.sources:
        return [""] * len(pairs)
    known, found, names = train
    asked, tokenisers = [word.numpy() for word in pairs.source], corpus.symbols.tokenisers
    chosen = np.full(sum(map(len, asked)), -1)
    for width in contexts:
        ours, theirs = _hashed(known, *width), _hashed(asked, *width)
        seen, context = np.unique(ours, return_inverse=True)
        keys, counts = np.unique(context * len(names) + found, return_counts=True)
        context, chunk = np.divmod(keys, len(names))
        best = np.lexsort([-chunk, counts, context])  # by context, the most frequent chunk, the first of ties, last
        last = best[np.append(context[best][1:] != context[best][:-1], True)]
        places = np.searchsorted(seen, theirs).clip(max=len(last) - 1)
        there = (seen[places] == theirs) & (chosen < 0)
        chosen[there] = chunk[last][places][there]
    written, at = [], 0
    for word in asked:
        ids = [symbol for one in chosen[at : at + len(word)] if one >= 0 for symbol in names[one]]
        written.append(tokenisers.measured(corpus.symbols.target.decode(np.array(ids, np.int64))))
        at += len(word)
    return written


def _first_scores(words: Sequence[tuple[list[int], Chunk]]) -> dict[tuple[int, Chunk], float]:
    """Of a letter and a symbol by how often they stand in about the same place, against chance."""
    both, letters, symbols = Counter[tuple[int, Chunk]](), Counter[int](), Counter[int]()
    for source, target in words:
        letters.update(source)
        symbols.update(target)
        for place, letter in enumerate(source):
            near = place * len(target) / len(source)
            both.update((letter, (symbol,)) for at, symbol in enumerate(target) if abs(at - near) <= 1)
    scores = {key: math.log(count / (letters[key[0]] * symbols[key[1][0]])) for key, count in both.items()}
    highest = max(scores.values(), default=0.0)
    return {key: value - highest for key, value in scores.items()} | {(letter, ()): FLOOR / 3 for letter in letters}


def _scores(counts: Counter[tuple[int, Chunk]]) -> dict[tuple[int, Chunk], float]:
    """Log-probabilities of chunks given their letters."""
    totals = defaultdict[int, int](int)
    for (letter, _), count in counts.items():
        totals[letter] += count
    return {key: math.log(count / totals[key[0]]) for key, count in counts.items()}


def _aligned(source: list[int], target: Chunk, scores: dict[tuple[int, Chunk], float]) -> list[Chunk]:
    """The chunk of each letter of the best alignment; those that were never seen have `FLOOR` for each symbol."""
    best: dict[int, tuple[float, int]] = {0: (0.0, 0)}
    steps = []
    for letter in source:
        after: dict[int, tuple[float, int]] = {}
        for begun, (score, _) in best.items():
            for end in range(begun, min(begun + SYMBOLS, len(target)) + 1):
                total = score + scores.get((letter, target[begun:end]), FLOOR * (1 + end - begun))
                if end not in after or total > after[end][0]:
                    after[end] = total, begun
        steps.append(best := after)
    end, chunks = len(target), list[Chunk]()
    for step in reversed(steps):
        begun = step[end][1]
        chunks.append(target[begun:end])
        end = begun
    return chunks[::-1]


def _hashed(words: Sequence[Ids], before: int, after: int) -> Ids:
    """A number for every letter of all words, end to end, and the letters around it."""
    gap = np.zeros(max(before, after), np.int64)
    stream = np.concatenate([part for word in words for part in (gap, word + 1)] + [gap])
    places = np.flatnonzero(stream)
    number = np.zeros(len(places), np.int64)
    for offset in range(-before, after + 1):
        number = number * _FACTOR + stream[places + offset]
    return number
