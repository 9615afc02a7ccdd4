"""Dropout in its recurrent forms; every function is the identity at rate zero.

Units that are kept are scaled by 1 / (1 - rate), so that expectations are as in evaluation.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional


class Dropout(nn.Module):
    """Dropout of x [T, B, ...] in training, `locked` with one mask over all steps (Gal), else per element (Zaremba)."""

    def __init__(self, rate: float, *, locked: bool = True) -> None:
        super().__init__()
        self.rate, self.locked = rate, locked

    def forward(self, x: Tensor) -> Tensor:
        if not self.training:
            return x
        return locked(x, self.rate) if self.locked else elementwise(x, self.rate)

    def mask(self, x: Tensor, size: int) -> Tensor | None:
        """A mask [T, B, size] for a window x [T, B, _]; None where nothing is dropped."""
        return self(x.new_ones(*x.shape[:2], size)) if self.rate and self.training else None


def locked(x: Tensor, rate: float) -> Tensor:
    """Drop the same units at every step: x [T, B, ...], mask [1, B, ...] (Gal & Ghahramani 2016, section 4)."""
    return x * _drop(torch.ones_like(x[:1]), rate) if rate else x


def elementwise(x: Tensor, rate: float) -> Tensor:
    """Drop each element on its own (Zaremba et al. 2014); of recurrent weights it is DropConnect (Wan et al. 2013)."""
    return _drop(x, rate) if rate else x


def word_types(num_words: int, rate: float, like: Tensor) -> Tensor:
    """A mask [V, 1] that drops whole words wherever they occur in the window (Gal & Ghahramani 2016)."""
    return _drop(torch.ones(num_words, 1, dtype=like.dtype, device=like.device), rate)


def _drop(x: Tensor, rate: float) -> Tensor:
    if x.device.type != "cpu" or torch.compiler.is_compiling():
        return functional.dropout(x, rate)
    return (x * _kept(x, rate)).mul_(1 / (1 - rate))


def _kept(x: Tensor, rate: float) -> Tensor:
    """True with probability 1 - rate, to 2^-17, in the shape of x.

    torch draws one double per element on one thread, a tenth of AWD-LSTM's training step for DropConnect alone. Four
    elements per random integer of 64 bits take a twelfth of that time, and the mask a quarter of the memory.
    """
    words = torch.empty(-(-x.numel() // 4), dtype=torch.int64).random_(-(2**63), None)
    threshold = min(round(rate * 2**16), 2**16 - 1) - 2**15
    return (words.view(torch.int16)[: x.numel()] >= threshold).view(x.shape)
