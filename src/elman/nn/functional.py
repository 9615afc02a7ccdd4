"""The equations as pure functions of tensors.

T steps, B sequences, I inputs, H units, G gates, N positions, K components, D the width of a context, V symbols. The
weights of a recurrence are weight_ih [G H, I], weight_hh [G H, H], bias_ih [G H] and bias_hh [G H], with the gates in
torch's order. Where there is a fast form it is used; it has first derivatives. A ValueError names shapes that do not
fit.
"""

from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

import torch
from torch import Tensor

from elman.config.parts import Activation
from elman.config.record import Nonlinearity
from elman.network.cells.cell import Cell, LayerState, Weights
from elman.network.cells.elman import Elman
from elman.network.cells.gru import GRU
from elman.network.cells.lstm import LSTM
from elman.network.cores.layer import in_their_type
from elman.network.fast import mixture
from elman.network.output.activation import log_g
from elman.nn.output import Each, Reduction, require, require_reduction, settled, symbols_below
from elman.nn.shared import record_of

Arrays: TypeAlias = Sequence[Any]
"""(weight_ih, weight_hh, bias_ih, bias_hh), tensors, of which biases can be None or left out."""


def lstm(x: Tensor, state: tuple[Tensor, Tensor], weights: Arrays) -> tuple[Tensor, tuple[Tensor, Tensor]]:
    """i, f, o = sigm(W x + U h + b), g = tanh(W x + U h + b), c' = f c + i g, h' = o tanh(c').

    Gers, Schmidhuber & Cummins 2000; Graves 2013, eqs 7-11 without the peepholes.

    Args:
        x: [T, B, I]
        state: h and c, each [B, H]
        weights: of the gates i, f, g, o

    Returns:
        h of every step, [T, B, H], and the last h and c.
    """
    outputs, (h, c) = _over(LSTM(), x, state, weights)
    return outputs, (h, c)


def gru(x: Tensor, h: Tensor, weights: Arrays, reset: Literal["before", "after"] = "after") -> tuple[Tensor, Tensor]:
    """r, z = sigm(W x + U h + b), n = tanh(W_n x + b + r (U_n h + b')), h' = z h + (1 - z) n.

    Args:
        x: [T, B, I]
        h: [B, H]
        weights: of the gates r, z, n
        reset: "before": n = tanh(W_n x + b + U_n (r h)) (Cho et al. 2014; thesis 2.29-2.32); "after" is torch's form

    Returns:
        h of every step, [T, B, H], and the last one.
    """
    outputs, (h,) = _over(record_of({"kind": "gru", "reset": reset}, GRU, "gru"), x, (h,), weights)
    return outputs, h


def elman(x: Tensor, h: Tensor, weights: Arrays, nonlinearity: Nonlinearity = "tanh") -> tuple[Tensor, Tensor]:
    """h_t = f(W x_t + U h_{t-1} + b) (Elman 1990).

    Args:
        x: [T, B, I]
        h: [B, H]
        weights: of the one gate
        nonlinearity: f

    Returns:
        h of every step, [T, B, H], and the last one.
    """
    keys = {"kind": "elman", "nonlinearity": nonlinearity}
    outputs, (h,) = _over(record_of(keys, Elman, "elman"), x, (h,), weights)
    return outputs, h


def _over(cell: Cell, x: Tensor, state: LayerState, weights: Arrays) -> tuple[Tensor, LayerState]:
    """The outputs and the last state of a cell; ValueError where shapes do not fit."""
    given = Weights(*weights)
    inputs, size = given.weight_ih.shape[1], given.weight_hh.shape[1]
    fitting = [(len(x), len(state[0]), inputs), *[(len(state[0]), size)] * len(state)]
    found = [tuple(part.shape) for part in (x, *state)]
    if found != fitting or not len(x):
        raise ValueError(
            f"x and the state have shapes {found}; [T, B, {inputs}], T 1 or more, and [B, {size}] are read"
        )
    return in_their_type(cell, cell.scan, given, x, state)


def log_activated(z: Tensor, activation: Activation = "softmax") -> Tensor:
    """Log g(z) - logsumexp log g(z) over the last axis, exact in the log domain (thesis 4.44-4.47).

    Args:
        z: [..., V]
        activation: of g: "softmax", "sigsoftmax" and so on
    """
    return log_g(z, activation).log_softmax(-1)


def log_sigsoftmax(z: Tensor) -> Tensor:
    """The logarithm [..., V] of `sigsoftmax`, which does not underflow."""
    return log_activated(z, "sigsoftmax")


