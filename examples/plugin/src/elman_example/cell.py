"""The independently recurrent network (Li, Li, Cook, Zhu & Gao 2018, CVPR): every unit hears itself alone."""

from typing import ClassVar

import torch
from torch import Tensor
from torch.nn.functional import linear

from elman.config.cells import Cell as CellPart
from elman.network.cells.cell import Cell, LayerState, Structured, Weights


class Independent(CellPart, frozen=True, tag="independent"):
    """h' = relu(W x + u * h + b), with one recurrent weight u per unit; `largest`: u begins between 0 and this."""

    builder: ClassVar[str] = "elman_example.cell:build"
    largest: float = 1.0


def build(record: Independent) -> Cell:
    """The cell of a recipe."""

    def fill(weight: Tensor) -> None:
        weight.uniform_(0, record.largest)

    def step(weights: Weights, x: Tensor, state: LayerState) -> LayerState:
        (h,) = state
        heard = weights.hidden * h if weights.hidden_bias is None else weights.hidden * h + weights.hidden_bias
        return (torch.relu(linear(x, weights.input, weights.input_bias) + heard),)

    return Cell(1, 1, step, name="independent", masks=None, structured=Structured(lambda units: (1, units), fill))
