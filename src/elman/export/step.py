"""One step of a language model with its state as plain tensors, which other programs can be given as a graph."""

import contextlib
import copy
import logging
import warnings
from collections.abc import Iterator
from typing import final

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from elman.network.cores.layer import take_plain_steps
from elman.network.encoders.characters import CharactersEncoder
from elman.network.encoders.encoder import Inputs
from elman.network.encoders.lookup import Lookup, LookupEncoder
from elman.network.model import LanguageModel
from elman.network.state import leaves, rebuild


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
        """The state of one sequence that has not begun."""
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
