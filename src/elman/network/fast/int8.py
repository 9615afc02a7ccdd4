"""Products with weights of eight bits, for running a trained model one token at a time.

With few rows a product takes as long as reading its weights, and weights of eight bits are a quarter. Every row of
W [O, I] has a scale, s_o = max_i |w_oi| / 127; so has every row of x, which is rounded to eight bits as it comes, so
that no row depends on another; sums are integers, and the result is float32:

    y_no = r_n s_o sum_i round(x_ni / r_n) round(w_oi / s_o),    r_n = max_i |x_ni| / 127

The relative error of a product is about one per cent (normally distributed numbers; `elman evaluate RUN
--precision int8` tells what a model loses). A parameter is rounded and laid out on first use, and again after it
changes.
"""

from collections.abc import MutableMapping

import torch
from torch import Tensor
from torch.utils.weak import WeakTensorKeyDictionary

LEVELS = 127
"""Largest magnitude of a rounded weight."""


def by_rows(weight: Tensor) -> tuple[Tensor, Tensor]:
    """A matrix [O, I] as integers of eight bits [O, I] and the scale of every row, float32 [O]."""
    scales = weight.abs().amax(1).clamp_(min=torch.finfo(torch.float32).tiny).div_(LEVELS)
    return (weight / scales.unsqueeze(1)).round_().to(torch.int8), scales


class Rounded:
    """A parameter W [O, I] of eight bits, laid out for oneDNN, with the version of the tensor it was made from."""

    def __init__(self, weight: Tensor) -> None:
        self.version = weight._version
        rounded, self.scales = by_rows(weight.detach())
        self.packed = torch.ops.onednn.qlinear_prepack(rounded, [1, weight.shape[1]])
        self.zeros = torch.zeros(len(weight), dtype=torch.int64)


_ROUNDED: MutableMapping[Tensor, Rounded] = WeakTensorKeyDictionary()


def multiply(x: Tensor, factor: Tensor, bias: Tensor | None) -> Tensor:
    """Return x factor^T + bias, [N, O] float32, for x [N, I], a parameter [O, I] and a bias [O] or None."""
    found = _ROUNDED.get(factor)
    if found is None or found.version != factor._version:
        found = _ROUNDED[factor] = Rounded(factor)
    levels = _levels()
    scales = x.abs().amax(1, keepdim=True).clamp_(min=1e-30).div_(levels)
    rounded = (x / scales).round_().add_(levels + 1).to(torch.uint8)
    product = torch.ops.onednn.qlinear_pointwise(
        rounded, 1.0, levels + 1, found.packed, found.scales, found.zeros, None, 1.0, 0, torch.float32, "none", [], ""
    )
    return product.mul_(scales) if bias is None else torch.addcmul(bias, product, scales, out=product)


def _levels() -> int:
    """Largest magnitude of a rounded input: seven bits where the processor adds pairs of products in 16 bits."""
    return 127 if torch.cpu._is_vnni_supported() else 63
