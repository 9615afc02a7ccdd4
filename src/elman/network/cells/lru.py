"""The linear recurrent unit (Orvieto, Smith, Gu, Fernando, Gulcehre, Pascanu & De 2023): complex, diagonal, stable.

    s' = lambda s + gamma (B x),     lambda = exp(-exp(nu) + i exp(theta))            (eqs 5 and 7, section 3.3)
    h' = Re(C s') + D x                                                                (eq. 3)

|lambda| < 1 whatever nu is. At first |lambda| is uniform over a ring between two radii, its phase between 0 and
`phase`, and gamma = sqrt(1 - |lambda|^2), which is then learned as exp(.). The state s is kept as its real and
imaginary parts, n numbers each. D is a matrix, so that a layer may be wider or narrower than its input; where the
paper's D is a vector both have one width. In the paper a layer norm, a GLU and a skip connection surround each unit,
as the core `residual` does.
"""

import math

import torch
from torch import Tensor
from torch.nn.functional import linear

from elman import config
from elman.errors import UserError
from elman.network import matmul
from elman.network.cells.cell import (
    Array,
    Cell,
    LayerState,
    Retention,
    Structured,
    Weights,
    input_products,
    product_of_inputs,
)
from elman.network.cells.scan import scan

LEAST = 1e-6
"""The smallest initial |lambda|^2 and 1 - |lambda|^2: their logarithms are parameters."""


def eigenvalues(weights: Weights) -> tuple[Tensor, Tensor]:
    """The real and the imaginary part of lambda, [n] each."""
    modulus, phase = (-weights.hidden[0].exp()).exp(), weights.hidden[1].exp()
    return modulus * phase.cos(), modulus * phase.sin()


def step(weights: Weights, x: Tensor, state: LayerState) -> LayerState:
    """Return h' and the two parts of s'."""
    _, re, im = state
    assert weights.extra is not None
    b_re, b_im, c_re, c_im = weights.extra
    l_re, l_im = eigenvalues(weights)
    gamma = weights.hidden[2].exp()
    new_re = l_re * re - l_im * im + gamma * linear(x, b_re)
    new_im = l_re * im + l_im * re + gamma * linear(x, b_im)
    h = linear(new_re, c_re) - linear(new_im, c_im) + linear(x, weights.input, weights.input_bias)
    return h, new_re, new_im


def sequence(weights: Weights, xs: Tensor, state: LayerState) -> tuple[Tensor, LayerState]:
    """The same over xs [T, B, I] by a scan of complex numbers."""
    assert weights.extra is not None
    b_re, b_im, c_re, c_im = weights.extra
    gamma = weights.hidden[2].exp()
    drive = torch.complex(*(gamma * product_of_inputs(weights, xs, b) for b in (b_re, b_im)))
    states = scan(torch.complex(*eigenvalues(weights)).expand_as(drive), drive, torch.complex(*state[1:]))
    re, im = states.real, states.imag
    outputs = matmul.linear(re, c_re) - matmul.linear(im, c_im) + input_products(weights, xs)
    return outputs, (outputs[-1].clone(), re[-1].clone(), im[-1].clone())


def _kept(weights: Weights) -> Retention:
    """The moduli of the eigenvalues, whatever the inputs are."""
    return Retention((), lambda low, high: (-weights.hidden[0].exp()).exp())  # noqa: ARG005


def build(record: config.LRU) -> Cell:
    """The cell of a recipe; raises UserError where the two radii are not in order."""
    low, high = record.radius
    if not low < high:
        raise UserError(
            f"model.core.cell.radius = [{low:g}, {high:g}]: the eigenvalues begin between two radii, the smaller one"
            " first"
        )

    def number(size: int) -> int:
        return record.states or size

    @torch.no_grad()
    def ring(hidden: Tensor) -> None:
        square = torch.rand_like(hidden[0]) * (high**2 - low**2) + low**2
        square.clamp_(LEAST, 1 - LEAST)
        hidden[0] = (-0.5 * square.log()).log()
        hidden[1] = (record.phase * torch.rand_like(hidden[1])).clamp(min=LEAST).log()
        hidden[2] = 0.5 * (1 - square).log()

    def matrices(inputs: int, size: int) -> tuple[Array, ...]:
        n = number(size)
        into, out = config.Normal(std=1 / math.sqrt(2 * inputs)), config.Normal(std=1 / math.sqrt(n))
        return Array((n, inputs), into), Array((n, inputs), into), Array((size, n), out), Array((size, n), out)

    return Cell(
        gates=0,
        slots=3,
        step=step,
        sequence=sequence,
        name="lru",
        input_gates=1,
        extra=matrices,
        masks=None,
        structured=Structured(lambda size: (3, number(size)), ring),
        memory=lambda _, size: ((size,), (number(size),), (number(size),)),
        retention=_kept,
    )
