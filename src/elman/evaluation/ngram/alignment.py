"""An n-gram model over the vocabulary of a network, so that the two give probabilities to the same events.

Words correspond by their spelling (`elman.evaluation.ngram.model.spelling`), and `<eos>` to `</s>`:

- words that the n-gram model lacks, and the network's `<unk>`, share the probability of its `<unk>` evenly; where
  there is an `<eos>`, a word that is written `<s>` or `</s>` is one of them;
- words that the network lacks are unknown to it: their probability is added to its `<unk>`;
- what has no place then (such words where the network has no `<unk>`, `</s>` where it has no `<eos>`, `<unk>` where
  neither lacks a word) is left out, and the other probabilities are divided by the rest.

After every context the probabilities of the network's words sum to one.
"""

from collections.abc import Sequence

import numpy as np

from elman.data.text.vocabulary import UNK, Vocabulary
from elman.errors import UserError
from elman.evaluation.ngram.model import BEGIN, END, NGramModel
from elman.evaluation.ngram.pruning import PART, lower_log_prob
from elman.evaluation.ngram.table import NOTHING, BackoffTable, Bools, Floats, Ids, Int64s, shifted

IMPOSSIBLE = -227.0  # the log-probability (nats) up to which a word, such as `<s>`, is never predicted: -99 in a file

LEAST = 1e-30  # a probability that is taken for 0


class AlignedNGram:
    """An n-gram model over the V words of a vocabulary; `knowing` adds words that are only read.

    Attributes:
        missing: how many words of the vocabulary the model lacks, `<unk>` apart.
        foreign: how many words of the model the vocabulary lacks, `<unk>` apart.
    """

    def __init__(self, model: NGramModel, vocabulary: Vocabulary, name: str = "the n-gram model") -> None:
        self.model, self.vocabulary, self._table = model, vocabulary, model.table
        self._unlike = set() if vocabulary.eos is None else {BEGIN, END}
        own = np.array([NOTHING if word in self._unlike else model.number(word) for word in vocabulary.words])
        lacking = own == NOTHING
        self.missing = int(lacking.sum()) - (vocabulary.unk is not None and bool(lacking[vocabulary.unk]))
        if lacking.all() or not any(word.isalnum() for word in vocabulary.decode(np.flatnonzero(~lacking))):
            raise UserError(f"{name}: none of its words is in the vocabulary; give an n-gram model of the same tokens")
        self._predicted = np.where(lacking, NOTHING if model.unk is None else model.unk, own)
        sharing = np.bincount(self._predicted[self._predicted >= 0], minlength=len(model.words))
        with np.errstate(divide="ignore"):
            self._share = np.where(self._predicted >= 0, -np.log(np.maximum(sharing, 1))[self._predicted], -np.inf)
        unplaced = (sharing == 0) & (self._table.levels[0].log_prob > IMPOSSIBLE)
        ends = np.arange(len(model.words)) == (NOTHING if model.end is None else model.end)
        self.foreign = int((unplaced & ~ends).sum()) - (model.unk is not None and bool(unplaced[model.unk]))
        to_unk = unplaced & ~ends if vocabulary.unk is not None else np.zeros_like(unplaced)
        self._added, self._removed = (
            Mass(self._table, chosen) if chosen.any() else None for chosen in (to_unk, unplaced & ~to_unk)
        )
        self._read = self._as_read(vocabulary.words)

    @property
    def order(self) -> int:
        """How many words the longest n-gram has."""
        return self._table.order

    def knowing(self, words: Sequence[str]) -> "AlignedNGram":
        """The same model that also reads word V + i, as the i-th of `words`."""
        wider = object.__new__(type(self))
        wider.__dict__.update(self.__dict__)
        wider._read = np.concatenate([self._read[: len(self.vocabulary)], self._as_read(words)])
        return wider

    def log_prob(self, tokens: Ids, history: Ids | Sequence[int] = ()) -> Floats:
        """The log-probability (nats) of each word of the vocabulary in a text, [n]; `history` precedes the first."""
        before = np.asarray(history, dtype=np.int64)[max(0, len(history) - self.order + 1) :]
        words = np.concatenate([before, np.asarray(tokens, dtype=np.int64)])
        return self.score(words, words)[len(before) :]

    def score(self, words: Int64s, read: Int64s) -> Floats:
        """The log-probability of each word [..., n] after the words read before it; `NOTHING` is read as no word."""
        inner = self._numbers(read)
        predicted = self._predicted[words]
        found = self._table.score(np.maximum(predicted, 0), inner)[0] + self._share[words]
        if self._added is None and self._removed is None:
            return found
        contexts = [shifted(number) for number in self._table.contexts(inner)]
        if self._added is not None:
            unknown = words == self.vocabulary.unk
            extra = self._added.after([number[unknown] for number in contexts], (int(unknown.sum()),))
            found[unknown] = np.logaddexp(found[unknown], _log(extra))
        if self._removed is not None:
            found -= _log(1 - self._removed.after(contexts, words.shape))
        return found

    def log_probs(self, read: Int64s) -> Floats:
        """The log-probabilities [B, n, V] of all words after each place of the words that are read [B, n]."""
        contexts = self._table.contexts(self._numbers(read))
        found = np.empty((*read.shape, len(self.vocabulary)))
        for place in np.ndindex(read.shape):
            found[place] = self._table.log_probs([int(number[place]) for number in contexts])[self._predicted]
        found += self._share
        if self._added is not None:
            unk = self.vocabulary.unk
            found[..., unk] = np.logaddexp(found[..., unk], _log(self._added.after(contexts, read.shape)))
        if self._removed is not None:
            found -= _log(1 - self._removed.after(contexts, read.shape))[..., None]
        return found

    def _as_read(self, words: Sequence[str]) -> Int64s:
        return self._table.as_read(self.model.encode(UNK if word in self._unlike else word for word in words))

    def _numbers(self, read: Int64s) -> Int64s:
        return np.where(read == NOTHING, NOTHING, self._read[read])


