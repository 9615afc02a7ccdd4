"""The memory of a neural Turing machine: where its heads look, and how they write (Graves et al. 2014, section 3).

B sequences, H heads, a memory of N rows of W numbers, S shifts from -(S - 1) / 2 to (S - 1) / 2. Every function acts on
all heads at once.
"""

from functools import reduce
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

LEAST_SQUARE = 1e-8
"""Added to squared lengths, so that the cosine of a row near zero is near zero and its gradient is bounded."""

LEAST_WEIGHT = 1e-12
"""Added to weights before their logarithm is taken."""


class Heads(NamedTuple):
    """What the controller asks of the heads.

    Shapes: key [B, H, W]; strength beta >= 0, gate g from 0 to 1 and sharpness gamma >= 1, each [B, H, 1]; shift
    [B, H, S], distributions.
    """

    key: Tensor
    strength: Tensor
    gate: Tensor
    shift: Tensor
    sharpness: Tensor


def by_content(
    memory: Float[Tensor, "B N W"], key: Float[Tensor, "B H W"], strength: Float[Tensor, "B H 1"]
) -> Float[Tensor, "B H N"]:
    """w_c(i) = softmax_i(beta cos(k, M(i))) (eqs 5 and 6), where cos(u, v) = u v / sqrt((u u + eps) (v v + eps))."""
    scaled = key * (strength * _inverse_length(key))
    return (torch.bmm(scaled, memory.transpose(1, 2)) * _inverse_length(memory).transpose(1, 2)).softmax(-1)


def _inverse_length(vectors: Tensor) -> Tensor:
    return (vectors * vectors).sum(-1, keepdim=True).add(LEAST_SQUARE).rsqrt()


def shifted(weights: Float[Tensor, "B H N"], shift: Float[Tensor, "B H S"]) -> Float[Tensor, "B H N"]:
    """w~(i) = sum_j w(j) s(i - j), i - j modulo N (eq. 8)."""
    reach = shift.shape[-1] // 2
    parts = [
        weights.roll(by, -1) * share if by else weights * share
        for by, share in enumerate(shift.split(1, dim=-1), start=-reach)
    ]
    return reduce(torch.add, parts)


def sharpened(weights: Float[Tensor, "B H N"], sharpness: Float[Tensor, "B H 1"]) -> Float[Tensor, "B H N"]:
    """w(i) = w~(i)^gamma / sum_j w~(j)^gamma (eq. 9), through logarithms, so that no power underflows to a sum of 0."""
    return (weights.add(LEAST_WEIGHT).log() * sharpness).softmax(-1)


def addressed(memory: Float[Tensor, "B N W"], before: Float[Tensor, "B H N"], heads: Heads) -> Float[Tensor, "B H N"]:
    """The weights of the heads, given those of the step before: by content, and from there by location.

    w_g = g w_c + (1 - g) w_before (eq. 7), then shifted and sharpened. Each row [N] sums to 1.
    """
    gated = torch.lerp(before, by_content(memory, heads.key, heads.strength), heads.gate)
    return sharpened(shifted(gated, heads.shift), heads.sharpness)


def written(
    memory: Float[Tensor, "B N W"],
    weights: Float[Tensor, "B H N"],
    erase: Float[Tensor, "B H W"],
    add: Float[Tensor, "B H W"],
) -> Float[Tensor, "B N W"]:
    """M(i) prod_h (1 - w_h(i) e_h) + sum_h w_h(i) a_h (eqs 3 and 4): every head erases before any of them adds."""
    if weights.shape[1] == 1:
        kept = torch.addcmul(memory, memory, weights.transpose(1, 2) * erase, value=-1)
    else:
        kept = memory * (1 - weights.unsqueeze(-1) * erase.unsqueeze(-2)).prod(1)
    return torch.baddbmm(kept, weights.transpose(1, 2), add)
