"""Log-probabilities of sentences: independent of each other, or one document in which the state is carried."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

import numpy as np
import torch

from elman.data.windows import stack_sequences
from elman.model import LanguageModel
from elman.state import State


@torch.inference_mode()
def score_sentences(
    model: LanguageModel, sentences: Iterable[np.ndarray], first: int, batch_size: int = 32
) -> Iterator[np.ndarray]:
    """Log-probabilities (nats) of the tokens of each sentence, every sentence preceded by `first` and no other context.

    Padding never changes a probability: the model reads forward only, and what stands after a sentence is not counted.
    """
    remaining = iter(sentences)
    while group := list(islice(remaining, batch_size)):
        batch, lengths = stack_sequences(group, first)
        batch = batch.to(model.device)
        log_prob, _ = model.log_prob(batch.inputs, batch.targets, model.begin(len(group)))
        values = log_prob.t().float().cpu().numpy()
        yield from (row[:length] for row, length in zip(values, lengths, strict=True))


@torch.inference_mode()
def score_document(
    model: LanguageModel, sentences: Iterable[np.ndarray], first: int, state: State | None = None
) -> Iterator[np.ndarray]:
    """As `score_sentences`, but each sentence is read in the context of all before it."""
    state = model.begin(1) if state is None else state
    before = first
    for sentence in sentences:
        inputs = torch.tensor(np.concatenate([[before], sentence[:-1]]), dtype=torch.long, device=model.device)
        targets = torch.tensor(sentence, dtype=torch.long, device=model.device)
        log_prob, state = model.log_prob(inputs.unsqueeze(1), targets.unsqueeze(1), state)
        before = int(sentence[-1])
        yield log_prob.squeeze(1).float().cpu().numpy()


def surprisal(log_probs: Sequence[float] | np.ndarray) -> np.ndarray:
    """Surprisal in bits of log-probabilities in nats."""
    return -np.asarray(log_probs, dtype=np.float64) / np.log(2.0)
