"""Training for a certificate of stability: a hinge on its value, beside the loss.

A constraint by projection is known for tier 0 alone; tiers 1 and 2 are trained for with these penalties. A model has
the certificate when `elman analyze stability` says so, not because the penalty was there.
"""

from typing import Protocol

import torch
from torch import Tensor

from elman.cores.blocks import layers_of
from elman.cores.stack import Layer, Stack
from elman.encoders.lookup import Lookup
from elman.errors import UserError
from elman.model import LanguageModel
from elman.stability import fixed_point, incremental
from elman.stability.parts import gates_of, slope_of


class WeightPenalty(Protocol):
    """A scalar computed from the weights alone."""

    def __call__(self, model: LanguageModel) -> Tensor:
        """The penalty, weight included."""


class FixedPointPenalty:
    """Tier 1: weight * sum over layers of max(0, bound of ||K||_2 - (1 - margin)) at the silent fixed point.

    The norm is bounded from above by ||(K'K)^4||_F^(1/8), products alone; the fixed point itself is held constant.
    """

    def __init__(self, weight: float, margin: float) -> None:
        self.weight, self.margin = weight, margin

    def __call__(self, model: LanguageModel) -> Tensor:
        """Zero when every layer is certified with the margin; one that does not settle is taken where it is by then."""
        core = stack_of(model)
        x = torch.zeros(1, core.dims[0], dtype=torch.float64, device=model.device)
        total = torch.zeros((), device=model.device)
        for layer in layers_of(core):
            state, _ = fixed_point.settle(layer, x, steps=200, tolerance=1e-6)
            gates = gates_of(layer, detached=False)
            parts = fixed_point.blocks(layer, gates, x.to(layer.weight_hh.dtype), state)
            value = torch.stack([smooth_norm(part) for part in parts]).sum()
            total = total + (value - (1 - self.margin)).relu()
            x = state[0]
        return self.weight * total


class IncrementalPenalty:
    """Tier 2: weight * sum over layers of max(0, contraction - (1 - margin)).

    The inputs of the lowest layer are bounded coordinate by coordinate, which is quicker than word by word and never
    less: a model without this penalty left has the certificate.
    """

    def __init__(self, weight: float, margin: float) -> None:
        self.weight, self.margin = weight, margin

    def __call__(self, model: LanguageModel) -> Tensor:
        """Zero when every layer is certified with the margin."""
        core, encoder = stack_of(model), model.encoder
        if not isinstance(encoder, Lookup):
            raise UserError("training.penalties.stability_tier = 2 needs model.encoder.kind = lookup")
        largest = encoder.weight.abs().amax(0) * encoder.scale
        total = torch.zeros((), device=model.device)
        for layer in layers_of(core):
            rate, largest = self._layer(layer, largest)
            total = total + (rate - (1 - self.margin)).relu()
        return self.weight * total

    def _layer(self, layer: Layer, largest: Tensor) -> incremental.Contraction:
        gates = gates_of(layer, detached=False)
        bias = torch.cat(list(gates.input_bias.values()))
        reach = incremental.box_range(largest, layer.weight_ih, bias)
        return incremental.contraction(gates, reach, slope_of(layer) if gates.kind == "elman" else 1.0)


def stack_of(model: LanguageModel) -> Stack:
    """The recurrent layers.

    Raises:
        UserError: there are none.

    """
    if not isinstance(model.core, Stack):
        raise UserError(
            "training.penalties.stability needs recurrent layers in a chain: set model.core.kind to stack and"
            " model.core.connections to chain"
        )
    return model.core


def smooth_norm(matrix: Tensor) -> Tensor:
    """||(K'K)^4||_F^(1/8) >= ||K||_2, differentiable."""
    scale = matrix.detach().norm().clamp(min=1e-30)
    power = (matrix / scale).t() @ (matrix / scale)
    for _ in range(2):
        power = power @ power
    return scale * power.norm().clamp(min=1e-30) ** 0.125
