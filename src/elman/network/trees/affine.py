"""Socher's recursive network: one affine map for all nodes (Socher, Manning & Ng 2010; Socher et al. 2013, eq. 3).

    p = tanh(W [a; b] + b_w)

a and b are the children, p the node, and W = [W_left, W_right]. The vector of a leaf is an affine map of its word's
vector, so that word vectors may have any width; in the papers it is the word vector itself.
"""

from typing import final

import torch
from jaxtyping import Float
from torch import Tensor, nn

from elman import config
from elman.network.fast.matmul import linear
from elman.network.initialisation import fill
from elman.network.trees.composition import Composition, NodeState, Part


class Affine(config.Composition, frozen=True, tag="affine"):
    """tanh of an affine map of both children, Socher's recursive network."""

    def build(self, input_size: int, size: int) -> "AffineComposition":
        return AffineComposition(input_size, size)


@final
class AffineComposition(Composition):
    """p = tanh(W [a; b] + b_w)."""

    def __init__(self, input_size: int, size: int) -> None:
        super().__init__()
        self.size = size
        self.weight_leaf = nn.Parameter(torch.empty(size, input_size))
        self.bias_leaf = nn.Parameter(torch.empty(size))
        self.weight_left = nn.Parameter(torch.empty(size, size))
        self.weight_right = nn.Parameter(torch.empty(size, size))
        self.bias = nn.Parameter(torch.empty(size))

    def leaf(self, x: Float[Tensor, "*N E"]) -> NodeState:
        """The vector of a leaf: an affine map of its word's vector."""
        return (linear(x, self.weight_leaf, self.bias_leaf),)

    def left(self, child: NodeState) -> Part:
        """W_left a + b_w."""
        return (linear(child[0], self.weight_left, self.bias),)

    def right(self, child: NodeState) -> Part:
        """W_right b."""
        return (linear(child[0], self.weight_right),)

    def join(self, left: Part, right: Part) -> NodeState:
        return ((left[0] + right[0]).tanh(),)

    def initialise(self, rules: config.Initialisation) -> None:
        fill(self.weight_leaf, rules.input, self.weight_leaf.shape[1])
        for weight in (self.weight_left, self.weight_right):
            fill(weight, rules.hidden, self.size)
        for bias in (self.bias_leaf, self.bias):
            fill(bias, rules.bias, self.size)
