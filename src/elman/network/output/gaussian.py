"""Real values under normal distributions; N positions, K contexts, D their width, P values."""

import math
from typing import Literal, final

import torch
from jaxtyping import Float
from torch import Generator, Tensor, nn
from torch.nn.functional import linear

from elman import config
from elman.config.record import PositiveFloat
from elman.network.output.choice import Draws, PerContext, Row, Surroundings, Targets, Vectors
from elman.network.output.density import Density, log_normal, normal_like, variance


class Gaussian(config.Choice, frozen=True, tag="gaussian"):
    """Independent real values under normal distributions; `floor` is the least learned standard deviation."""

    variance: Literal["learned", "unit"] = "learned"
    floor: PositiveFloat = 1e-3


@final
class GaussianChoice(Density, of=Gaussian):
    """log p(v) = sum_p -(v_p - z_p)^2 / (2 s_p^2) - log s_p - 1/2 log 2 pi, z = W context + b.

    The variance s^2 is 1, so that the NLL is half the squared error plus a constant, or learned:
    s^2 = floor^2 + exp(2 a), a = W' context + b' (Nix & Weigend 1994, with a floor).
    """

    def __init__(self, record: Gaussian, surroundings: Surroundings) -> None:
        super().__init__()
        self.floor = record.floor
        self.readout = nn.Linear(surroundings.size, surroundings.num_outputs)
        nn.init.zeros_(self.readout.bias)
        self.spread: nn.Linear | None = None
        if record.variance == "learned":
            self.spread = nn.Linear(surroundings.size, surroundings.num_outputs)
            nn.init.zeros_(self.spread.bias)

    def mean(self, context: Float[Tensor, "*N D"]) -> Float[Tensor, "*N P"]:
        return linear(context, self.readout.weight, self.readout.bias)

    def log_prob(self, context: Vectors, target: Targets) -> PerContext:
        if self.spread is None:
            distance = (target.unsqueeze(1) - self.mean(context)).square().sum(-1)
            return -0.5 * (distance + target.shape[-1] * math.log(2 * math.pi))
        return log_normal(target.unsqueeze(1), self.mean(context), variance(self.spread(context), self.floor)).sum(-1)

    def below(self, context: Float[Tensor, "*N D"], target: Float[Tensor, "*N P"]) -> Float[Tensor, "*N P"]:
        return torch.special.ndtr((target - self.mean(context)) / self._variance(context).sqrt())

    def sample(self, context: Row, temperature: float, generator: Generator | None) -> Draws:
        """Values [N, P] given contexts [N, D]; the temperature multiplies the variance, at 0 the mean is returned."""
        mean = self.mean(context)
        return mean + (temperature * self._variance(context)).sqrt() * normal_like(mean, generator)

    def _variance(self, context: Float[Tensor, "*N D"]) -> Tensor:
        return context.new_ones(()) if self.spread is None else variance(self.spread(context), self.floor)
