"""One step of a language model with its state as plain tensors, which other programs can be given as a graph.

How far such a graph is from the model is measured token by token, and in perplexity.

A step may also give what the panels of a page show, or keep its state in two tensors as recognisers do; a step of a
model of music leaves the drawing of frames to what is outside of the graph.
"""

import contextlib
import copy
import logging
import math
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Protocol, final

import numpy as np
import numpy.typing as npt
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from elman.network.cores.layer import take_plain_steps
from elman.network.encoders.characters import CharactersEncoder
from elman.network.encoders.encoder import Inputs
from elman.network.encoders.lookup import Lookup, LookupEncoder
from elman.network.model import LanguageModel
from elman.network.output.choice import Choice
from elman.network.output.contexts import MixtureContexts
from elman.network.state import leaves, rebuild
from elman.objective import perplexity


class PlainStep(nn.Module):
    """What a step of a model on the CPU begins from, the state being the tensors of its nested tuples in their order.

    Every tensor of the state is [B, ...]. Cells take their plain steps, so that the graph consists of common
    operations. A model that reads spelling becomes one with a vector for each word of its vocabulary; what it would
    read beyond them is lost.
    """

    def __init__(self, model: LanguageModel) -> None:
        super().__init__()
        self.model = plain(model)
        self.template = self.model.begin(1)

    @property
    def beginning(self) -> tuple[Tensor, ...]:
        return tuple(leaves(self.template))


@final
class Step(PlainStep):
    """`LanguageModel.step` of B sequences and V symbols."""

    def forward(self, symbols: Int[Tensor, " B"], *state: Tensor) -> tuple[Float[Tensor, "B V"] | Tensor, ...]:
        """The log-probabilities of the next symbol, and the tensors of the state after `symbols`."""
        log_probs, after = self.model.step(symbols, rebuild(self.template, iter(state)))
        return log_probs, *leaves(after)


@contextlib.contextmanager
def tracing() -> Iterator[None]:
    """Products by torch's own operations, no gradients, and no remarks of packages on their own workings."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("ignore")
            with torch.backends.mkldnn.flags(enabled=False):
                yield
    finally:
        logging.disable(before)


def plain(model: LanguageModel) -> LanguageModel:
    """A copy on the CPU, in evaluation mode, without fast forms of cells and without spelling."""
    with torch.no_grad():
        copied = copy.deepcopy(model).cpu().eval()
        take_plain_steps(copied)
        if isinstance(copied.encoder, CharactersEncoder):
            copied.encoder = table(copied.encoder)
    return copied.requires_grad_(False)


def table(encoder: CharactersEncoder) -> LookupEncoder:
    """The vectors of the words of its vocabulary, which no longer need their spelling."""
    vectors = encoder(torch.arange(len(encoder.words)).unsqueeze(1)).squeeze(1)
    found = LookupEncoder(Lookup(size=encoder.size), Inputs(len(vectors))).to(vectors.dtype)
    found.weight.copy_(vectors)
    return found.eval()


@final
class LookStep(nn.Module):
    """A step that also gives what the panels show.

    Outputs: log-probabilities [B, V], the levels of the core side by side [B, H_0 + ... + H_L], of a mixture the
    weights [B, K] and log-probabilities [B, K, V] of its components, and the tensors of the state.
    """

    def __init__(self, step: Step) -> None:
        super().__init__()
        self.model, self.template = step.model, step.template
        self.mixes = isinstance(self.model.output.contexts, MixtureContexts)

    @property
    def names(self) -> list[str]:
        return ["log_probs", "levels", *(["prior", "each"] if self.mixes else [])]

    def forward(self, symbols: Int[Tensor, " B"], *state: Tensor) -> tuple[Tensor, ...]:
        """Read `symbols` [B] after the state before them, and return the tensors above."""
        trace, after = self.model.trace(symbols.unsqueeze(0), rebuild(self.template, iter(state)))
        levels = torch.cat([level[0] for level in trace.raw], dim=-1)
        if not self.mixes:
            return self.model.output.log_probs(trace)[0], levels, *leaves(after)
        choice = self.model.output.choice
        assert isinstance(choice, Choice)
        vectors, log_prior = self.model.output.contexts(trace)
        each = choice.log_probs(vectors[0])
        log_probs = torch.logsumexp(log_prior[0].unsqueeze(-1) + each, dim=1)
        return log_probs, levels, log_prior[0].exp(), each, *leaves(after)


@final
class FrameStep(PlainStep):
    """A step of a model of music: frames of notes in, and what the next ones are drawn from out.

    Outputs: the contexts [B, K, D] of the choice of notes, the logarithms [B, K] of their weights, and the tensors of
    the state.
    """

    def forward(self, frames: Float[Tensor, "B P"], *state: Tensor) -> tuple[Tensor, ...]:
        """Read `frames` [B, P] after the state before them, and return the tensors above."""
        trace, after = self.model.trace(frames.unsqueeze(0), rebuild(self.template, iter(state)))
        vectors, log_prior = self.model.output.contexts(trace)
        return vectors[0], log_prior[0], *leaves(after)


@final
class Packed(nn.Module):
    """The step of a model in the form that sherpa-onnx reads for shallow fusion.

    Inputs are symbols [N, 1] and two tensors [1, N, S] that begin as zeros; outputs are log-probabilities [N, 1, V] and
    both tensors after the symbols. The first holds the S numbers of the state less those at the beginning, the second
    stays zero.
    """

    def __init__(self, step: Step) -> None:
        super().__init__()
        self.step = step
        self.shapes = [tensor.shape[1:] for tensor in step.beginning]
        self.size = sum(math.prod(shape) for shape in self.shapes)
        self.register_buffer("begun", torch.cat([tensor.flatten(1).float() for tensor in step.beginning], 1))

    def forward(self, x: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Read symbols [N, 1] after both tensors, and return the three above."""
        assert isinstance(self.begun, Tensor)
        parts = (h.squeeze(0) + self.begun).split([math.prod(shape) for shape in self.shapes], 1)
        state = [
            part.unflatten(1, shape).to(before.dtype) if len(shape) != 1 else part.to(before.dtype)
            for part, shape, before in zip(parts, self.shapes, self.step.beginning, strict=True)
        ]
        log_probs, *after = self.step(x.squeeze(1), *state)
        flat = torch.cat([tensor.flatten(1).to(h.dtype) for tensor in after], 1)
        return log_probs.unsqueeze(1), (flat - self.begun).unsqueeze(0), c.clone()


Arrays = list[npt.NDArray[Any]]


class ExportedStep(Protocol):
    """A step that another program runs, on arrays."""

    def begin(self, width: int) -> Arrays:
        """The state of `width` sequences that have not begun."""

    def __call__(self, symbols: npt.NDArray[np.integer], *state: npt.NDArray[Any]) -> Arrays:
        """Log-probabilities [B, V] after symbols [B], and the state after them."""


class Beginning:
    """The state with which a step begins; its arrays are as in `Step`."""

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
    """A step compared with its model: the largest difference of log-probabilities (nats), over how many tokens."""

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
