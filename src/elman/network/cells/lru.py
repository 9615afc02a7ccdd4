"""The linear recurrent unit (Orvieto, Smith, Gu, Fernando, Gulcehre, Pascanu & De 2023): complex, diagonal, stable.

    s' = lambda s + gamma (B x),     lambda = exp(-exp(nu) + i exp(theta))            (eqs 5 and 7, section 3.3)
    h' = Re(C s') + D x                                                                (eq. 3)

|lambda| < 1 whatever nu is. At first |lambda| is uniform over a ring between two radii, its phase between 0 and
`phase`, and gamma = sqrt(1 - |lambda|^2), which is then learned as exp(.). The state s is kept as its real and
imaginary parts, n numbers each. D is a matrix, so that a layer may be wider or narrower than its input; where the
paper's D is a vector both have one width. It is the layer's `weight_ih`. In the paper a layer norm, a GLU and a skip
connection surround each unit, as the core `residual` does.
"""

import math

import torch
from torch import Tensor
from torch.nn.functional import linear

from elman.config.initialisation import Normal
from elman.config.record import Fraction, Positive, PositiveFloat
from elman.network.cells.cell import Array, Cell, LayerState, Retention, Shape, Weights, input_products
from elman.network.fast import matmul
from elman.network.fast.diagonal import scan

LEAST = 1e-6
"""The smallest initial |lambda|^2 and 1 - |lambda|^2: their logarithms are parameters."""


class LRU(Cell, frozen=True, tag="lru"):
    """The unit above, of `states` complex numbers, by default as many as the layer has units.

    `radius` and `phase`: the eigenvalues begin between two radii, and with phases up to the given one. `eigenvalues`
    [3, n] holds nu, theta and log gamma, which begin together; B_re, B_im [n, I], C_re, C_im [H, n].
    """

    states: Positive | None = None
    radius: tuple[Fraction, Fraction] = (0.0, 1.0)
    phase: PositiveFloat = 6.283185307179586
    masks = None
    input_gates = ("D",)

    def __post_init__(self) -> None:
        low, high = self.radius
        if not low < high:
            raise ValueError(
                f"radius = [{low:g}, {high:g}]: the eigenvalues begin between two radii, the smaller one first"
            )

    def arrays(self, inputs: int, size: int) -> dict[str, Array]:
        """The eigenvalues and the matrices B and C."""
        n = self.states or size
        into, out = Normal(std=1 / math.sqrt(2 * inputs)), Normal(std=1 / math.sqrt(n))
        return {
            "eigenvalues": Array((3, n), self._ring, recurrent=True),
            "B_re": Array((n, inputs), into),
            "B_im": Array((n, inputs), into),
            "C_re": Array((size, n), out),
            "C_im": Array((size, n), out),
        }

    def shapes(self, inputs: int, size: int) -> tuple[Shape, ...]:
        """h, and the two parts of s."""
        n = self.states or size
        return (size,), (n,), (n,)

    def step(self, w: Weights, x: Tensor, state: LayerState) -> LayerState:
        _, re, im = state
        l_re, l_im = _lambda(w)
        gamma = w.eigenvalues[2].exp()
        new_re = l_re * re - l_im * im + gamma * linear(x, w.B_re)
        new_im = l_re * im + l_im * re + gamma * linear(x, w.B_im)
        h = linear(new_re, w.C_re) - linear(new_im, w.C_im) + linear(x, w.weight_ih, w.bias_ih)
        return h, new_re, new_im

    def scan(self, w: Weights, xs: Tensor, state: LayerState) -> tuple[Tensor, LayerState]:
        gamma = w.eigenvalues[2].exp()
        drive = torch.complex(*(gamma * input_products(w, xs, b) for b in (w.B_re, w.B_im)))
        states = scan(torch.complex(*_lambda(w)).expand_as(drive), drive, torch.complex(*state[1:]))
        re, im = states.real, states.imag
        outputs = matmul.linear(re, w.C_re) - matmul.linear(im, w.C_im) + input_products(w, xs)
        return outputs, (outputs[-1].clone(), re[-1].clone(), im[-1].clone())

    def retention(self, w: Weights) -> Retention:
        """The moduli of the eigenvalues, whatever the inputs are."""
        return Retention((), lambda low, high: (-w.eigenvalues[0].exp()).exp())  # noqa: ARG005

    def _ring(self, eigenvalues: Tensor) -> None:
        low, high = self.radius
        square = torch.rand_like(eigenvalues[0]) * (high**2 - low**2) + low**2
        square.clamp_(LEAST, 1 - LEAST)
        eigenvalues[0] = (-0.5 * square.log()).log()
        eigenvalues[1] = (self.phase * torch.rand_like(eigenvalues[1])).clamp(min=LEAST).log()
        eigenvalues[2] = 0.5 * (1 - square).log()


def _lambda(w: Weights) -> tuple[Tensor, Tensor]:
    """The real and the imaginary part of lambda, [n] each."""
    modulus, phase = (-w.eigenvalues[0].exp()).exp(), w.eigenvalues[1].exp()
    return modulus * phase.cos(), modulus * phase.sin()
