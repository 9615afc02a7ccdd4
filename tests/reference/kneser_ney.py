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


class SlowSentences:
    """The same sentence by sentence, as KenLM's lmplz counts: p(word | the words from <s> on).

    n-grams that begin with <s> count occurrences at every length; <s> is not predicted, and the uniform distribution is
    over all other words. n-grams that occur at most as often as `thresholds[n - 1]` are pruned: they give their
    counts to the weight of their context.
    """

    def __init__(self, sentences, words, order, thresholds=None):
        self.order, self.words = order, words
        self.thresholds = thresholds or [0] * order
        whole = [("<s>", *sentence, "</s>") for sentence in sentences]
        windows = {
            n: [line[at : at + n] for line in whole for at in range(len(line) - n + 1)] for n in range(1, order + 1)
        }
        self.occurrences = {n: Counter(windows[n]) for n in range(1, order + 1)}
        self.counts = {}
        for n in range(1, order):
            in_front = Counter(gram[1:] for gram in self.occurrences[n + 1])
            begins = {gram: count for gram, count in self.occurrences[n].items() if gram[0] == "<s>" and n > 1}
            self.counts[n] = Counter({**in_front, **begins})
        self.counts[order] = Counter(self.occurrences[order])
        self.counts[1].pop(("<s>",), None)
        self.discounts = {n: discounts(counter.values()) for n, counter in self.counts.items()}

    def probability(self, word, history):
        history = tuple(history)[max(0, len(history) - self.order + 1) :]
        below = self.probability(word, history[1:]) if history else 1 / len(self.words)
        n = len(history) + 1
        counts, d = self.counts[n], self.discounts[n]
        after = {gram: count for gram, count in counts.items() if gram[:-1] == history}
        total = sum(after.values())
        if not total:
            return below

        def kept(gram):
            return n == 1 or self.occurrences[n][gram] > self.thresholds[n - 1]

        left = sum(d[min(count, 3)] if kept(gram) else count for gram, count in after.items())
        gram = (*history, word)
        own = after[gram] - d[min(after[gram], 3)] if gram in after and kept(gram) else 0
        return own / total + left / total * below
