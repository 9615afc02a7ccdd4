"""Tier 3: the largest Lyapunov exponent along a text, a diagnostic and not a proof (Benettin et al. 1980)."""

from collections.abc import Sequence

import torch
from torch import Tensor

from elman.cells.cell import LayerState, Step, Weights
from elman.cores.blocks import layers_of
from elman.cores.stack import Stack
from elman.stability.certificate import Certificate
from elman.stability.fixed_point import double_weights

PROVES = "nothing: on this text, neighbouring states came together (value below 0) or moved apart (above 0)"
DOES_NOT = "it is an average over one text and one start; other words may behave otherwise"

State = tuple[LayerState, ...]


def advance(layers: Sequence[tuple[Weights, Step]], x: Tensor, state: State) -> State:
    """One step of all layers from float64 weights, by the plain equations."""
    new = []
    for (weights, step), before in zip(layers, state, strict=True):
        after = step(weights, x, before)
        new.append(after)
        x = after[0]
    return tuple(new)


@torch.no_grad()
def largest_exponent(core: Stack, vectors: Tensor, warm_up: int = 50, seed: int = 0) -> float:
    """Nats a step by which a small difference between states grows: tangent vectors carried along the data.

    Args:
        core: layers.
        vectors: encoded words [T, B, E], float64; the first `warm_up` steps turn the tangents and are not counted.
        warm_up: see `vectors`.
        seed: of the tangents.

    """
    layers = [(double_weights(layer), layer.cell.step) for layer in layers_of(core)]
    columns = vectors.shape[1]
    state: State = tuple(tuple(leaf.double() for leaf in layer.begin(columns)) for layer in layers_of(core))
    generator = torch.Generator().manual_seed(seed)
    tangent: State = tuple(
        tuple(torch.randn(leaf.shape, generator=generator, dtype=leaf.dtype).to(leaf) for leaf in leaves)
        for leaves in state
    )
    growth = vectors.new_zeros(columns)
    for time, x in enumerate(vectors):
        state, tangent = torch.func.jvp(lambda at, x=x: advance(layers, x, at), (state,), (tangent,))[:2]
        size = torch.stack([leaf.square().sum(1) for leaves in tangent for leaf in leaves]).sum(0).sqrt()
        size = size.clamp(min=1e-300)
        tangent = tuple(tuple(leaf / size.unsqueeze(1) for leaf in leaves) for leaves in tangent)
        if time >= warm_up:
            growth += size.log()
    return (growth / max(1, len(vectors) - warm_up)).mean().item()


def lyapunov(core: Stack, vectors: Tensor) -> Certificate:
    """The exponent as a line beside the certificates."""
    return Certificate(
        tier=3,
        layer=0,
        name="largest Lyapunov exponent, nats a step",
        value=largest_exponent(core, vectors),
        limit=0.0,
        proves=PROVES,
        does_not=DOES_NOT,
    )
