"""Sequences side by side, each read from its own end."""

import torch
from torch import Tensor


def mirror(mask: Tensor) -> Tensor:
    """Where each position goes when its sequence is turned around, [T, B, 1], for `take_along_dim(_, 0)`.

    Its own inverse: the same index turns what was read backwards around again.

    Args:
        mask: which positions are inside, bool [T, B], each sequence from step 0 on; the padding after it stays where
            it is.

    """
    steps = torch.arange(len(mask), device=mask.device).unsqueeze(1)
    return torch.where(mask, mask.sum(0) - 1 - steps, steps).unsqueeze(-1)
