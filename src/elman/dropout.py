"""Dropout in its recurrent forms. Each function is the identity at rate zero.

`torch.nn.functional.dropout` scales what is kept by 1 / (1 - rate), so that nothing changes at evaluation.
"""

import torch
from torch import Tensor
from torch.nn.functional import dropout


def locked(x: Tensor, rate: float) -> Tensor:
    """Drop the same units at every step: x [T, B, ...], mask [1, B, ...] (Gal & Ghahramani 2016, section 4)."""
    return x * dropout(torch.ones_like(x[:1]), rate) if rate else x


def elementwise(x: Tensor, rate: float) -> Tensor:
    """Drop each element on its own (Zaremba et al. 2014)."""
    return dropout(x, rate) if rate else x


def connections(weight: Tensor, rate: float) -> Tensor:
    """DropConnect: drop recurrent weights, one mask a window (Wan et al. 2013; Merity et al. 2018, section 2)."""
    return dropout(weight, rate) if rate else weight


def word_types(num_words: int, rate: float, like: Tensor) -> Tensor:
    """A mask [V, 1] that drops whole words wherever they occur in the window (Gal & Ghahramani 2016)."""
    return dropout(torch.ones(num_words, 1, dtype=like.dtype, device=like.device), rate)
