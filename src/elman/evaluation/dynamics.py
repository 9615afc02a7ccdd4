"""How a network's state behaves when nothing comes in: the decay after one random input (Kanai's thesis, Fig. 3.2)."""

import math

import torch
from torch import Tensor

from elman.cores.blocks import layers_of
from elman.cores.stack import Stack
from elman.stability.fixed_point import double_weights
from elman.stability.lyapunov import State, advance


@torch.no_grad()
def state_decay(core: Stack, *, trials: int = 50, steps: int = 100, kick: float = 0.1, seed: int = 0) -> Tensor:
    """The norm ||h_t|| of all layers together after an input x_1 ~ N(0, kick^2 I) and none afterwards, [steps].

    Args:
        core: layers.
        trials: how many inputs the mean is taken over; 50 in the thesis.
        steps: T; step 1 is the one with the input.
        kick: standard deviation of the input to the lowest layer; 0.1 in the thesis.
        seed: of the inputs.

    """
    layers = layers_of(core)
    stepped = [(double_weights(layer), layer.cell.step) for layer in layers]
    state: State = tuple(tuple(leaf.double() for leaf in layer.begin(trials)) for layer in layers)
    generator = torch.Generator().manual_seed(seed)
    draw = torch.randn(trials, core.dims[0], generator=generator, dtype=torch.float64)
    x = kick * draw.to(layers[0].weight_hh.device)
    norms = []
    for _ in range(steps):
        state = advance(stepped, x, state)
        norms.append(torch.cat([leaves[0] for leaves in state], dim=1).norm(dim=1).mean())
        x = torch.zeros_like(x)
    return torch.stack(norms)


def decay_rate(norms: Tensor) -> float:
    """The factor a step in the last half of the decay, as far as float64 resolves it; 1 when it does not decay.

    With sigma_1(W_hh) <= 2 - delta it is asymptotically at most 1 - delta / 4 in a bias-free GRU.
    """
    seen = norms[norms > 1e-12 * norms.max()]
    half = seen[len(seen) // 2 :]
    if len(half) < 2:
        return math.nan
    return float((half[-1] / half[0]) ** (1 / (len(half) - 1)))
