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

from elman.config.initialisation import Uniform, Zeros
from elman.errors import UserError
from elman.network.cells.cell import Array, Driven, LayerState, Weights

EPSILON = 1e-5
"""Added to |z|^2."""


class Unitary(Driven, frozen=True, tag="unitary"):
    """h' = modReLU(W h + V x + b_V).

    `theta` [3, n] holds the angles of D_1 to D_3, which begin in U(-pi, pi), `reflections` [4, n] Re v_1, Im v_1,
    Re v_2 and Im v_2, in U(-1, 1), and `threshold` [n] the b of modReLU, at first 0.
    """

    gates = ("z",)
    candidate = "z"
    has_matrices = False

    def arrays(self, inputs: int, size: int) -> dict[str, Array]:
        """The parameters of W and of modReLU; raises UserError where the units are not pairs."""
        if size % 2:
            raise UserError(
                "model.core.sizes: the cell unitary has complex units of two numbers each, and"
                f" {size} is odd; make it even"
            )
        n = size // 2
        return {
            "theta": Array((3, n), Uniform(bound=math.pi), recurrent=True),
            "reflections": Array((4, n), Uniform(bound=1.0), recurrent=True),
            "threshold": Array((n,), Zeros(), recurrent=True),
        }

    def driven(self, w: Weights, drive: Tensor, state: LayerState) -> LayerState:
        (h,) = state
        turned = evolve(w.theta, w.reflections, torch.complex(*h.chunk(2, dim=-1)))
        z = drive + torch.cat([turned.real, turned.imag], dim=-1)
        return (mod_relu(z if w.bias_hh is None else z + w.bias_hh, w.threshold),)


def order(n: int) -> tuple[int, ...]:
    """P, the same wherever a model is opened: entry k of P h is the entry of h at the k-th of these places."""
    draw = random.Random(n)
    return tuple(sorted(range(n), key=[draw.random() for _ in range(n)].__getitem__))


# What torch.compiler.assume_constant_result does, without the compiler, whose import takes a second.
order._dynamo_marked_constant = True  # type: ignore[attr-defined]
permutation = cache(order)


def evolve(theta: Tensor, reflections: Tensor, h: Tensor) -> Tensor:
    """W h of complex states h [B, n], given the angles [3, n] and the reflections [4, n]."""
    theta_1, theta_2, theta_3 = theta
    re_1, im_1, re_2, im_2 = reflections
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
