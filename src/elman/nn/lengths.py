"""Sequences of several lengths in one layer: each is read as if it were alone."""

import torch
from torch import Tensor, nn

from elman.network.cells.cell import LayerState, Weights
from elman.network.cores.layer import Layer


def turned(xs: Tensor, lengths: Tensor | None) -> Tensor:
    """Each sequence of xs [T, B, _] from its end to its beginning; the padding after it stays in place."""
    if lengths is None:
        return xs.flip(0)
    steps, ends = torch.arange(len(xs)).unsqueeze(1), lengths.unsqueeze(0)
    places = torch.where(steps < ends, ends - 1 - steps, steps).to(xs.device)
    return xs.take_along_dim(places.unsqueeze(-1), 0)


def by_lengths(layer: Layer, w: Weights, xs: Tensor, state: LayerState, lengths: Tensor) -> tuple[Tensor, LayerState]:
    """A layer over sequences of several lengths: between two ends the sequences that continue are run together."""
    order = lengths.argsort(descending=True)
    back = order.argsort()
    xs, state = xs[:, order], tuple(part[order] for part in state)
    pieces, done = [], 0
    for end in lengths.unique().tolist():
        active = int((lengths >= end).sum())
        outputs, last = layer.run(w, xs[done:end, :active], tuple(part[:active] for part in state))
        pieces.append(nn.functional.pad(outputs, (0, 0, 0, xs.shape[1] - active)))
        state = tuple(torch.cat([new, old[active:]]) for new, old in zip(last, state, strict=True))
        done = end
    return torch.cat(pieces)[:, back], tuple(part[back] for part in state)


def held_at_ends(layer: Layer, w: Weights, xs: Tensor, state: LayerState, lengths: Tensor) -> tuple[Tensor, LayerState]:
    """A layer over sequences of several lengths, step by step, with the masks of its products held over all steps."""
    step, outputs = layer.one_step(state[0]), []
    ends = lengths.to(xs.device)
    for t, x in enumerate(xs):
        continues = ends > t
        new = step(w, x, state)
        state = tuple(
            torch.where(continues.view(-1, *[1] * (part.dim() - 1)), part, old)
            for part, old in zip(new, state, strict=True)
        )
        outputs.append(state[0] * continues.unsqueeze(-1))
    return torch.stack(outputs), state
