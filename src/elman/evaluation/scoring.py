"""Log-probabilities of sentences: independent of each other, or one document in which the state is carried."""

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Literal, TypeAlias

import msgspec
import numpy as np
import torch

from elman.data.windows import stack_sequences
from elman.network.model import LanguageModel
from elman.network.state import State

# FOLDED evaluation/unknown.py: What the score of a word that the vocabulary lacks is taken to be.
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


# TARGET
@torch.inference_mode()
def score_sentences(
    model: LanguageModel,
    sentences: Iterable[np.ndarray],
    first: int,
    batch_size: int = 32,
    inputs: Iterable[np.ndarray] | None = None,
) -> Iterator[np.ndarray]:
    """Log-probabilities (nats) of the tokens of each sentence, every sentence preceded by `first` and no other context.

    Padding never changes a probability: the model reads forward only, and what stands after a sentence is not counted.
    `inputs` are what is read in place of the sentences, where unknown words have numbers of their own.
    """
    remaining, reading = iter(sentences), None if inputs is None else iter(inputs)
    while group := list(islice(remaining, batch_size)):
        batch, lengths = stack_sequences(group, first, None if reading is None else list(islice(reading, len(group))))
        batch = batch.to(model.device)
        log_prob, _ = model.log_prob(batch.inputs, batch.targets, model.begin(len(group)))
        values = log_prob.t().float().cpu().numpy()
        yield from (row[:length] for row, length in zip(values, lengths, strict=True))


@torch.inference_mode()
def score_document(
    model: LanguageModel,
    sentences: Iterable[np.ndarray],
    first: int,
    state: State | None = None,
    inputs: Iterable[np.ndarray] | None = None,
) -> Iterator[np.ndarray]:
    """As `score_sentences`, but each sentence is read in the context of all before it."""
    state = model.begin(1) if state is None else state
    before = first
    for sentence, read in with_inputs(sentences, inputs):
        ids = torch.tensor(np.concatenate([[before], read[:-1]]), dtype=torch.long, device=model.device)
        targets = torch.tensor(sentence, dtype=torch.long, device=model.device)
        log_prob, state = model.log_prob(ids.unsqueeze(1), targets.unsqueeze(1), state)
        before = int(read[-1])
        yield log_prob.squeeze(1).float().cpu().numpy()


def with_inputs(
    sentences: Iterable[np.ndarray], inputs: Iterable[np.ndarray] | None
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Each sentence and what is read in its place: itself, where there are no `inputs`."""
    if inputs is None:
        return ((sentence, sentence) for sentence in sentences)
    return zip(sentences, inputs, strict=True)


def surprisal(log_probs: Sequence[float] | np.ndarray) -> np.ndarray:
    """Surprisal in bits of log-probabilities in nats."""
    return -np.asarray(log_probs, dtype=np.float64) / np.log(2.0)
