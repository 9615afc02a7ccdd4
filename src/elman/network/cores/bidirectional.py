"""Layers that read a sequence in both directions (Schuster & Paliwal 1997): for encoders and taggers."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from elman.network import dropout
from elman.network.cores.core import Trace
from elman.network.cores.stack import Layer


# FOLDED cores/mirror.py: Sequences side by side, each read from its own end.
def mirror(mask: Tensor) -> Tensor:
    """Where each position goes when its sequence is turned around, [T, B, 1], for `take_along_dim(_, 0)`.

    Its own inverse: the same index turns what was read backwards around again.

    Args:
        mask: which positions are inside, bool [T, B], each sequence from step 0 on; the padding after it stays where
            it is.

    """
    steps = torch.arange(len(mask), device=mask.device).unsqueeze(1)
    return torch.where(mask, mask.sum(0) - 1 - steps, steps).unsqueeze(-1)


# TARGET
class Bidirectional(nn.Module):
    """Every level is [forward; backward], each direction by layers of its own; a level reads both of the one below.

    It sees what comes after a position, so it is no `RecurrentCore`: it cannot be streamed, and a language model built
    upon it would read the symbols that it is asked for.

    Args:
        forwards: the layers that read from the beginning, bottom first.
        backwards: those that read from the end, with the same inputs.
        between: dropout rate between levels.
        after: dropout rate on the last level.
        locked: masks held over time.

    Attributes:
        dims: the width of every level of its trace, the input's first.

    """

    def __init__(
        self,
        forwards: Sequence[Layer],
        backwards: Sequence[Layer],
        *,
        between: float = 0.0,
        after: float = 0.0,
        locked: bool = True,
    ) -> None:
        super().__init__()
        assert len(forwards) == len(backwards)
        self.forwards, self.backwards = nn.ModuleList(forwards), nn.ModuleList(backwards)
        widths = (a.hidden_size + b.hidden_size for a, b in zip(forwards, backwards, strict=True))
        self.dims = (forwards[0].weight_ih.shape[1], *widths)
        self.rates = (*[between] * (len(forwards) - 1), after)
        self.drop = dropout.locked if locked else dropout.elementwise

    def forward(self, x: Tensor, lengths: Tensor | None = None) -> Trace:
        """Run over x [T, B, E], sequences that begin at step 0.

        Args:
            x: the inputs.
            lengths: the steps of each sequence [B], T where it is None. What stands after a sequence's end changes
                nothing before it; the outputs there are zero.

        """
        steps = torch.arange(len(x), device=x.device).unsqueeze(1)
        ends = torch.full_like(steps[0], len(x)).expand(x.shape[1]) if lengths is None else lengths.to(x.device)
        inside = steps < ends
        turned = mirror(inside)
        levels, raw = [x], [x]
        for rate, ahead, back in zip(self.rates, self.forwards, self.backwards, strict=True):
            below, batch = levels[-1], x.shape[1]
            one, _ = ahead(below, ahead.begin(batch))  # type: ignore[operator]
            other, _ = back(below.take_along_dim(turned, 0), back.begin(batch))  # type: ignore[operator]
            outputs = torch.cat([one, other.take_along_dim(turned, 0)], dim=-1) * inside.unsqueeze(-1)
            raw.append(outputs)
            levels.append(self.drop(outputs, rate if self.training else 0.0))
        return Trace(tuple(levels), tuple(raw))
