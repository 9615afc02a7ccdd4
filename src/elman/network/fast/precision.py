"""The precision of matrix products: float32, or bf16 or int8 with float32 results.

In bf16 (8 bits of significand, the exponents of float32) the factors of a large product are rounded, and the product is
rounded once more before it is added in float32; sums within a product are float32. In training the distribution of a
softmax is rounded too, since it is a factor of products (`fast/mixture_products.py`). Weights, states, gates,
sums of softmax, losses, penalties, gradients, moments and averages stay float32, and so do products of other types,
small ones (`fast/policy.py`), and the products of the vectors of symbols with the first layer's weights
(`network/cores/layer.py`). Narrow LSTMs alone round their states too (`policy.library_lstm`). In int8 a trained model
is run, not trained (`fast/int8.py`).

The setting belongs to a block of code, as `torch.no_grad` does, not to tensors, so that no layer has to know it; a
backward pass has the setting of its forward pass.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Literal, TypeAlias, get_args

import torch

Precision: TypeAlias = Literal["float32", "bf16", "int8"]

_CHOSEN: ContextVar[Precision] = ContextVar("precision of products", default="float32")


def chosen() -> Precision:
    return _CHOSEN.get()


def use(precision: Precision) -> None:
    """Compute large products in this precision from now on, outside of blocks that choose another."""
    _CHOSEN.set(precision)


def resolve(wanted: Literal["auto"] | Precision, device: torch.device) -> Precision:
    """The precision that a recipe asks for; `auto` is the one that is preferred on this machine."""
    if wanted != "auto":
        return wanted
    from elman.network.fast.preference import automatic

    return automatic(device)


@contextmanager
def products_in(precision: Precision) -> Iterator[None]:
    """Within the block, large products are computed in this precision, "float32", "bf16" or "int8"."""
    if precision not in get_args(Precision):
        raise ValueError(f'precision is {precision!r}; choose "float32", "bf16" or "int8"')
    before = _CHOSEN.set(precision)
    try:
        yield
    finally:
        _CHOSEN.reset(before)
