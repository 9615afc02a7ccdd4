"""A core as its plain equations in float64, one step at a time, for the analysis of its dynamics."""

import copy
from collections.abc import Callable
from typing import TypeAlias

from torch import Tensor

from elman.network.cores.core import RecurrentCore
from elman.network.cores.layer import take_plain_steps
from elman.network.state import State

Transition: TypeAlias = Callable[[Tensor, State], State]
"""(x [B, E], state) -> the state after one step."""


def plain_step(core: RecurrentCore) -> Transition:
    """The step of a copy of the core in float64, without dropout; it can be differentiated forwards and backwards."""
    copied = take_plain_steps(copy.deepcopy(core).double().eval())
    return lambda x, state: copied(x.unsqueeze(0), state)[1]
