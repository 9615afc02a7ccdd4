"""Encoders: from symbols, frames of notes or real values to vectors."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pkgutil import resolve_name
from typing import ClassVar, NamedTuple, final

import torch
from jaxtyping import Float, Shaped
from torch import Tensor, nn

from elman import config
from elman.network.dropout import Dropout
from elman.network.initialisation import fill
from elman.network.matmul import linear


class TokenEncoder(nn.Module, ABC):
    """Maps the input of each step ("symbols", "notes" or "values") to a vector of width `size` = E."""

    reads: ClassVar[str] = "symbols"
    size: int

    @abstractmethod
    def forward(self, x: Shaped[Tensor, "T B *P"]) -> Float[Tensor, "T B E"]:
        """Vectors [T, B, E] of symbols [T, B], or of frames or values [T, B, P]."""

    @abstractmethod
    def initialise(self, rules: config.Initialisation) -> None:
        """Fill the parameters, in a fixed order, from torch's global random state."""


class Inputs(NamedTuple):
    """The inputs of an encoder: V symbols or P pitches, the vocabulary (for spelling), dropout masks held over time."""

    number: int
    words: Sequence[str] | None = None
    locked: bool = True

    def spelled(self) -> Sequence[str]:
        """The vocabulary; without it words are spelled as their numbers."""
        return self.words or [str(symbol) for symbol in range(self.number)]


def build_encoder(
    record: config.Encoder, number: int, words: Sequence[str] | None = None, *, locked: bool
) -> TokenEncoder:
    """The encoder of a recipe; arguments as in `Inputs`; raises UserError where parts do not fit together."""
    return resolve_name(record.builder)(record, Inputs(number, words, locked))


@final
class FramesEncoder(TokenEncoder):
    """A linear map of frames, one step of a piano roll each: the vector of a frame is the sum of those of its notes."""

    reads = "notes"

    def __init__(self, record: config.Frames, inputs: Inputs) -> None:
        super().__init__()
        self.size, self.scale = record.size, record.scale
        self.dropout = Dropout(record.dropout, locked=inputs.locked)
        self.weight = nn.Parameter(torch.empty(record.size, inputs.number))
        self.bias = nn.Parameter(torch.zeros(record.size)) if record.bias else None

    def forward(self, x: Shaped[Tensor, "T B *P"]) -> Float[Tensor, "T B E"]:
        """Vectors [T, B, E] of frames of zeros and ones [T, B, P]."""
        vectors = linear(x.to(self.weight.dtype), self.weight, self.bias)
        return self.dropout(vectors if self.scale == 1.0 else vectors * self.scale)

    def initialise(self, rules: config.Initialisation) -> None:
        """Fill the matrix; the bias stays at zero."""
        fill(self.weight, rules.embedding, self.size)
