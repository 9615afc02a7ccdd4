"""Averages of the weights over the steps of any optimiser: from the first step, or from when NT-ASGD begins.

In a loop of one's own:

    average = enn.TriggeredAverage(model.parameters(), interval=5)
    for each step:
        optimiser.step()
        average.step()
    with average.applied():
        loss = validated(model)
    average.update(loss)
"""

import contextlib
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager

import torch
from torch import Tensor, nn

from elman.learning.averaging import Average, equal, exponential
from elman.learning.progress import non_monotone


class WeightAverage:
    """A running average of parameters after each step; the values before the first step do not count.

    Args:
        parameters: such as `model.parameters()`
        decay: steps count less by this factor for each step back, without the bias of the beginning (Kingma & Ba 2015,
            section 3); None: all count alike (Polyak & Juditsky 1992)
    """

    def __init__(self, parameters: Iterable[nn.Parameter], decay: float | None = None) -> None:
        if decay is not None and not 0 <= decay < 1:
            raise ValueError(f"decay is {decay:g}; it must be 0 or more and below 1, or None")
        self._parameters = [*parameters]
        narrow = any(one.dtype.itemsize == 2 for one in self._parameters)  # in which small shares are rounded away
        share = equal if decay is None else exponential(decay)
        self._average = Average(self._parameters, share, compensated=narrow)

    @property
    def count(self) -> int:
        """Steps in the average."""
        return self._average.count

    def step(self) -> None:
        """Add the present values of the parameters; after each step of the optimiser, and after a projection."""
        self._average.update()

    def applied(self) -> AbstractContextManager[None]:
        """Within the block the parameters hold their average; afterwards they have their own values again."""
        return self._average.applied() if self.count else contextlib.nullcontext()

    def state_dict(self) -> dict[str, Tensor]:
        """The average, as tensors by name."""
        return {"count": torch.tensor(self.count), **self._average.tensors()}

    def load_state_dict(self, tensors: Mapping[str, Tensor]) -> None:
        """Continue from what `state_dict` returned."""
        self._average.restore(tensors, int(tensors["count"]))


class TriggeredAverage:
    """NT-ASGD: averaging that begins when the validation loss stops falling (Merity et al. 2018, algorithm 1).

    It begins once a loss is above the least of those more than `interval` validations old. Until then `step` does
    nothing, and `applied` leaves the weights as they are.

    Args:
        parameters: such as `model.parameters()`
        interval: n of the paper

    Attributes:
        losses: those that `update` was given, oldest first
        average: the average, or None while it has not begun
    """

    def __init__(self, parameters: Iterable[nn.Parameter], interval: int = 5) -> None:
        if interval < 1:
            raise ValueError(f"interval is {interval}; it must be 1 or more")
        self._parameters, self.interval = [*parameters], interval
        self.losses: list[float] = []
        self.average: WeightAverage | None = None

    def step(self) -> None:
        """Add the present values of the parameters, once averaging has begun."""
        if self.average is not None:
            self.average.step()

    def update(self, valid_loss: float) -> bool:
        """Record a validation loss, of the averaged weights where they are averaged; whether averaging begins now."""
        loss = float(valid_loss)
        begins = self.average is None and non_monotone(self.losses, loss, self.interval)
        self.losses.append(loss)
        if begins:
            self.average = WeightAverage(self._parameters)
        return begins

    def applied(self) -> AbstractContextManager[None]:
        """Within the block the parameters hold their average, where there is one."""
        return contextlib.nullcontext() if self.average is None else self.average.applied()

    def state_dict(self) -> dict[str, Tensor]:
        """The losses and the average, as tensors by name."""
        average = {} if self.average is None else self.average.state_dict()
        return {"losses": torch.tensor(self.losses, dtype=torch.float64), **average}

    def load_state_dict(self, tensors: Mapping[str, Tensor]) -> None:
        """Continue from what `state_dict` returned."""
        self.losses = tensors["losses"].tolist()
        self.average = WeightAverage(self._parameters) if "count" in tensors else None
        if self.average is not None:
            self.average.load_state_dict(tensors)
