"""Unitary evolution: a recurrence of complex units that keeps the norm of the state (Arjovsky, Shah & Bengio 2016).

    z  = W h + V x + b_V,      W = D_3 R_2 F^-1 D_2 P R_1 F D_1                (eq. 9)
    h' = modReLU(z),           modReLU(z) = relu(|z| + b) z / |z|              (eq. 8)

F is the discrete Fourier transform, D = diag(e^{i theta}), R = I - 2 v v* / |v|^2 a reflection and P a fixed
permutation, all of them unitary: products with W take O(n log n) operations, and its O(n) parameters may take any step
of an optimiser. Gradients through W neither grow nor vanish; those through modReLU with b = 0 neither.

A layer of H units has n = H / 2 complex ones; its output is [Re h, Im h]. |z| is sqrt(Re^2 + Im^2 + 1e-5), as in the
published code, whose gradient at 0 exists; here b = 0 leaves z exactly as it is. Deviation: states begin at zero, which
the paper learns.
"""

import math
import random
from functools import cache

import torch
from torch import Tensor
from torch.nn.functional import relu

from elman import config
from elman.errors import UserError
from elman.network.cells.cell import Cell, LayerState, Structured, Weights, hoist, step_of

EPSILON = 1e-5
"""Added to |z|^2."""

ROWS = 8
"""Of the recurrent weights [8, n]: theta_1, theta_2, theta_3, Re v_1, Im v_1, Re v_2, Im v_2, b."""


def shape(size: int) -> tuple[int, int]:
    """The shape of the recurrent weights of `size` units; raises UserError where these are not pairs."""
    if size % 2:
        raise UserError(
            f"model.core.sizes: the cell unitary has complex units of two numbers each, and {size} is odd; make it even"
        )
    return ROWS, size // 2


@torch.no_grad()
def fill(hidden: Tensor) -> None:
    """The initial values of the paper: angles from U(-pi, pi), reflections from U(-1, 1), b = 0."""
    hidden[:3].uniform_(-math.pi, math.pi)
    hidden[3:7].uniform_(-1, 1)
    hidden[7].zero_()


@cache
def permutation(n: int) -> tuple[int, ...]:
    """P, the same wherever a model is opened: entry k of P h is that of h at the k-th of these places."""
    draw = random.Random(n)
    return tuple(sorted(range(n), key=[draw.random() for _ in range(n)].__getitem__))


def evolve(hidden: Tensor, h: Tensor) -> Tensor:
    """W h of complex states h [B, n], given the recurrent weights [8, n]."""
    theta_1, theta_2, theta_3, re_1, im_1, re_2, im_2, _ = hidden.unbind(0)
    h = torch.fft.fft(_turn(theta_1) * h, norm="ortho")
    h = _reflect(torch.complex(re_1, im_1), h)
    h = _turn(theta_2) * h[..., torch.tensor(permutation(h.shape[-1]), device=h.device)]
    h = _reflect(torch.complex(re_2, im_2), torch.fft.ifft(h, norm="ortho"))
    return _turn(theta_3) * h


def _turn(theta: Tensor) -> Tensor:
    return torch.complex(theta.cos(), theta.sin())


def _reflect(v: Tensor, h: Tensor) -> Tensor:
    """(I - 2 v v* / |v|^2) h."""
    length = (v.real.square() + v.imag.square()).sum().clamp(min=torch.finfo(v.real.dtype).tiny)
    return h - (2 / length) * (h @ v.conj()).unsqueeze(-1) * v


def mod_relu(z: Tensor, b: Tensor) -> Tensor:
    """relu(|z| + b) z / |z| of z = [Re z, Im z], [B, 2n], and b [n]."""
    real, imaginary = z.chunk(2, dim=-1)
    modulus = (real.square() + imaginary.square() + EPSILON).sqrt()
    scale = relu(modulus + b) / modulus
    return torch.cat([scale * real, scale * imaginary], dim=-1)


def driven(weights: Weights, drive: Tensor, state: LayerState) -> LayerState:
    """Return h' for the drive V x + b_V."""
    (h,) = state
    turned = evolve(weights.hidden, torch.complex(*h.chunk(2, dim=-1)))
    z = drive + torch.cat([turned.real, turned.imag], dim=-1)
    return (mod_relu(z if weights.hidden_bias is None else z + weights.hidden_bias, weights.hidden[7]),)


UNITARY = Cell(1, 1, step_of(driven), hoist(driven), "unitary", structured=Structured(shape, fill))


def build(_: config.Unitary) -> Cell:
    """The only form."""
    return UNITARY
