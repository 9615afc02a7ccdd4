"""Penalties added to the NLL: on activations, on mixture weights, and for certificates of stability.

The reported NLL never includes them. The constraint by projection (`learning.constraint`) serves tier 0 of stability
alone; tiers 1 and 2 are trained for with a hinge on their value. A model has the certificate when `elman analyze
stability` reports it, not because it was trained with the penalty.
"""

from typing import Literal

import msgspec
import torch
from torch import Tensor

from elman import config
from elman.config.record import Rate
from elman.config.training import Penalty
from elman.data.batches import Batch, Whole, pairs_of
from elman.errors import UserError
from elman.network.cores.stack import layers_of, slope_of, stack_of
from elman.network.encoders.lookup import LookupEncoder
from elman.network.model import LanguageModel
from elman.network.output.contexts import MixtureContexts
from elman.objective.criteria import Seen


class Activation(Penalty, frozen=True, tag="ar"):
    """AR: weight * mean(h^2) of the last level after dropout (Merity et al. 2017)."""

    def __call__(self, seen: Seen) -> Tensor:
        """The penalty over a window."""
        squares, batch = seen.trace.top.square(), seen.batch
        if batch.mask is None:
            return self.weight * squares.mean() * batch.share
        return self.weight * _mean(squares, batch.mask, (batch.whole or Whole.of(batch)).counted)


class TemporalActivation(Penalty, frozen=True, tag="tar"):
    """TAR: weight * mean((h_{t+1} - h_t)^2) of the last level before dropout (Merity et al. 2017); zero for one step.

    A pair of steps counts if both do.
    """

    def __call__(self, seen: Seen) -> Tensor:
        """The penalty over a window."""
        return _change(self.weight, seen.trace.raw[-1], seen.batch)


class NormStabiliser(Penalty, frozen=True, tag="norm-stabiliser"):
    """Norms of the state are kept steady: weight * mean((|h_{t+1}| - |h_t|)^2) (Krueger & Memisevic 2016, eq. 1).

    h is the last level before dropout, as for `tar`, and |h| its Euclidean norm. A pair of steps counts if both do; the
    paper also counts the pair of the first step and the state before it.
    """

    def __call__(self, seen: Seen) -> Tensor:
        """The penalty over a window."""
        norms = torch.linalg.vector_norm(seen.trace.raw[-1], dim=-1, keepdim=True)
        return _change(self.weight, norms, seen.batch)


def _change(weight: float, values: Tensor, batch: Batch) -> Tensor:
    """Weight * mean((v_{t+1} - v_t)^2) of values [T, B, D] where both steps count; zero for one step."""
    if len(values) < 2:
        return values.new_zeros(())
    changes = (values[1:] - values[:-1]).square()
    if batch.mask is None:
        return weight * changes.mean() * batch.share
    return weight * _mean(changes, pairs_of(batch.mask), (batch.whole or Whole.of(batch)).pairs)


def _mean(values: Tensor, mask: Tensor, count: Tensor) -> Tensor:
    """What values [T, B, D] add, where the mask [T, B] is true, to a mean over `count` positions."""
    return (values.mean(-1) * mask).sum() / count.clamp(min=1)


class Balance(Penalty, frozen=True, tag="balance"):
    """How unequally the S components of a mixture are used; zero when all are used equally (Takase et al. 2018).

    The form "minibatch" is eqs 12-13: the squared coefficient of variation of the component weights summed
    over the whole minibatch. "columns" is the published code's, with which a weight of 0.001 was tuned: (S - 1)
    times the unbiased variance over the [batch, component] sums over time, divided by their squared mean; zero for one
    component. There columns in which not every step counts have means over those that do, so that columns of
    different lengths do not vary by their lengths.
    """

    form: Literal["columns", "minibatch"] = "columns"

    def check(self, model: LanguageModel) -> None:
        """Raise UserError where there is no mixture."""
        if not isinstance(model.output.contexts, MixtureContexts):
            raise UserError(
                "training.penalties.balance evens out the components of a mixture, and this output has one context: set"
                ' model.output.contexts.kind = "mixture", or balance = 0'
            )

    def __call__(self, seen: Seen) -> Tensor:
        """The penalty over a window."""
        weights, batch = seen.contexts.log_prior.exp(), seen.batch
        sums = (weights if batch.mask is None else weights * batch.mask.unsqueeze(-1)).sum(0)
        if self.form == "minibatch":
            return self.weight * squared_variation(sums.sum(0)) * batch.share
        if batch.mask is not None:
            counted = batch.mask.sum(0)
            sums = sums[counted > 0] / counted[counted > 0].unsqueeze(-1)
        if sums.shape[-1] == 1 or sums.numel() == 0:
            return sums.new_zeros(())
        return self.weight * (sums.shape[-1] - 1) * sums.var() / sums.mean().square() * batch.share


