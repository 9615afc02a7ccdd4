"""Penalties beside the negative log-likelihood: on activations, on mixture weights, and for certificates of stability.

The reported NLL never includes them. The constraint by projection (`learning.constraint`) serves tier 0 of stability
alone; tiers 1 and 2 are trained for with a hinge on their value. A model has the certificate when `elman analyze
stability` reports it, not because it was trained with the penalty.
"""

from collections.abc import Callable
from typing import TypeAlias

import torch
from torch import Tensor

from elman import config
from elman.data.batches import Batch, Whole, pairs_of
from elman.errors import UserError
from elman.network.cores.core import Trace
from elman.network.cores.stack import layers_of, slope_of, stack_of
from elman.network.encoders.lookup import LookupEncoder
from elman.network.model import LanguageModel
from elman.network.output.contexts import Contexts, MixtureContexts
from elman.network.stability import fixed_point, incremental
from elman.network.stability.certificate import LETTERS, gates_of

Penalty: TypeAlias = Callable[[Trace, Contexts, Batch], Tensor]
"""A scalar computed from the activations over one window at positions that count, weight included.

Of columns that are a part of a batch it is their share of the batch's.
"""

WeightPenalty: TypeAlias = Callable[[LanguageModel], Tensor]
"""A scalar computed from the weights alone, weight included."""


def require_fit(weights: config.Penalties, model: LanguageModel) -> None:
    """Raise UserError where a penalty of a recipe is not defined for a network, or would do nothing."""
    if weights.balance and not isinstance(model.output.contexts, MixtureContexts):
        raise UserError(
            "training.penalties.balance evens out the components of a mixture, and this output has one context: set"
            ' model.output.contexts.kind = "mixture", or balance = 0'
        )
    if not weights.stability:
        return
    core = stack_of(model.core, "training.penalties.stability")
    if other := {layer.cell.name for layer in layers_of(core)} - LETTERS.keys():
        raise UserError(
            "training.penalties.stability is for the cells elman (without softplus), gru, and lstm with a forget gate"
            f" and no peepholes; the cell {other.pop()} has no such certificate: set stability = 0"
        )
    if weights.stability_tier == 2 and not isinstance(model.encoder, LookupEncoder):
        raise UserError(
            'training.penalties.stability_tier = 2 needs model.encoder.kind = "lookup"; set stability_tier = 1, or'
            " stability = 0"
        )


def activation(alpha: float, trace: Trace, contexts: Contexts, batch: Batch) -> Tensor:  # noqa: ARG001
    """AR: alpha * mean(h^2) of the last level after dropout (Merity et al. 2017)."""
    squares = trace.top.square()
    if batch.mask is None:
        return alpha * squares.mean() * batch.share
    return alpha * _mean(squares, batch.mask, (batch.whole or Whole.of(batch)).counted)


def temporal_activation(beta: float, trace: Trace, contexts: Contexts, batch: Batch) -> Tensor:  # noqa: ARG001
    """TAR: beta * mean((h_{t+1} - h_t)^2) of the last level before dropout (Merity et al. 2017); zero for one step.

    A pair of steps counts if both do.
    """
    last = trace.raw[-1]
    if len(last) < 2:
        return last.new_zeros(())
    squares = (last[1:] - last[:-1]).square()
    if batch.mask is None:
        return beta * squares.mean() * batch.share
    return beta * _mean(squares, pairs_of(batch.mask), (batch.whole or Whole.of(batch)).pairs)


def _mean(values: Tensor, mask: Tensor, count: Tensor) -> Tensor:
    """The share in a mean over so many positions of those of values [T, B, D] where the mask [T, B] is true."""
    return (values.mean(-1) * mask).sum() / count.clamp(min=1)


