"""Modules that have the arrays of a network's part under plain names, and call it."""

import copy
from typing import Any

from torch import nn
from torch.nn.utils.parametrize import is_parametrized


class Shared(nn.Module):
    """A module with the parameters, buffers and parts of `arrays`, which is `whole` or a part of it.

    Neither is a part of this module, so that a name such as `weight` has nothing before it. What is done to the arrays
    of this module (a move, another type, `functional_call`) is done to those that `whole` reads: they are the same.
    """

    def __init__(self, whole: nn.Module, arrays: nn.Module) -> None:
        super().__init__()
        self._whole, self._arrays = (whole,), (arrays,)
        self._parameters, self._buffers = arrays._parameters, arrays._buffers
        self._non_persistent_buffers_set = arrays._non_persistent_buffers_set
        for name, part in arrays.named_children():
            self.add_module(name, part)

    def train(self, mode: bool = True) -> Any:
        """Set the mode of the module and of what it calls."""
        self._whole[0].train(mode)
        return super().train(mode)

    def called(self) -> Any:
        """What is called: `whole`, or a copy that reads what torch parametrises in this module."""
        (whole,), (arrays,) = self._whole, self._arrays
        if not is_parametrized(self):
            return whole
        parametrised: Any = self.parametrizations
        read = copy.copy(arrays)
        read._parameters = arrays._parameters | {name: getattr(self, name) for name in parametrised}
        if whole is arrays:
            return read
        found = copy.copy(whole)
        found._modules = {name: read if part is arrays else part for name, part in whole._modules.items()}
        return found
