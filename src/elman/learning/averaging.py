"""Averages of the weights along training: ASGD (Polyak & Juditsky 1992), as NT-ASGD uses it, and exponential."""

import contextlib
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor, nn


class Average:
    """A running average of parameters; it starts as a copy and is updated after each step.

    Args:
        parameters: what is averaged.
        decay: None for the equal average of all steps since the start, else the exponential decay.

    """

    def __init__(self, parameters: Sequence[nn.Parameter], decay: float | None = None) -> None:
        self.parameters, self.decay, self.count = list(parameters), decay, 0
        self.values = [parameter.detach().clone() for parameter in self.parameters]

    @torch.no_grad()
    def update(self) -> None:
        """Take the parameters as they are now into the average."""
        self.count += 1
        weight = 1 / self.count if self.decay is None else 1 - self.decay
        torch._foreach_lerp_(self.values, [parameter.data for parameter in self.parameters], weight)

    @contextlib.contextmanager
    def applied(self) -> Iterator[None]:
        """Within the block the parameters hold the average; afterwards their own values again."""
        self._exchange()
        try:
            yield
        finally:
            self._exchange()

    def _exchange(self) -> None:
        for index, parameter in enumerate(self.parameters):
            value: Tensor = self.values[index]
            self.values[index], parameter.data = parameter.data, value


def non_monotone(history: Sequence[float], latest: float, interval: int) -> bool:
    """Whether `latest` is worse than the best of those more than `interval` checks old (Merity et al. 2018, alg. 1).

    Args:
        history: the validation losses before the latest, oldest first.
        latest: the latest one.
        interval: n.

    Example:
        >>> non_monotone([5.0, 4.0, 3.9, 3.8], 4.1, interval=2)
        True
        >>> non_monotone([5.0, 4.0, 3.9, 3.8], 3.95, interval=2)
        False

    """
    return len(history) > interval and latest > min(history[:-interval])
