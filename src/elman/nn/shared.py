"""Modules that have the arrays of a network's part under plain names, and call it."""

from typing import Any

from torch import nn


class Shared(nn.Module):
    """A module with the parameters, buffers and parts of `arrays`, a part of `whole` that is called with them.

    Neither is a part of this module, so that a name such as `weight` has nothing before it. What is done to the arrays
    of this module (a move, another type, `functional_call`) is done to those that `whole` reads: they are the same.
    """

    def __init__(self, whole: nn.Module, arrays: nn.Module) -> None:
        super().__init__()
        self._whole = (whole,)
        self._parameters, self._buffers = arrays._parameters, arrays._buffers
        self._non_persistent_buffers_set = arrays._non_persistent_buffers_set
        for name, part in arrays.named_children():
            self.add_module(name, part)

    def train(self, mode: bool = True) -> Any:
        """Set the mode of the module and of what it calls."""
        self._whole[0].train(mode)
        return super().train(mode)
