"""The independently recurrent network (Li, Li, Cook, Zhu & Gao 2018, CVPR): every unit hears itself alone."""

import torch
from torch import Tensor

from elman.network.cells.cell import Array, Driven, LayerState, Weights


class Independent(Driven, frozen=True, tag="independent"):
    """h' = relu(W x + u * h + b), with one recurrent weight u per unit; `largest`: u begins between 0 and this."""

    largest: float = 1.0
    gates = ("n",)
    masks = None
    has_matrices = False

    def arrays(self, inputs: int, size: int) -> dict[str, Array]:
        """The recurrent weights."""
        return {"u": Array((size,), lambda u: u.uniform_(0, self.largest), recurrent=True)}

    def driven(self, w: Weights, drive: Tensor, state: LayerState) -> LayerState:
        """The state after one step with the drive W x + b."""
        (h,) = state
        heard = w.u * h if w.bias_hh is None else w.u * h + w.bias_hh
        return (torch.relu(drive + heard),)
