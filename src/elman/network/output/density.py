"""Densities over P real values, and the change of units around one; N positions, K contexts, D their width."""

import math
from abc import abstractmethod
from collections.abc import Collection
from typing import Protocol, final, runtime_checkable

import torch
from jaxtyping import Float
from torch import Generator, Tensor, nn

from elman import config
from elman.network.output.choice import Drawn, Draws, PerContext, Row, Targets, Vectors

HALF_LOG_TWO_PI = 0.5 * math.log(2 * math.pi)


class Density(Drawn):
    """p(values | context), a density over P real values."""

    predicts = "values"

    @abstractmethod
    def mean(self, context: Float[Tensor, "*N D"]) -> Float[Tensor, "*N P"]:
        """The expected values [..., P] given contexts [..., D]."""

    def below(self, context: Float[Tensor, "*N D"], target: Float[Tensor, "*N P"]) -> Float[Tensor, "*N P"]:
        """The probability that each value is below its target [..., P] given contexts [..., D]; NaN: not computed."""
        return torch.full_like(target + self.mean(context), math.nan)


@runtime_checkable
class Units(Protocol):
    """What has the mean and the deviation [P] of values, in double precision."""

    @property
    def mean(self) -> Tensor: ...
    @property
    def deviation(self) -> Tensor: ...


@final
class Rescaled(Density):
    """The density of v = mean + deviation * u where u has the density of another choice.

    log p(v) = log p_u((v - mean) / deviation) - sum_p log deviation_p, so that log-densities are in the units of v.
    Mean and deviation [P], doubles, belong to the encoder, which follows the model to its device and saves them.
    `share` [P]: the density is moved so that its mean, in units of the deviation, is this share of what it was. Where
    an encoder reads more values, `size` is P: the first ones are predicted.
    """

    def __init__(self, choice: Density, units: "Units", share: Tensor | None = None, size: int | None = None) -> None:
        super().__init__()
        self.choice, self.share, self.size = choice, share, size
        self._units = (units,)  # in a tuple, so that it is not a part of this module too

    @property
    def shift(self) -> Tensor:
        return self._units[0].mean[: self.size]

    @property
    def scale(self) -> Tensor:
        return self._units[0].deviation[: self.size]

    def mean(self, context: Float[Tensor, "*N D"]) -> Float[Tensor, "*N P"]:
        return self.shift + self.scale * (self.choice.mean(context) + self._moved(context))

    def log_prob(self, context: Vectors, target: Targets) -> PerContext:
        standardised = ((target - self.shift) / self.scale).to(context.dtype)
        if self.share is None:
            each = self.choice.log_prob(context, standardised)
        else:
            parts = context.split(1, dim=1)
            each = torch.cat([self.choice.log_prob(one, standardised - self._moved(one[:, 0])) for one in parts], dim=1)
        return each - self.scale.log().sum().to(context.dtype)

    def below(self, context: Float[Tensor, "*N D"], target: Float[Tensor, "*N P"]) -> Float[Tensor, "*N P"]:
        standardised = ((target - self.shift) / self.scale).to(context.dtype)
        return self.choice.below(context, standardised - self._moved(context))

    def sample(self, context: Row, temperature: float, generator: Generator | None) -> Draws:
        return self.shift + self.scale * (self.choice.sample(context, temperature, generator) + self._moved(context))

    def _moved(self, context: Tensor) -> Tensor | float:
        """How far the mean is moved, [..., P] in units of the deviation."""
        return 0.0 if self.share is None else (self.share.to(context) - 1) * self.choice.mean(context)

    def initialise(self, rules: config.Initialisation, tied: Collection[nn.Parameter] = ()) -> None:
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
