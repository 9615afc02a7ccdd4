"""What the score of a word that the vocabulary lacks is taken to be."""

import math
from collections.abc import Sequence
from typing import Literal, TypeAlias

import msgspec
import numpy as np

Treatment: TypeAlias = Literal["score", "exclude", "spread"]


class Unknown(msgspec.Struct, frozen=True, kw_only=True):
    """How unknown words are scored.

    Attributes:
        treatment: `score`: by what the model gives `<unk>`; `exclude`: not at all (NaN, left out of sums); `spread`:
            that probability shared out evenly among the types `<unk>` stands for, log p(<unk>) - log `types`
            (Ueberla 1994, Analysing a simple language model, Computer Speech and Language 8).
        types: how many those are, for `spread`.

    """

    treatment: Treatment = "score"
    types: int = 1

    def apply(self, log_probs: np.ndarray, unknown: Sequence[bool]) -> np.ndarray:
        """The log-probabilities (nats) [n] with those of unknown words put right; the argument stays as it is."""
        if self.treatment == "score" or not any(unknown):
            return log_probs
        scored = log_probs - np.float32(math.log(max(1, self.types)))
        return np.where(np.asarray(unknown), np.nan if self.treatment == "exclude" else scored, log_probs)
