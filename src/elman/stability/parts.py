"""A layer's weights gate by gate, in float64, which is what certificates are computed in."""

from typing import Literal, NamedTuple

import torch
from torch import Tensor

from elman.cores.stack import Layer
from elman.errors import UserError

Kind = Literal["elman", "gru-before", "gru-after", "lstm"]


class Gates(NamedTuple):
    """Recurrent blocks U, input blocks W, and the two biases of each gate, by the gate's letter."""

    kind: Kind
    recurrent: dict[str, Tensor]
    input: dict[str, Tensor]
    input_bias: dict[str, Tensor]
    hidden_bias: dict[str, Tensor]

    def bias(self, gate: str) -> Tensor:
        """Both biases of a gate together."""
        return self.input_bias[gate] + self.hidden_bias[gate]

    def slices(self, drive: Tensor) -> dict[str, Tensor]:
        """The part [..., H] of a drive [..., G H] that each gate gets."""
        return dict(zip(self.recurrent, drive.chunk(len(self.recurrent), dim=-1), strict=True))


LETTERS: dict[Kind, str] = {"elman": "n", "gru-before": "rzn", "gru-after": "rzn", "lstm": "ifgo"}


def gates_of(layer: Layer, *, detached: bool = True) -> Gates:
    """The blocks of a layer.

    Args:
        layer: a layer of a stack.
        detached: float64 copies without gradients; otherwise the parameters themselves, to be trained.

    Raises:
        UserError: the cell has peepholes or no forget gate: no certificate is known here.

    """
    kind = kind_of(layer)
    size, letters = layer.hidden_size, LETTERS[kind]

    def split(stacked: Tensor | None) -> dict[str, Tensor]:
        if stacked is None:
            stacked = layer.weight_hh.new_zeros(len(letters) * size)
        stacked = stacked.detach().double() if detached else stacked
        return dict(zip(letters, stacked.split(size), strict=True))

    return Gates(kind, split(layer.weight_hh), split(layer.weight_ih), split(layer.bias_ih), split(layer.bias_hh))


def kind_of(layer: Layer) -> Kind:
    """Which equations.

    Raises:
        UserError: see `gates_of`.

    """
    if layer.cell.name in LETTERS:
        return layer.cell.name
    raise UserError("stability certificates are for the cells elman, gru and lstm with a forget gate and no peepholes")


def slope_of(layer: Layer) -> float:
    """The largest slope of the nonlinearity of Elman's network: 1 for tanh and ReLU, 1/4 for the sigmoid."""
    zero = torch.zeros((), dtype=torch.float64, requires_grad=True)
    one = torch.ones(1, 1, dtype=torch.float64)
    weights = layer.weights()._replace(input=one, hidden=one, input_bias=None, hidden_bias=None)
    ahead = layer.cell.step(weights, zero.reshape(1, 1), (torch.full((1, 1), 1e-9, dtype=torch.float64),))[0]
    (slope,) = torch.autograd.grad(ahead.sum(), zero)
    return float(slope)
