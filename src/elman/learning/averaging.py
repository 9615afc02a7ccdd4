"""Averages of the weights after each step."""

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeAlias

import torch
from torch import Tensor, nn

from elman import config

Share: TypeAlias = Callable[[int], float]
"""From the steps in an average, the newest included, to the share that the newest has."""


def equal(count: int) -> float:
    """All steps count alike: the average of ASGD (Polyak & Juditsky 1992), as NT-ASGD uses it."""
    return 1 / count


def exponential(decay: float) -> Share:
    """Steps count less by the factor `decay` for each step back (the correction of Kingma & Ba 2015, section 3).

    >>> [round(exponential(0.5)(count), 3) for count in (1, 2, 3)]
    [1.0, 0.667, 0.571]
    """
    return lambda count: (1 - decay) / (1 - decay**count)


def polynomial(power: float) -> Share:
    """Step t counts about as t to the `power` (Shamir & Zhang 2013), so later steps more at every time.

    >>> [round(polynomial(1)(count), 3) for count in (1, 2, 3)]
    [1.0, 0.667, 0.5]
    """
    return lambda count: (1 + power) / (count + power)


def share_of(averaging: config.NonMonotone | config.Immediate | config.Exponential | config.Polynomial | None) -> Share:
    """How the steps count in the average that a recipe asks for."""
    match averaging:
        case config.Exponential(decay=decay):
            return exponential(decay)
        case config.Polynomial(power=power):
            return polynomial(power)
        case _:
            return equal


class Average:
    """A running average of parameters after each step; the values before the first step do not count.

    After many steps the share of one is so small that its part is rounded away: in float32 an equal average of weights
    that move slowly stands still after some 100,000 steps. `compensated` keeps what rounding left out and adds it at
    the next step (Kahan 1965), for as much memory again.
    """

    def __init__(self, parameters: Sequence[nn.Parameter], share: Share = equal, *, compensated: bool = False) -> None:
        self.parameters, self.share, self.count = list(parameters), share, 0
        self.values = [parameter.detach().clone() for parameter in self.parameters]
        self.left = [torch.zeros_like(value) for value in self.values] if compensated else []

    @torch.no_grad()
    def update(self) -> None:
        """Add the present values of the parameters to the average."""
        self.count += 1
        share, weights = self.share(self.count), [parameter.data for parameter in self.parameters]
        if not self.left or self.count == 1:
            torch._foreach_lerp_(self.values, weights, share)
            return
        for value, left, weight in zip(self.values, self.left, weights, strict=True):
            step = left.add_(weight - value - left, alpha=share)
            after = value + step
            left.sub_(after - value)
            value.copy_(after)

    def tensors(self) -> dict[str, Tensor]:
        """The averaged values and what rounding left out of them, for a checkpoint."""
        left = {f"left/{index}": value for index, value in enumerate(self.left)}
        return {str(index): value for index, value in enumerate(self.values)} | left

    def restore(self, tensors: Mapping[str, Tensor], count: int) -> None:
        """Take back what `tensors` returned, an average of `count` steps."""
        self.count = count
        for name, value in self.tensors().items():
            value.copy_(tensors[name])

    @contextlib.contextmanager
    def applied(self) -> Iterator[None]:
        """Within the block the parameters hold their average; afterwards they have their own values again."""
        self._exchange()
        try:
            yield
        finally:
            self._exchange()

    def _exchange(self) -> None:
        own = [parameter.data for parameter in self.parameters]
        for parameter, value in zip(self.parameters, self.values, strict=True):
            parameter.data = value
        self.values = own