def squared_variation(sums: Tensor) -> Tensor:
    """The squared coefficient of variation, (std / mean)^2, of the summed weights [S] (Takase et al. 2018, eq. 13).

    Zero where all are zero, as where no step counts.
    """
    return sums.var(unbiased=False) / sums.mean().square().clamp(min=torch.finfo(sums.dtype).tiny)


class Stability(Penalty, frozen=True, tag="stability"):
    """A hinge on the value of a certificate: weight * sum over layers of max(0, value - (1 - margin)).

    Tier 1: the value is a bound of ||K||_2 at the silent fixed point. The norm is bounded from above by
    ||(K'K)^4||_F^(1/8), products alone. The fixed point, the state reached after at most 200 steps, is held constant.

    Tier 2: the value is the contraction. The inputs of the lowest layer are bounded coordinate by coordinate, which is
    faster than word by word and never smaller: where the penalty is zero, the model has the certificate.
    """

    tier: Literal[1, 2] = 2
    margin: Rate = 0.05

    def check(self, model: LanguageModel) -> None:
        """Raise UserError where there is no such certificate."""
        core = stack_of(model.core, "training.penalties.stability")
        from elman.network.stability.certificate import LETTERS

        if other := {layer.cell.name for layer in layers_of(core)} - LETTERS.keys():
            raise UserError(
                "training.penalties.stability is for the cells elman (without softplus), gru, and lstm with a forget"
                f" gate and no peepholes; the cell {other.pop()} has no such certificate: set stability = 0"
            )
        if self.tier == 2 and not isinstance(model.encoder, LookupEncoder):
            raise UserError(
                'training.penalties.stability_tier = 2 needs model.encoder.kind = "lookup"; set stability_tier = 1, or'
                " stability = 0"
            )

    def __call__(self, seen: Seen) -> Tensor:
        """The share of these columns in the hinge."""
        return self.hinge(seen.model) * seen.batch.share

    def hinge(self, model: LanguageModel) -> Tensor:
        """The hinge, weight included."""
        return self.weight * (_fixed_point if self.tier == 1 else _incremental)(self.margin, model)


def _fixed_point(margin: float, model: LanguageModel) -> Tensor:
    from elman.network.stability import certificate
    from elman.network.stability.certificate import gates_of

    core = stack_of(model.core, "training.penalties.stability")
    x = torch.zeros(1, core.dims[0], dtype=torch.float64, device=model.device)
    total = torch.zeros((), device=model.device)
    for layer in layers_of(core):
        state, _ = certificate.settle(layer, x, steps=200, tolerance=1e-6)
        parts = certificate.blocks(layer, gates_of(layer, detached=False), x.to(layer.weight_ih.dtype), state)
        value = torch.stack([smooth_norm(part) for part in parts]).sum()
        total = total + (value - (1 - margin)).relu()
        x = state[0]
    return total


def _incremental(margin: float, model: LanguageModel) -> Tensor:
    from elman.network.stability import incremental
    from elman.network.stability.certificate import gates_of

    core, encoder = stack_of(model.core, "training.penalties.stability"), model.encoder
    assert isinstance(encoder, LookupEncoder), "as `check` demands"
    largest = encoder.weight.abs().amax(0) * encoder.scale
    total = torch.zeros((), device=model.device)
    for layer in layers_of(core):
        gates = gates_of(layer, detached=False)
        reach = incremental.box_range(largest, layer.weight_ih, torch.cat(list(gates.input_bias.values())))
        rate, largest = incremental.contraction(gates, reach, slope_of(layer) if gates.kind == "elman" else 1.0)
        total = total + (rate - (1 - margin)).relu()
    return total


def smooth_norm(matrix: Tensor) -> Tensor:
    """||(K'K)^4||_F^(1/8) >= ||K||_2, differentiable."""
    scale = matrix.detach().norm().clamp(min=1e-30)
    power = (matrix / scale).t() @ (matrix / scale)
    for _ in range(2):
        power = power @ power
    return scale * power.norm().clamp(min=1e-30) ** 0.125


def chosen(weights: config.Penalties) -> list[Penalty]:
    """The penalties of a recipe whose weight is not zero, of plug-ins last."""
    own: list[Penalty] = [
        Activation(weight=weights.ar),
        TemporalActivation(weight=weights.tar),
        NormStabiliser(weight=weights.norm_stabiliser),
        Balance(weight=weights.balance, form=weights.balance_form),
        Stability(weight=weights.stability, tier=weights.stability_tier, margin=weights.stability_margin),
    ]
    added = [value for value in msgspec.structs.asdict(weights).values() if isinstance(value, Penalty)]
    return [penalty for penalty in [*own, *added] if penalty.weight]
