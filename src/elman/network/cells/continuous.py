"""The continuous-time recurrent network, leaky units that follow a differential equation (Beer 1995).

    tau_i dh_i/dt = -h_i + f(W x + U h + b)_i

Funahashi & Nakamura 1993 prove that such networks approximate the trajectories of any smooth dynamical system on a
finite interval of time. Time is cut into Euler steps of length dt, one per symbol:

    h' = (1 - a) h + a f(W x + U h + b),    a_i = dt / tau_i

Between 0 and 1 a is a mean of the old state and the new, so h stays in the range of f. With a = 1 it is Elman's cell,
and with fixed random weights the leaky reservoir of Jaeger et al. 2007.
"""

import math

import torch
from torch import Tensor
from torch.nn.functional import linear

from elman import config
from elman.errors import UserError
from elman.network.cells.cell import Array, Cell, LayerState, Weights, hoist, step_of
from elman.network.cells.elman import NONLINEARITIES


def build(record: config.Continuous) -> Cell:
    """The cell of a recipe; raises UserError where an Euler step exceeds a time constant.

    Learned time constants are tau = dt / sigm(r + e), r such that they begin as the recipe says, e = 0 at first.
    """
    shortest = min(record.tau)
    if record.dt > shortest or (record.learned and record.dt == shortest):
        relation = "below" if record.learned else "at most"
        raise UserError(
            f"model.core.cell.dt is {record.dt:g} and model.core.cell.tau {list(record.tau)}: an Euler step must be"
            f" {relation} the shortest time constant{', where these are learned' if record.learned else ''}"
        )
    f = NONLINEARITIES[record.nonlinearity]

    def driven(weights: Weights, drive: Tensor, state: LayerState) -> LayerState:
        (h,) = state
        a = record.dt / time_constants(record, h.shape[-1], like=h)
        if weights.extra is not None:
            a = (torch.logit(a) + weights.extra[0].squeeze(0)).sigmoid()
        return (torch.lerp(h, f(drive + linear(h, weights.hidden, weights.hidden_bias)), a),)

    return Cell(
        gates=1,
        slots=1,
        step=step_of(driven),
        sequence=hoist(driven),
        name="continuous",
        extra=(lambda _, size: (Array((1, size), config.Zeros()),)) if record.learned else None,
        masks=None,
    )


def time_constants(record: config.Continuous, size: int, like: Tensor) -> Tensor:
    """The time constants [H] of `size` units as the recipe sets them, in geometric progression."""
    first, last = (math.log(tau) for tau in record.tau)
    return torch.linspace(first, last, size, dtype=like.dtype, device=like.device).exp()
