"""Certificates: a value against a limit, what follows if it holds, and what does not; here that of tier 0.

Tier 0: sigma_1(W_hh) < 2 makes h = 0 stable in a bias-free network without input (Kanai's thesis, Theorem 3.1).
Elman's network needs 1 where its nonlinearity is 0 at 0; with the sigmoid h = 0 is no fixed point: no tier 0.
Certificates are computed in float64, from a layer's weights gate by gate (`Gates`).
"""

from typing import Literal, NamedTuple

import msgspec
import torch
from torch import Tensor

from elman.errors import UserError
from elman.network.cores.layer import Layer
from elman.network.cores.stack import StackCore, candidate_hidden, layers_of, nonlinearity
from elman.network.spectrum import spectral_norm


class Certificate(msgspec.Struct, frozen=True, kw_only=True):
    """One condition on one layer, value < limit: what follows if it holds, and what does not follow even then.

    Tiers are 0 to 3; layer 1 is the lowest, and 0 the whole network. The value is NaN, and the condition not met, where
    what it is computed from is not finite.
    """

    tier: int
    layer: int
    name: str
    value: float
    limit: float
    proves: str
    does_not: str

    @property
    def holds(self) -> bool:
        """Whether the condition is met."""
        return self.value < self.limit


PROVES = "without input and biases h = 0 is a fixed point, and states near it return to it"
DOES_NOT = "nothing of states far from 0, of inputs, or of a model with biases, whose fixed point lies elsewhere"


def origin(core: StackCore) -> list[Certificate]:
    """One certificate per layer; for an LSTM the block is U_g, and the same 2 = (1 - f) / (i o) with gates of 1/2.

    Empty for Elman's network with the sigmoid: h = 0 is no fixed point.
    """
    kinds = [kind_of(layer) for layer in layers_of(core)]
    return [
        Certificate(
            tier=0,
            layer=number,
            name="sigma_1(W_hh)",
            value=spectral_norm(candidate_hidden(layer).detach().double()).item(),
            limit=1.0 if kind == "elman" else 2.0,
            proves=PROVES,
            does_not=DOES_NOT,
        )
        for number, (kind, layer) in enumerate(zip(kinds, layers_of(core), strict=True), start=1)
        if kind != "elman" or not nonlinearity(layer, torch.zeros(())).any()
    ]


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
        """The part [..., H] of a drive [..., G H] for each gate."""
        return dict(zip(self.recurrent, drive.chunk(len(self.recurrent), dim=-1), strict=True))


LETTERS: dict[Kind, str] = {"elman": "n", "gru-before": "rzn", "gru-after": "rzn", "lstm": "ifgo"}


def gates_of(layer: Layer, *, detached: bool = True) -> Gates:
    """The blocks of a layer, as float64 copies if `detached`, otherwise as the parameters themselves, to be trained.

    Raises UserError where the cell has peepholes or no forget gate: no certificate is known here.
    """
    kind = kind_of(layer)
    size, letters = layer.hidden_size, LETTERS[kind]

    def split(stacked: Tensor | None) -> dict[str, Tensor]:
        if stacked is None:
            stacked = layer.weight_ih.new_zeros(len(letters) * size)
        stacked = stacked.detach().double() if detached else stacked
        return dict(zip(letters, stacked.split(size), strict=True))

    return Gates(kind, split(layer.weight_hh), split(layer.weight_ih), split(layer.bias_ih), split(layer.bias_hh))


def kind_of(layer: Layer) -> Kind:
    """The equations of a layer; raises UserError where `gates_of` does."""
    if layer.cell.name in LETTERS:
        return layer.cell.name
    raise UserError(
        "stability certificates are for the cells elman (without softplus), gru, and lstm with a forget gate and no"
        " peepholes, and, all layers alike, min-gru, min-lstm, qrnn, lru, rg-lru, mlstm, mamba2 and gated deltanet"
    )
