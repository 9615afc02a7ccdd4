"""Interpolated modified Kneser-Ney with dictionaries, word by word, as Chen & Goodman (1999) write it."""

from collections import Counter, defaultdict


def counts_of(stream, order):
    """length -> Counter of n-grams: occurrences at the top, distinct preceding words below."""
    grams = {m: [tuple(stream[i : i + m]) for i in range(len(stream) - m + 1)] for m in range(1, order + 1)}
    counts = {order: Counter(grams[order])}
    for m in range(1, order):
        before = defaultdict(set)
        for gram in grams[m + 1]:
            before[gram[1:]].add(gram[0])
        counts[m] = Counter({gram: len(before[gram]) for gram in set(grams[m])})
    return counts


def discounts_of(counter):
    n = Counter(min(count, 5) for count in counter.values())
    result = {1: 0.5, 2: 1.0, 3: 1.5}
    if all(n[k] for k in (1, 2, 3, 4)):
        y = n[1] / (n[1] + 2 * n[2])
        for k in (1, 2, 3):
            d = k - (k + 1) * y * n[k + 1] / n[k]
            if 0 < d <= k:
                result[k] = d
    return result


class SlowKneserNey:
    def __init__(self, stream, vocabulary_size, order):
        self.order, self.vocabulary_size = order, vocabulary_size
        self.counts = counts_of(stream, order)
        self.discounts = {m: discounts_of(counter) for m, counter in self.counts.items()}

    def probability(self, word, history):
        history = tuple(history)[-(self.order - 1) :] if self.order > 1 else ()
        return self._interpolated(word, history)

    def _interpolated(self, word, history):
        below = self._interpolated(word, history[1:]) if history else 1 / self.vocabulary_size
        m = len(history) + 1
        following = {g: c for g, c in self.counts[m].items() if g[:-1] == history and c > 0}
        total = sum(following.values())
        if total == 0:
            return below
        d = self.discounts[m]
        taken = sum(min(d[min(c, 3)], c) for c in following.values())
        c = following.get((*history, word), 0)
        own = c - min(d[min(c, 3)], c) if c else 0
        return own / total + taken / total * below