def sigsoftmax(z: Tensor) -> Tensor:
    """exp(z_y) sigm(z_y) / sum_v exp(z_v) sigm(z_v) of z [..., V] (Kanai et al. 2018, section 3)."""
    return log_sigsoftmax(z).exp()


def mixture_nll(
    contexts: Tensor,
    log_prior: Tensor | None,
    weight: Tensor,
    bias: Tensor | None,
    target: Tensor,
    *,
    activation: Activation = "softmax",
    reduction: Reduction = "mean",
    position_weight: Tensor | None = None,
) -> Tensor:
    """-log sum_k pi_k p(y | c_k), p(y | c) = g(z_y) / sum_v g(z_v), z = W c + b (Yang et al. 2018, section 3.2).

    No tensor [N, K, V] is formed. Differentiable once.

    Args:
        contexts: c [N, K, D]
        log_prior: log pi [N, K]; None: K = 1
        weight: W [V, D]
        bias: b [V], or None
        target: y [N], int64, from 0 to V - 1
        activation: of g
        reduction: as in `Output.nll`
        position_weight: w [N]; None: 1

    Raises ValueError where a target is out of its range, or shapes do not fit.
    """
    require_reduction(reduction)
    number, width = contexts.shape[:1], weight.shape[1]
    w = contexts.new_ones(number) if position_weight is None else position_weight
    fitting = [(*contexts.shape[:2], width), tuple(contexts.shape[:2]), tuple(number), tuple(number)]
    prior = contexts[..., 0] if log_prior is None and contexts.shape[1:2] == (1,) else log_prior
    shapes = [None if one is None else tuple(one.shape) for one in (contexts, prior, target, w)]
    if shapes != fitting:
        raise ValueError(
            f"contexts, log_prior, target and position_weight have shapes {shapes}; [N, K, {width}], [N, K], [N] and"
            " [N] are read"
        )
    target, dtype = symbols_below(len(weight), target), weight.dtype
    wide = torch.promote_types(dtype, torch.float32)
    arrays: list[Any] = [None if one is None else one.to(wide) for one in (contexts, log_prior, weight, bias)]
    w = w.to(wide)
    if reduction == "mean":
        w = w / w.sum()

    def total(c: Tensor, log_pi: Tensor | None, matrix: Tensor, vector: Tensor | None, w: Tensor) -> Tensor:
        return mixture.nll(c, log_pi, matrix, vector, target, w, activation)[0]

    def each(c: Tensor, log_pi: Tensor | None, matrix: Tensor, vector: Tensor | None) -> Tensor:
        return -mixture.log_prob(c, log_pi, matrix, vector, target, activation)

    if reduction == "none" or w.requires_grad:
        found: Tensor = w * Each.apply(each, total, *arrays)  # type: ignore[no-untyped-call]
        found = found if reduction == "none" else found.sum()
    else:
        found = total(*[*arrays, w])
    return settled(found, w, reduction, dtype)


def softmax_nll(
    h: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    target: Tensor,
    *,
    activation: Activation = "softmax",
    reduction: Reduction = "mean",
    position_weight: Tensor | None = None,
) -> Tensor:
    """`mixture_nll` with one context h [N, D] per position."""
    return mixture_nll(
        h.unsqueeze(1),
        None,
        weight,
        bias,
        target,
        activation=activation,
        reduction=reduction,
        position_weight=position_weight,
    )


def sparsemax(z: Tensor) -> Tensor:
    """The point of the simplex that is nearest to z [..., V]: p = max(z - tau, 0), where tau gives p the sum 1.

    Martins & Astudillo 2016, From softmax to sparsemax, ICML, algorithm 1. Of z_(1) >= z_(2) >= ... the k largest have
    p above 0, k the greatest number with 1 + k z_(k) > z_(1) + ... + z_(k), and tau = (z_(1) + ... + z_(k) - 1) / k.
    """
    z = _below_zero(z)
    return (z - _threshold(z)).relu()


def sparsemax_loss(z: Tensor, target: Tensor, *, reduction: Reduction = "mean") -> Tensor:
    """-z_y + sum_j (z_j^2 - tau^2) / 2 + 1 / 2, summed where p_j > 0 (Martins & Astudillo 2016, section 3.2).

    With p and tau of `sparsemax`. Its gradient is p - e_y, as the nll of a softmax has it; it is 0 where z_y exceeds
    the others by 1. It is no likelihood: p can be 0 at a target.

    Args:
        z: [..., V]
        target: y [...], int64, from 0 to V - 1
        reduction: "mean", "sum" or "none", [...]

    Raises ValueError where a target is out of its range.
    """
    z = _below_zero(z)
    tau = _threshold(z)
    inside = torch.where(z > tau, z.square() - tau.square(), 0.0)
    return _reduced(0.5 * inside.sum(-1) + 0.5 - _at(z, target), reduction)


