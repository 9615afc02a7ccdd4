"""Real values given a context: a normal distribution, a mixture of them, and the change of units around either.

N positions, K contexts, D their width, P values, M components of a mixture density network.
"""

import math
from abc import abstractmethod
from collections.abc import Collection
from typing import Protocol, final

import torch
from jaxtyping import Float
from torch import Generator, Tensor, nn
from torch.nn.functional import linear

from elman import config
from elman.network.output.choice import Drawn, Draws, PerContext, Row, Surroundings, Targets, Vectors

HALF_LOG_TWO_PI = 0.5 * math.log(2 * math.pi)


class Density(Drawn):
    """p(values | context), a density over P real values."""

    predicts = "values"

    @abstractmethod
    def mean(self, context: Float[Tensor, "*N D"]) -> Float[Tensor, "*N P"]:
        """The expected values [..., P] given contexts [..., D]."""


@final
class GaussianChoice(Density):
    """log p(v) = sum_p -(v_p - z_p)^2 / (2 s_p^2) - log s_p - 1/2 log 2 pi, z = W context + b.

    The variance s^2 is 1, so that the NLL is half the squared error plus a constant, or learned:
    s^2 = floor^2 + exp(2 a), a = W' context + b' (Nix & Weigend 1994, with a floor).
    """

    def __init__(self, record: config.Gaussian, surroundings: Surroundings) -> None:
        super().__init__()
        self.floor = record.floor
        self.readout = nn.Linear(surroundings.size, surroundings.num_outputs)
        nn.init.zeros_(self.readout.bias)
        self.spread: nn.Linear | None = None
        if record.variance == "learned":
            self.spread = nn.Linear(surroundings.size, surroundings.num_outputs)
            nn.init.zeros_(self.spread.bias)

    def mean(self, context: Float[Tensor, "*N D"]) -> Float[Tensor, "*N P"]:
        """The mean [..., P] given contexts [..., D]."""
        return linear(context, self.readout.weight, self.readout.bias)

    def log_prob(self, context: Vectors, target: Targets) -> PerContext:
        """Log-density [N, K] of values [N, P] under contexts [N, K, D]."""
        if self.spread is None:
            distance = (target.unsqueeze(1) - self.mean(context)).square().sum(-1)
            return -0.5 * (distance + target.shape[-1] * math.log(2 * math.pi))
        return log_normal(target.unsqueeze(1), self.mean(context), variance(self.spread(context), self.floor)).sum(-1)

    def sample(self, context: Row, temperature: float, generator: Generator | None) -> Draws:
        """Values [N, P] given contexts [N, D]; the temperature multiplies the variance, at 0 the mean is returned."""
        mean = self.mean(context)
        spread = torch.ones_like(mean) if self.spread is None else variance(self.spread(context), self.floor)
        return mean + (temperature * spread).sqrt() * normal_like(mean, generator)


