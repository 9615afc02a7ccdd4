"""A unigram model, the simplest baseline."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from elman.evaluation.ngram.table import Floats, Int64s, within

Ids = npt.NDArray[Any]


class Unigram:
    """Relative frequencies with one added to every count [V], so that no word is impossible."""

    def __init__(self, counts: Int64s) -> None:
        self.counts = counts
        self.log_probs: Floats = np.log(counts + 1.0) - np.log((counts + 1.0).sum())

    @classmethod
    def train(cls, tokens: Ids, vocabulary_size: int) -> "Unigram":
        """Count the words of a stream."""
        return cls(np.bincount(within(tokens, vocabulary_size), minlength=vocabulary_size))

    def log_prob(self, tokens: Ids, history: Ids | Sequence[int] = ()) -> Floats:  # noqa: ARG002
        """The log-probability (nats) of each token, [n], whatever the history."""
        return self.log_probs[within(tokens, len(self.counts))]
