"""Frames of notes: a linear map."""

from typing import final

import torch
from jaxtyping import Float, Shaped
from torch import Tensor, nn

from elman import config
from elman.config.record import Positive, PositiveFloat, Rate
from elman.network.dropout import Dropout
from elman.network.encoders.encoder import Inputs, TokenEncoder
from elman.network.fast.matmul import linear
from elman.network.initialisation import fill


class Frames(config.Encoder, frozen=True, tag="frames"):
    """A linear map of frames of notes."""

    size: Positive
    dropout: Rate = 0.0
    scale: PositiveFloat = 1.0
    bias: bool = False


@final
class FramesEncoder(TokenEncoder, of=Frames):
    """A linear map of frames, one step of a piano roll each: the vector of a frame is the sum of its notes' vectors."""

    reads = "notes"

    def __init__(self, record: Frames, inputs: Inputs) -> None:
        super().__init__()
        self.size, self.scale = record.size, record.scale
        self.dropout = Dropout(record.dropout, locked=inputs.locked)
        self.weight = nn.Parameter(torch.empty(record.size, inputs.number))
        self.bias = nn.Parameter(torch.zeros(record.size)) if record.bias else None

    def forward(self, x: Shaped[Tensor, "T B *P"]) -> Float[Tensor, "T B E"]:
        vectors = linear(x.to(self.weight.dtype), self.weight, self.bias)
        return self.dropout(vectors if self.scale == 1.0 else vectors * self.scale)

    def initialise(self, rules: config.Initialisation) -> None:
        fill(self.weight, rules.embedding, self.size)