@final
class GaussianMixtureChoice(Density):
    """p(v) = sum_m w_m prod_p N(v_p; mu_mp, s_mp^2): a mixture density network.

    Bishop (1994), Mixture density networks, eqs 22 to 27; of recurrent networks Graves (2013), section 4.1. The weights
    w are a softmax of M outputs, the means mu are linear outputs and s^2 = floor^2 + exp(2 a) with a floor, which
    Bishop's eq. 26 lacks, against a component that shrinks onto one value.
    """

    def __init__(self, record: config.GaussianMixture, surroundings: Surroundings) -> None:
        super().__init__()
        self.shape, self.floor = (record.components, surroundings.num_outputs), record.floor
        numbers = record.components * surroundings.num_outputs
        self.weight, self.centre, self.spread = (
            nn.Linear(surroundings.size, width) for width in (record.components, numbers, numbers)
        )
        for part in (self.weight, self.centre, self.spread):
            nn.init.zeros_(part.bias)
        # With equal means the gradients of all components would be equal.
        start = torch.linspace(-1, 1, record.components) if record.components > 1 else torch.zeros(1)
        with torch.no_grad():
            self.centre.bias.copy_(start.repeat_interleave(surroundings.num_outputs))

    def components(self, context: Float[Tensor, "*N D"]) -> tuple[Tensor, Tensor, Tensor]:
        """Log-weights [..., M], means [..., M, P] and variances [..., M, P] given contexts [..., D]."""
        means, spreads = (part(context).unflatten(-1, self.shape) for part in (self.centre, self.spread))
        return self.weight(context).log_softmax(-1), means, variance(spreads, self.floor)

    def mean(self, context: Float[Tensor, "*N D"]) -> Float[Tensor, "*N P"]:
        """The mean over all components, [..., P], given contexts [..., D]."""
        log_weight, means, _ = self.components(context)
        return (log_weight.exp().unsqueeze(-1) * means).sum(-2)

    def log_prob(self, context: Vectors, target: Targets) -> PerContext:
        """Log-density [N, K] of values [N, P] under contexts [N, K, D]."""
        log_weight, means, variances = self.components(context)
        each = log_normal(target[:, None, None], means, variances).sum(-1)
        return torch.logsumexp(log_weight + each, dim=-1)

    def sample(self, context: Row, temperature: float, generator: Generator | None) -> Draws:
        """Values [N, P] given contexts [N, D]: first a component, then its values.

        The temperature divides the log-weights and multiplies the variances; at 0 the mean of the heaviest component
        is returned.
        """
        log_weight, means, variances = self.components(context)
        if temperature == 0:
            index = log_weight.argmax(-1, keepdim=True)
        else:
            index = torch.multinomial((log_weight / temperature).softmax(-1), 1, generator=generator)
        mean, spread = (part.take_along_dim(index.unsqueeze(-1), dim=1).squeeze(1) for part in (means, variances))
        return mean + (temperature * spread).sqrt() * normal_like(mean, generator)


class Units(Protocol):
    """What has the mean and the deviation [P] of values, in double precision."""

    mean: Tensor
    deviation: Tensor


@final
class Rescaled(Density):
    """The density of v = mean + deviation * u where u has the density of another choice.

    log p(v) = log p_u((v - mean) / deviation) - sum_p log deviation_p, so that log-densities are in the units of v.
    Mean and deviation [P], doubles, are those of the encoder, which follows the model to its device and saves them.
    """

    def __init__(self, choice: Density, units: "Units") -> None:
        super().__init__()
        self.choice = choice
        self._units = (units,)  # in a tuple, so that it is not a part of this module too

    @property
    def shift(self) -> Tensor:
        """The mean."""
        return self._units[0].mean

    @property
    def scale(self) -> Tensor:
        """The deviation."""
        return self._units[0].deviation

    def mean(self, context: Float[Tensor, "*N D"]) -> Float[Tensor, "*N P"]:
        """The mean [..., P] given contexts [..., D], in double precision."""
        return self.shift + self.scale * self.choice.mean(context)

    def log_prob(self, context: Vectors, target: Targets) -> PerContext:
        """Log-density [N, K] of values [N, P] under contexts [N, K, D]."""
        standardised = ((target - self.shift) / self.scale).to(context.dtype)
        return self.choice.log_prob(context, standardised) - self.scale.log().sum().to(context.dtype)

    def sample(self, context: Row, temperature: float, generator: Generator | None) -> Draws:
        """Values [N, P] given contexts [N, D], in double precision."""
        return self.shift + self.scale * self.choice.sample(context, temperature, generator)

    def initialise(self, rules: config.Initialisation, tied: Collection[nn.Parameter] = ()) -> None:
        """Fill the choice."""
        self.choice.initialise(rules, tied)


def variance(log_deviation: Tensor, floor: float) -> Tensor:
    """floor^2 + exp(2 a)."""
    return floor**2 + (2 * log_deviation).exp()


def log_normal(value: Tensor, mean: Tensor, variance: Tensor) -> Tensor:
    """Log-density of each value under its own normal distribution."""
    return -0.5 * ((value - mean).square() / variance + variance.log()) - HALF_LOG_TWO_PI


def normal_like(like: Tensor, generator: Generator | None) -> Tensor:
    """Standard normal numbers in the shape of a tensor."""
    return torch.randn(like.shape, dtype=like.dtype, device=like.device, generator=generator)