def balance_columns(weight: float, trace: Trace, contexts: Contexts, batch: Batch) -> Tensor:  # noqa: ARG001
    """As `balance`, in the form of the published code, with which a weight of 0.001 was tuned.

    It is (S - 1) * unbiased variance over the [batch, component] sums over time, divided by their squared mean; zero
    for one component. Columns in which not every step counts have means over those that do, so that columns of
    different lengths do not vary by their lengths.
    """
    sums = _component_weights(contexts, batch)
    if batch.mask is not None:
        counted = batch.mask.sum(0)
        sums = sums[counted > 0] / counted[counted > 0].unsqueeze(-1)
    if sums.shape[-1] == 1 or sums.numel() == 0:
        return sums.new_zeros(())
    return weight * (sums.shape[-1] - 1) * sums.var() / sums.mean().square() * batch.share


def balance(weight: float, trace: Trace, contexts: Contexts, batch: Batch) -> Tensor:  # noqa: ARG001
    """The squared coefficient of variation of the S component weights summed over the whole minibatch, times `weight`.

    Takase et al. 2018, eqs 12-13, as printed; zero when all components are used equally.
    """
    return weight * squared_variation(_component_weights(contexts, batch).sum(0)) * batch.share


def _component_weights(contexts: Contexts, batch: Batch) -> Tensor:
    """Of every column [B, S], summed over the steps that count."""
    weights = contexts.log_prior.exp()
    return (weights if batch.mask is None else weights * batch.mask.unsqueeze(-1)).sum(0)


def squared_variation(sums: Tensor) -> Tensor:
    """The squared coefficient of variation, (std / mean)^2, of the summed weights [S] (Takase et al. 2018, eq. 13).

    Zero where all are zero, as where no step counts.
    """
    return sums.var(unbiased=False) / sums.mean().square().clamp(min=torch.finfo(sums.dtype).tiny)


def fixed_point_hinge(weight: float, margin: float, model: LanguageModel) -> Tensor:
    """Tier 1: weight * sum over layers of max(0, bound of ||K||_2 - (1 - margin)) at the silent fixed point.

    The norm is bounded from above by ||(K'K)^4||_F^(1/8), products alone. The fixed point, the state reached after at
    most 200 steps, is held constant.
    """
    core = stack_of(model.core, "training.penalties.stability")
    x = torch.zeros(1, core.dims[0], dtype=torch.float64, device=model.device)
    total = torch.zeros((), device=model.device)
    for layer in layers_of(core):
        state, _ = fixed_point.settle(layer, x, steps=200, tolerance=1e-6)
        parts = fixed_point.blocks(layer, gates_of(layer, detached=False), x.to(layer.weight_ih.dtype), state)
        value = torch.stack([smooth_norm(part) for part in parts]).sum()
        total = total + (value - (1 - margin)).relu()
        x = state[0]
    return weight * total


def incremental_hinge(weight: float, margin: float, model: LanguageModel) -> Tensor:
    """Tier 2: weight * sum over layers of max(0, contraction - (1 - margin)).

    The inputs of the lowest layer are bounded coordinate by coordinate, which is faster than word by word and never
    smaller: where the penalty is zero, the model has the certificate.
    """
    core, encoder = stack_of(model.core, "training.penalties.stability"), model.encoder
    assert isinstance(encoder, LookupEncoder), "as `require_fit` demands"
    largest = encoder.weight.abs().amax(0) * encoder.scale
    total = torch.zeros((), device=model.device)
    for layer in layers_of(core):
        gates = gates_of(layer, detached=False)
        reach = incremental.box_range(largest, layer.weight_ih, torch.cat(list(gates.input_bias.values())))
        rate, largest = incremental.contraction(gates, reach, slope_of(layer) if gates.kind == "elman" else 1.0)
        total = total + (rate - (1 - margin)).relu()
    return weight * total


def smooth_norm(matrix: Tensor) -> Tensor:
    """||(K'K)^4||_F^(1/8) >= ||K||_2, differentiable."""
    scale = matrix.detach().norm().clamp(min=1e-30)
    power = (matrix / scale).t() @ (matrix / scale)
    for _ in range(2):
        power = power @ power
    return scale * power.norm().clamp(min=1e-30) ** 0.125
