"""Tier 0: sigma_1(W_hh) < 2 makes h = 0 stable in a bias-free network without input (Kanai's thesis, Theorem 3.1)."""

import torch

from elman.cores.blocks import candidate_hidden, layers_of
from elman.cores.stack import Stack
from elman.stability.certificate import Certificate
from elman.stability.parts import kind_of, slope_of

PROVES = "without input and biases h = 0 is a fixed point, and states near it return to it"
DOES_NOT = "nothing of states far from 0, of inputs, or of a model with biases, whose fixed point lies elsewhere"


def origin(core: Stack) -> list[Certificate]:
    """One certificate a layer; for an LSTM the block is U_g, and the same 2 = (1 - f) / (i o) with gates of 1/2."""
    found = []
    for number, layer in enumerate(layers_of(core), start=1):
        elman = kind_of(layer) == "elman"
        found.append(
            Certificate(
                tier=0,
                layer=number,
                name="sigma_1(W_hh)",
                value=torch.linalg.matrix_norm(candidate_hidden(layer).detach().double(), 2).item(),
                limit=1 / slope_of(layer) if elman else 2.0,
                proves=PROVES,
                does_not=DOES_NOT,
            )
        )
    return found
