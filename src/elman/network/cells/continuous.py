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

from elman.config.initialisation import Zeros
from elman.config.record import Nonlinearity, PositiveFloat
from elman.network.cells.cell import Array, Driven, LayerState, Weights
from elman.network.cells.elman import NONLINEARITIES


class Continuous(Driven, frozen=True, tag="continuous"):
    """Units with time constants.

    `tau`: the time constants of the first and of the last unit, in the unit of `dt`, the others in geometric
    progression between them. `learned` time constants are tau = dt / sigm(r + e), r such that they begin as the recipe
    says, with e, the parameter `tau_shift`, 0 at first.
    """

    nonlinearity: Nonlinearity = "tanh"
    dt: PositiveFloat = 1.0
    tau: tuple[PositiveFloat, PositiveFloat] = (2.0, 2.0)
    learned: bool = False
    masks = None
    gates = ("n",)
    candidate = "n"

    def __post_init__(self) -> None:
        shortest = min(self.tau)
        if self.dt > shortest or (self.learned and self.dt == shortest):
            relation = "below" if self.learned else "at most"
            raise ValueError(
                f"dt is {self.dt:g} and tau {list(self.tau)}: an Euler step must be {relation} the shortest time"
                f" constant{', where these are learned' if self.learned else ''}"
            )

    def arrays(self, inputs: int, size: int) -> dict[str, Array]:
        return {"tau_shift": Array((size,), Zeros())} if self.learned else {}

    def driven(self, w: Weights, drive: Tensor, state: LayerState) -> LayerState:
        (h,) = state
        a = self.dt / self.time_constants(h.shape[-1], like=h)
        if self.learned:
            a = (torch.logit(a) + w.tau_shift).sigmoid()
        return (torch.lerp(h, NONLINEARITIES[self.nonlinearity](drive + linear(h, w.weight_hh, w.bias_hh)), a),)

    def time_constants(self, size: int, like: Tensor) -> Tensor:
        """The time constants [H] of `size` units as the recipe sets them, in geometric progression."""
        first, last = (math.log(tau) for tau in self.tau)
        return torch.linspace(first, last, size, dtype=like.dtype, device=like.device).exp()