def one_vs_each_loss(z: Tensor, target: Tensor, *, reduction: Reduction = "mean") -> Tensor:
    """-sum_{m != y} log sigm(z_y - z_m), at least the nll of the softmax.

    Titsias 2016, One-vs-each approximation to softmax for scalable estimation of probabilities, NIPS, eq. 4.

    Args:
        z: [..., V]
        target: y [...], int64, from 0 to V - 1
        reduction: "mean", "sum" or "none", [...]

    Raises ValueError where a target is out of its range.
    """
    above = z - _at(z, target).unsqueeze(-1)
    others = above.scatter(-1, target.unsqueeze(-1), -torch.inf)
    return _reduced(torch.nn.functional.softplus(others).sum(-1), reduction)


def _below_zero(z: Tensor) -> Tensor:
    """Scores less their largest, of which sparsemax and its loss are the same and sums lose no digits."""
    return z - z.detach().amax(-1, keepdim=True)


def _threshold(z: Tensor) -> Tensor:
    """The tau [..., 1] of sparsemax."""
    falling = z.sort(-1, descending=True).values
    sums, places = falling.cumsum(-1), torch.arange(1, 1 + z.shape[-1], device=z.device)
    k = (1 + places * falling > sums).sum(-1, keepdim=True).clamp(min=1)  # 0 only where a score is no number
    return (sums.gather(-1, k - 1) - 1) / k


def _at(z: Tensor, target: Tensor) -> Tensor:
    """Scores [...] of the targets."""
    return z.gather(-1, symbols_below(z.shape[-1], target).unsqueeze(-1)).squeeze(-1)


def _reduced(each: Tensor, reduction: Reduction) -> Tensor:
    require_reduction(reduction)
    return each if reduction == "none" else each.sum() if reduction == "sum" else each.mean()


def transducer_nll(
    log_probs: Tensor,
    targets: Tensor,
    frames: Tensor,
    lengths: Tensor,
    *,
    blank: int = 0,
    reduction: Reduction = "mean",
) -> Tensor:
    """-log p(targets | frames) of a transducer.

    Graves 2012, Sequence transduction with recurrent neural networks, arXiv:1211.3711, eqs 16-18.
    A blank moves to the next frame, a label to the next one of the targets; p sums over all ways through the lattice:

        alpha(t, u) = alpha(t-1, u) p(blank | t-1, u) + alpha(t, u-1) p(target_u | t, u-1),    alpha(0, 0) = 1
        p(targets) = alpha(T-1, U) p(blank | T-1, U)

    With C(t, u) = sum_{s<t} log p(blank | s, u), the row u of log alpha - C is the cumulative logsumexp over t of
    log alpha(t, u-1) + log p(target_u | t, u-1) - C(t, u), so that only labels are read one after another. The sums are
    in double precision. Differentiable once.

    Args:
        log_probs: log p(k | t, u) [B, T, U + 1, V], normalised over V
        targets: [B, U], int64, not the blank; any label at padding
        frames: T of each sequence [B], 1 or more
        lengths: U of each sequence [B], 0 or more
        blank: the label that moves to the next frame
        reduction: "mean" over the sequences, "sum", or "none", [B]

    Raises ValueError where shapes do not fit, or `frames` or `lengths` are out of their range.
    """
    number, steps, most, _ = log_probs.shape
    if targets.shape != (number, most - 1) or not frames.shape == lengths.shape == (number,):
        found = [list(one.shape) for one in (log_probs, targets, frames, lengths)]
        raise ValueError(f"shapes are {found}; [B, T, U + 1, V], [B, U], [B] and [B] are read")
    inside = (frames >= 1) & (frames <= steps) & (lengths >= 0) & (lengths < most)
    require(inside, f"frames are from 1 to {steps}, and lengths from 0 to {most - 1}")
    blanks = log_probs[..., blank].double()
    before = blanks.cumsum(1) - blanks  # C [B, T, U + 1]
    index = targets[:, None, :, None].expand(-1, log_probs.shape[1], -1, 1)
    labels = log_probs[:, :, :-1].gather(3, index).squeeze(3).double()
    rows = [before[..., 0]]
    for u in range(targets.shape[1]):
        entered = rows[-1] + labels[..., u] - before[..., u + 1]
        rows.append(entered.logcumsumexp(1) + before[..., u + 1])
    ends = torch.stack(rows, -1) + blanks
    each = -ends[torch.arange(len(ends)), frames - 1, lengths].to(log_probs.dtype)
    return _reduced(each, reduction)