class Mass:
    """How much probability some words of a table have together, after every context."""

    def __init__(self, table: BackoffTable, chosen: Bools) -> None:
        self._none = float(np.exp(table.levels[0].log_prob[chosen]).sum())
        self._levels = list[Floats]()
        for length in range(2, table.order + 1):
            level, below = table.levels[length - 1], table.levels[length - 2]
            context, last = np.divmod(level.keys, table.vocabulary_size)
            inside, weight = np.flatnonzero(chosen[last]), np.exp(below.backoff)
            lower = np.exp(lower_log_prob(table, length)[inside])
            change = np.exp(level.log_prob[inside]) - weight[context[inside]] * lower
            own = np.bincount(context[inside], weights=change, minlength=len(below.keys))
            self._levels.append(own + weight * self._of_suffixes(table, length - 1))

    def after(self, contexts: Sequence[Int64s], shape: tuple[int, ...]) -> Floats:
        """The mass after contexts of a shape, given their numbers by length as `BackoffTable.contexts` has them."""
        found = np.full(shape, self._none)
        for number, mass in zip(contexts, self._levels, strict=False):
            found = np.where(number >= 0, mass[number], found)
        return found

    def _of_suffixes(self, table: BackoffTable, length: int) -> Floats:
        """The mass after each n-gram of a length without its first word, [U]."""
        if length == 1:
            return np.full(len(table.levels[0].keys), self._none)
        found = [np.empty(0)]
        for at in range(0, len(table.levels[length - 1].keys), PART):
            rows = table.rows(length, slice(at, at + PART))[:, 1:]
            found.append(self.after([number[:, -1] for number in table.contexts(rows)], (len(rows),)))
        return np.concatenate(found)


def _log(mass: Floats) -> Floats:
    """The logarithm of a mass, which rounding may have made 0 or negative."""
    return np.log(np.maximum(mass, LEAST))
