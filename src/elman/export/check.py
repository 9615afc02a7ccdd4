"""How far an exported step is from its model: log-probabilities token by token, and perplexity."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from elman.export.step import Step
from elman.network.model import LanguageModel
from elman.objective import perplexity

Arrays = list[npt.NDArray[Any]]


class ExportedStep(Protocol):
    """A step that another program runs, on arrays."""

    def begin(self, width: int) -> Arrays:
        """The state of so many sequences that have not begun."""

    def __call__(self, symbols: npt.NDArray[np.integer], *state: npt.NDArray[Any]) -> Arrays:
        """Log-probabilities [B, V] after symbols [B], and the state after them."""


class Beginning:
    """The state with which a step begins, its arrays being those of `Step`."""

    def __init__(self, step: Step) -> None:
        self.arrays = [tensor.numpy() for tensor in step.beginning]

    def begin(self, width: int) -> Arrays:
        return [np.repeat(array, width, 0) for array in self.arrays]


class TorchStep(Beginning):
    """Runs a step, or what another program made of it, on torch's tensors."""

    def __init__(self, step: Callable[..., tuple[Tensor, ...]], beginning: Step) -> None:
        super().__init__(beginning)
        self.step = step

    @torch.inference_mode()
    def __call__(self, symbols: npt.NDArray[np.integer], *state: npt.NDArray[Any]) -> Arrays:
        return [one.numpy() for one in self.step(torch.from_numpy(symbols), *map(torch.from_numpy, state))]


LIKELY = 1e-6
"""Log-probabilities are compared where the model gives this much or more: log g of a ReLU near zero is ill-conditioned,
and no result depends on it."""

TOLERANCE = 1e-3
"""The largest difference in nats at which a graph in float32 is the model; rounding alone gives about 1e-6."""


class Comparison(NamedTuple):
    """A step beside its model: the largest difference of log-probabilities (nats), and so many tokens compared."""

    difference: float
    tokens: int


@torch.inference_mode()
def compare(model: LanguageModel, step: ExportedStep, tokens: npt.NDArray[np.integer], first: int) -> Comparison:
    """Read the tokens [n] one by one, after `first`, with the model and with the exported step."""
    state, ours, largest = model.begin(1), step.begin(1), 0.0
    for symbol in (first, *tokens[:-1].tolist()):
        expected, state = model.step(torch.tensor([symbol], device=model.device), state)
        found, *ours = step(np.array([symbol]), *ours)
        largest = max(largest, difference(found, expected.cpu().numpy()))
    return Comparison(largest, len(tokens))


def difference(found: npt.NDArray[np.floating], right: npt.NDArray[np.floating]) -> float:
    """The largest difference between log-probabilities of one shape, where the right ones are `LIKELY`."""
    likely = right >= np.log(LIKELY)
    largest = float(np.abs(found[likely] - right[likely]).max(initial=0.0))
    return math.inf if math.isnan(largest) else largest


def perplexity_of(step: ExportedStep, columns: npt.NDArray[np.integer], first: int) -> float:
    """Perplexity of tokens [T, B], read side by side, each column after `first`."""
    width = columns.shape[1]
    state, symbols, total = step.begin(width), np.full(width, first, np.int64), 0.0
    for row in columns.astype(np.int64):
        log_probs, *state = step(symbols, *state)
        total -= float(log_probs[np.arange(width), row].sum(dtype=np.float64))
        symbols = row
    return perplexity(total / columns.size)
