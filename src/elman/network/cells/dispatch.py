"""Which of two LSTMs runs: the library's, or the one of `kernels.lstm` with its hoisted products.

Milliseconds of one thread (AMD Zen 5, torch 2.13; `python benchmarks/recurrent.py`):

    T B I H               training: library, hoisted     without gradients: library, hoisted
    70  20 1150 1150           444  490                            241  174
    70  20  400 1150           305  358                            155  135
    70  10 1500 1500                                               306  196
    50 100  128 1024           835  942                            235  302
    70  12  280  960           125  146                             43   51
    35  20  650  650            72   84                             24   29
    35  20  200  256            11   18                            3.6  6.0
     1   1 1150 1150                                                21  1.6

The library lays its weights out on every call, which one step does not repay, and slows down where they
outgrow the cache. For GRUs there is no choice to make on the CPU: the library's runs at half the speed.
"""

import torch
from torch import Tensor

from elman.network.cells.cell import Weights
from elman.network.kernels import matmul

HIDDEN_SIZE = 1100
"""From this width on the hoisted form serves."""


def keeps_workspace(xs: Tensor) -> bool:
    """The library's flag `train`: cuDNN goes back only through what ran with it. No dropout depends on it here."""
    return xs.device.type == "cuda" and torch.is_grad_enabled()


def library_parameters(weights: Weights) -> list[Tensor]:
    """What the library's functions take of a layer: both matrices, and two biases, zeros where it has none."""
    zero = weights.input.new_zeros(len(weights.input))
    biases = [zero if bias is None else bias for bias in (weights.input_bias, weights.hidden_bias)]
    return [weights.input, weights.hidden, *biases]


def library_lstm(xs: Tensor, hidden_size: int) -> bool:
    """Whether the library's LSTM serves inputs [T, B, I]: cuDNN on CUDA, oneDNN on the CPU."""
    if xs.device.type == "cuda":
        return True
    return matmul.uses_onednn(xs) and len(xs) >= matmul.PACKING_USES and hidden_size < HIDDEN_SIZE
