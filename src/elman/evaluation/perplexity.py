"""Perplexity of a stream, every token counted exactly once (thesis 2.50)."""

import math
from collections.abc import Callable, Iterator

import msgspec
import numpy as np
import torch
from torch import Tensor

from elman.cores.core import Trace
from elman.data.windows import Batch, EvaluationWindows, Reading
from elman.model import LanguageModel
from elman.state import restart
from elman.units import perplexity


class Score(msgspec.Struct, frozen=True):
    """The sum of negative log-likelihoods (nats) over `count` tokens."""

    nll_sum: float
    count: int

    @property
    def nll(self) -> float:
        """Nats a token."""
        return self.nll_sum / self.count

    @property
    def perplexity(self) -> float:
        """Exp of nats a token."""
        return perplexity(self.nll)

    @property
    def bits(self) -> float:
        """Bits a token."""
        return self.nll / math.log(2)


@torch.inference_mode()
def traces(model: LanguageModel, windows: Reading) -> Iterator[tuple[Batch, Tensor, Trace]]:
    """Windows on the model's device, the positions of their targets, and what the core makes of them, in order."""
    training = model.training
    model.eval()
    try:
        beginning = state = model.begin(windows.streams)
        for batch, positions in windows:
            batch = batch.to(model.device)
            assert batch.fresh is not None
            state = restart(state, batch.fresh, beginning)
            trace, state = model.trace(batch.inputs, state)
            yield batch, positions, trace
    finally:
        model.train(training)


@torch.inference_mode()
def stream(model: LanguageModel, windows: Reading) -> Iterator[tuple[Tensor, Tensor]]:
    """Log-probabilities (nats, [n]) window by window, and the positions [n] in the stream they belong to."""
    for batch, positions, trace in traces(model, windows):
        yield model.output.log_prob(trace, batch.targets)[batch.mask], positions[positions >= 0]


def evaluate(model: LanguageModel, windows: Reading, advance: Callable[[int, int], None] | None = None) -> Score:
    """The score of a stream; summed in float64. `advance` is told (windows done, windows in all)."""
    total, count = 0.0, 0
    for done, (log_prob, _) in enumerate(stream(model, windows), start=1):
        total -= log_prob.double().sum().item()
        count += len(log_prob)
        if advance is not None:
            advance(done, windows.num_windows)
    return Score(total, count)


def token_log_probs(model: LanguageModel, windows: EvaluationWindows) -> np.ndarray:
    """The log-probability (nats) of every token of the stream, float32 [n]; NaN for a token that is skipped."""
    result = np.full(len(windows.tokens), np.nan, dtype=np.float32)
    for log_prob, positions in stream(model, windows):
        result[positions.numpy()] = log_prob.float().cpu().numpy()
    return result
