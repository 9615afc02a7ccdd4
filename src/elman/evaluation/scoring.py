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
