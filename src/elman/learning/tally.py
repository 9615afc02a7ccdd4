"""Sums over training steps, kept where the model is, so that a step never waits for its device."""

from typing import NamedTuple

import torch
from torch import Tensor

from elman.objective.loss import Loss

STEPS_BETWEEN_READINGS = {"cpu": 1, "cuda": 10}
"""By device. A CPU has nothing to wait for."""


class Sums(NamedTuple):
    """What some steps came to.

    Attributes:
        nll: the sum of NLLs (nats) over the positions.
        positions: how many were counted.
        penalty: the sum of the penalties.
        finite: whether every loss and gradient was.
        loss: the last step's objective.
        norm: the norm of its gradient.

    """

    nll: float
    positions: int
    penalty: float
    finite: bool
    loss: float
    norm: float


class Tally:
    """Adds steps up; reading is what waits for the device, so a GPU is asked only now and then.

    Args:
        device: where losses are.

    Attributes:
        patience: after how many steps to read.
        steps: how many are in the sums.

    """

    def __init__(self, device: torch.device) -> None:
        self.patience = STEPS_BETWEEN_READINGS[device.type]
        self._sums = torch.zeros(4, dtype=torch.float64, device=device)
        self._last = torch.zeros(2, dtype=torch.float64, device=device)
        self.steps = 0

    @property
    def due(self) -> bool:
        """Whether it is time to read."""
        return self.steps >= self.patience

    def add(self, loss: Loss, norm: Tensor) -> None:
        """Take a step in: its loss, and the norm of its gradient."""
        broken = ~(loss.objective.isfinite() & norm.isfinite())
        self._sums += torch.stack([loss.nll_sum.double(), loss.num_counted.double(), loss.penalty.double(), broken])
        self._last = torch.stack([loss.objective.double(), norm.double()])
        self.steps += 1

    def take(self) -> Sums:
        """The sums since the last time, which begin anew."""
        nll, positions, penalty, broken, loss, norm = torch.cat([self._sums, self._last]).tolist()
        self._sums.zero_()
        self.steps = 0
        return Sums(nll, int(positions), penalty, not broken, loss, norm)
