"""Dropout in its recurrent forms. Each function is the identity at rate zero.

What is kept is scaled by 1 / (1 - rate), so that nothing changes at evaluation.
"""

import torch
from torch import Tensor
from torch.nn import functional


def locked(x: Tensor, rate: float) -> Tensor:
    """Drop the same units at every step: x [T, B, ...], mask [1, B, ...] (Gal & Ghahramani 2016, section 4)."""
    return x * _drop(torch.ones_like(x[:1]), rate) if rate else x


def elementwise(x: Tensor, rate: float) -> Tensor:
    """Drop each element on its own (Zaremba et al. 2014)."""
    return _drop(x, rate) if rate else x


def connections(weight: Tensor, rate: float) -> Tensor:
    """DropConnect: drop recurrent weights, one mask a window (Wan et al. 2013; Merity et al. 2018, section 2)."""
    return _drop(weight, rate) if rate else weight


def word_types(num_words: int, rate: float, like: Tensor) -> Tensor:
    """A mask [V, 1] that drops whole words wherever they occur in the window (Gal & Ghahramani 2016)."""
    return _drop(torch.ones(num_words, 1, dtype=like.dtype, device=like.device), rate)


def _drop(x: Tensor, rate: float) -> Tensor:
    if x.device.type != "cpu":
        return functional.dropout(x, rate)
    return (x * _kept(x, rate)).mul_(1 / (1 - rate))


def _kept(x: Tensor, rate: float) -> Tensor:
    """True with probability 1 - rate, to 2^-17, in the shape of x.

    torch draws one double for each element on one thread, a tenth of AWD-LSTM's training step for DropConnect alone.
    Four elements to a random integer of 64 bits take a twelfth of that, and the mask a quarter of the memory.
    """
    words = torch.empty(-(-x.numel() // 4), dtype=torch.int64).random_(-(2**63), None)
    threshold = min(round(rate * 2**16), 2**16 - 1) - 2**15
    return (words.view(torch.int16)[: x.numel()] >= threshold).view(x.shape)
