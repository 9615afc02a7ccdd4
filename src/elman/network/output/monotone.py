"""A learned increasing function of the logits, before the output activation."""

import math
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import linear, softplus

from elman import config
from elman.config.record import Positive, PositiveFloat
from elman.network.output.activation import log_g
from elman.network.output.choice import ScoredChoice, Surroundings, Vectors


class Monotone(config.Choice, frozen=True, tag="monotone"):
    """A learned increasing function of the logits, of `pieces` linear pieces on [-range, range]."""

    pieces: Positive = 1000
    range: PositiveFloat = 20.0
    tied: bool = False
    bias: bool = True


@final
class MonotoneChoice(ScoredChoice, of=Monotone):
    """log p(y) = log g(f(z_y)) - logsumexp_v log g(f(z_v)), z = W context + b (Ganea et al. 2019).

    f is piecewise linear and increasing (PLIF): equal pieces on [-range, range] with a slope of their own each,
    softplus of a parameter; the first and the last piece extend to infinity. At first f(z) = z, so training starts from
    the plain activation.
    """

    def __init__(self, record: Monotone, surroundings: Surroundings) -> None:
        super().__init__()
        self.weight = surroundings.matrix(record.tied)
        self.activation, self.range = surroundings.activation, record.range
        self.bias = nn.Parameter(torch.zeros(len(self.weight))) if record.bias else None
        self.raw_slope = nn.Parameter(torch.full((record.pieces,), math.log(math.e - 1)))

    def bend(self, z: Tensor) -> Tensor:
        slope = softplus(self.raw_slope)
        width = 2 * self.range / len(slope)
        height = slope.cumsum(0) * width - slope * width  # f - f(-range) at the beginning of each piece
        with torch.no_grad():
            # Where z is NaN, so is the result, whatever the piece.
            piece = ((z + self.range) / width).floor().clamp_(0, len(slope) - 1).nan_to_num_()
        at = piece.long()
        beyond = z - (piece * width - self.range)
        return (height - self.range)[at] + slope[at] * beyond

    def scores(self, context: Vectors) -> Float[Tensor, "N K V"]:
        return log_g(self.bend(linear(context, self.weight, self.bias)), self.activation)
