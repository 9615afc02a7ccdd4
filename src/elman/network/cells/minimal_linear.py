"""minGRU and minLSTM (Feng et al. 2024): gates of the input alone, so that the state enters linearly.

    minGRU    z = sigm(W_z x + b_z)                         h' = (1 - z) h + z g(W_h x + b_h)
    minLSTM   f, i = sigm(W x + b), f' = f / (f + i)        h' = f' h + (1 - f') g(W_h x + b_h)

with g(v) = v + 1/2 for v >= 0 and sigm(v) below (appendix B). g is positive, which the published parallel form in
logarithms needs; the loop and `scan` do not, and are exact for any state. f' is formed from the difference of log i and
log f, where f + i may be 0 in floating point.
"""

import torch
from torch import Tensor
from torch.nn.functional import softplus

from elman import config
from elman.network.cells.cell import Cell, LayerState, Retention, Weights, block_of, input_products, step_of
from elman.network.cells.scan import scan


def g(v: Tensor) -> Tensor:
    """Return v + 1/2 for v >= 0, sigm(v) below: positive, continuous and increasing."""
    return torch.where(v >= 0, v + 0.5, v.sigmoid())


def gru(sums: Tensor) -> tuple[Tensor, Tensor]:
    """The factor a and the addend b of h' = a h + b in minGRU, from sums [..., 2H] in the order z, h."""
    z, v = sums.chunk(2, dim=-1)
    return (-z).sigmoid(), z.sigmoid() * g(v)


def lstm(sums: Tensor) -> tuple[Tensor, Tensor]:
    """The same in minLSTM, from sums [..., 3H] in the order f, i, h."""
    f, i, v = sums.chunk(3, dim=-1)
    odds = softplus(-f) - softplus(-i)  # log i - log f
    return (-odds).sigmoid(), odds.sigmoid() * g(v)


def driven_gru(weights: Weights, drive: Tensor, state: LayerState) -> LayerState:  # noqa: ARG001
    """One step of minGRU, given W x + b."""
    a, b = gru(drive)
    return (a * state[0] + b,)


def driven_lstm(weights: Weights, drive: Tensor, state: LayerState) -> LayerState:  # noqa: ARG001
    """One step of minLSTM, given W x + b."""
    a, b = lstm(drive)
    return (a * state[0] + b,)


def gru_sequence(weights: Weights, xs: Tensor, state: LayerState) -> tuple[Tensor, LayerState]:
    """Return outputs and state of minGRU over xs [T, B, I], by a scan."""
    states = scan(*gru(input_products(weights, xs)), state[0])
    return states, (states[-1].clone(),)


def lstm_sequence(weights: Weights, xs: Tensor, state: LayerState) -> tuple[Tensor, LayerState]:
    """Return outputs and state of minLSTM over xs [T, B, I], by a scan."""
    states = scan(*lstm(input_products(weights, xs)), state[0])
    return states, (states[-1].clone(),)


def _kept_by_gru(weights: Weights) -> Retention:
    return Retention((block_of(weights, 0, len(weights.input) // 2),), lambda low, high: (-low).sigmoid())  # noqa: ARG005


def _kept_by_lstm(weights: Weights) -> Retention:
    def factor(low: Tensor, high: Tensor) -> Tensor:
        f, i = high.chunk(2)[0], low.chunk(2)[1]
        return (softplus(-i) - softplus(-f)).sigmoid()

    return Retention((block_of(weights, 0, 2 * len(weights.input) // 3),), factor)


MIN_GRU = Cell(
    gates=0,
    slots=1,
    step=step_of(driven_gru),
    sequence=gru_sequence,
    name="min-gru",
    candidate=1,
    keeps=((0, -1),),
    input_gates=2,
    masks=None,
    retention=_kept_by_gru,
)
MIN_LSTM = Cell(
    gates=0,
    slots=1,
    step=step_of(driven_lstm),
    sequence=lstm_sequence,
    name="min-lstm",
    candidate=2,
    keeps=((0, 1),),
    input_gates=3,
    masks=None,
    retention=_kept_by_lstm,
)


def build_gru(_: config.MinGRU) -> Cell:
    """The only form."""
    return MIN_GRU


def build_lstm(_: config.MinLSTM) -> Cell:
    """The only form."""
    return MIN_LSTM
