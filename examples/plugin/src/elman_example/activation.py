"""Squareplus, a smooth ReLU (Barron 2021, arXiv:2112.11687), g(z) = (z + sqrt(z^2 + 4)) / 2; log g = asinh(z / 2)."""

import torch

from elman.network.output.activation import Activation


def _log_g(z: torch.Tensor) -> torch.Tensor:
    return torch.asinh(z / 2)


SQUAREPLUS = Activation(_log_g, _log_g, lambda z: torch.hypot(z, z.new_tensor(2.0)).reciprocal(), monotone=True)
