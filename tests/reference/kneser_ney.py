"""Interpolated modified Kneser-Ney with dictionaries, word by word, as Chen & Goodman (1999) define it."""

from collections import Counter


class SlowKneserNey:
    """p(w | h) = (c(h w) - D(c(h w))) / c(h .) + gamma(h) p(w | h').

    c(g) counts occurrences at the highest order and is N1+(. g) below;
    gamma(h) = (D1 N1(h .) + D2 N2(h .) + D3+ N3+(h .)) / c(h .).
    """

    def __init__(self, stream, vocabulary_size, order):
        self.order, self.vocabulary_size = order, vocabulary_size
        windows = {m: list(zip(*(stream[i:] for i in range(m)), strict=False)) for m in range(1, order + 1)}
        self.counts = {m: Counter(gram[1:] for gram in set(windows[m + 1])) for m in range(1, order)}
        self.counts[order] = Counter(windows[order])
        self.discounts = {m: discounts(counter.values()) for m, counter in self.counts.items()}

    def probability(self, word, history):
        history = tuple(history)[max(0, len(history) - self.order + 1) :]
        below = self.probability(word, history[1:]) if history else 1 / self.vocabulary_size
        counts, d = self.counts[len(history) + 1], self.discounts[len(history) + 1]
        after = [counts[(*history, v)] for v in range(self.vocabulary_size) if (*history, v) in counts]
        if not after:
            return below
        gamma = (d[1] * after.count(1) + d[2] * after.count(2) + d[3] * sum(c >= 3 for c in after)) / sum(after)
        count = counts.get((*history, word), 0)
        return (count - d[min(count, 3)]) / sum(after) + gamma * below


def discounts(counts):
    """D by count, 3 for three and more; half the count where a count of counts is zero or D would not be positive."""
    n1, n2, n3, n4 = (list(counts).count(k) for k in (1, 2, 3, 4))
    halves = {0: 0, 1: 0.5, 2: 1, 3: 1.5}
    if 0 in (n1, n2, n3, n4):
        return halves
    y = n1 / (n1 + 2 * n2)
    wanted = {0: 0, 1: 1 - 2 * y * n2 / n1, 2: 2 - 3 * y * n3 / n2, 3: 3 - 4 * y * n4 / n3}
    return {k: d if d > 0 else halves[k] for k, d in wanted.items()}
