"""What a model predicts at each position: the probability of what comes, its rank, and the entropy of what might."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from elman.data.windows import stack_sequences
from elman.evaluation.scoring import with_inputs
from elman.model import LanguageModel
from elman.state import State

LARGEST = 1 << 22
"""Log-probabilities formed at once."""


class Prediction(NamedTuple):
    """How n symbols were predicted.

    Attributes:
        log_prob: of each symbol (nats), float32 [n].
        rank: of each among all V by falling probability, 1 the most probable, int64 [n]; ties count in its favour.
        entropy: of the distribution that each was drawn from (nats), and of the one after the last: float32 [n + 1].

    """

    log_prob: np.ndarray
    rank: np.ndarray
    entropy: np.ndarray


@torch.inference_mode()
def predict(model: LanguageModel, inputs: Tensor, targets: Tensor, state: State) -> tuple[Tensor, Tensor, Tensor]:
    """Log-probability, rank and entropy, each [T, B], of targets [T, B] after inputs [T, B].

    They come from `LanguageModel.log_probs`, which every output layer has, a few steps at a time.
    """
    parts, at, steps = [], 0, 1
    while at < len(inputs):
        log_probs, state = model.log_probs(inputs[at : at + steps], state)
        log_prob = log_probs.gather(-1, targets[at : at + steps].unsqueeze(-1))
        rank = (log_probs > log_prob).sum(-1) + 1
        parts.append((log_prob.squeeze(-1), rank, torch.special.entr(log_probs.exp()).sum(-1)))
        at, steps = at + steps, max(1, LARGEST // log_probs[0].numel())
    log_prob, rank, entropy = (torch.cat(part) for part in zip(*parts, strict=True))
    return log_prob, rank, entropy


def predict_sentences(
    model: LanguageModel,
    sentences: Iterable[np.ndarray],
    first: int,
    batch_size: int = 32,
    inputs: Iterable[np.ndarray] | None = None,
) -> Iterator[Prediction]:
    """The prediction of each sentence, preceded by `first` and no other context; see `scoring.score_sentences`."""
    remaining = with_inputs(sentences, inputs)
    while group := list(islice(remaining, batch_size)):
        # One target more, whatever it is: the model reads the last symbol, too, and what it then expects is asked for.
        longer = [(np.append(sentence, first), np.append(read, first)) for sentence, read in group]
        batch, lengths = stack_sequences([sentence for sentence, _ in longer], first, [read for _, read in longer])
        batch = batch.to(model.device)
        columns = predict(model, batch.inputs, batch.targets, model.begin(len(group)))
        log_prob, rank, entropy = (_rows(column) for column in columns)
        for row, length in enumerate(lengths):
            yield Prediction(log_prob[row, : length - 1], rank[row, : length - 1], entropy[row, :length])


def predict_document(
    model: LanguageModel, sentences: Iterable[np.ndarray], first: int, inputs: Iterable[np.ndarray] | None = None
) -> Iterator[Prediction]:
    """As `predict_sentences`, but each sentence is read in the context of all before it."""
    state, before = model.begin(1), first
    for sentence, read in with_inputs(sentences, inputs):
        symbols = torch.tensor([before, *read.tolist()], device=model.device).unsqueeze(1)
        targets = torch.tensor([*sentence.tolist(), first], device=model.device).unsqueeze(1)
        log_prob, rank, entropy = (_rows(column)[0] for column in predict(model, symbols, targets, state))
        with torch.inference_mode():
            _, state = model.trace(symbols[:-1], state)
        before = int(read[-1])
        yield Prediction(log_prob[:-1], rank[:-1], entropy)


def _rows(column: Tensor) -> np.ndarray:
    values = column.t()
    return (values.float() if values.is_floating_point() else values).cpu().numpy()
