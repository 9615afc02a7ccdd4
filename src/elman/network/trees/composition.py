"""The interface of compositions, and trees from their leaves upwards: all nodes of one height in one product."""

from abc import ABC, abstractmethod
from typing import TypeAlias

import torch
from torch import Tensor, nn

from elman import config
from elman.config.parts import Built
from elman.data.trees.shape import Trees

NodeState: TypeAlias = tuple[Tensor, ...]
"""Tensors [*, ...] of nodes; the first is their vector [*, H]."""

Part: TypeAlias = tuple[Tensor, ...]
"""What a node contributes to the node above it, as its left or its right child: tensors [*, ...]."""


class Composition(Built, nn.Module, ABC):
    """The state of a node from its children's states; N nodes at a time, with any further axes before the last ones.

    A binary composition has two steps, so that a chart, in which a node is a child of many, computes the first one only
    once: `left` and `right` are all that depends on one child alone, the matrix products among it, and `join` puts
    the two together. `size` = H is the width of the vector, and `any_arity` whether nodes may have more than two
    children.
    """

    any_arity = False
    size: int

    @abstractmethod
    def leaf(self, x: Tensor) -> NodeState:
        """The state of leaves from vectors [*, E] of their words."""

    @abstractmethod
    def left(self, child: NodeState) -> Part:
        """The contribution of left children."""

    @abstractmethod
    def right(self, child: NodeState) -> Part:
        """The contribution of right children."""

    @abstractmethod
    def join(self, left: Part, right: Part) -> NodeState:
        """The state of nodes from the contributions of both children, which may be broadcast."""

    def compose(self, children: NodeState, there: Tensor | None = None) -> NodeState:
        """The state of N nodes from their children's states [N, K, ...], in order; K = 2 where the arity is fixed.

        `there`, bool [N, K], is false where a node has fewer than K children; None: all have K.
        """
        assert there is None or self.any_arity, "a binary composition has two children"
        first, second = (tuple(leaf[:, place] for leaf in children) for place in (0, 1))
        return self.join(self.left(first), self.right(second))

    @abstractmethod
    def initialise(self, rules: config.Initialisation) -> None:
        """Fill the parameters, in a fixed order, from torch's global random state."""


def by_height(composition: Composition, leaves: NodeState, trees: Trees) -> NodeState:
    """The states of all nodes of some trees, [N, ...], in the order of `Trees`: first their leaves, which are given.

    The nodes of one height depend on lower ones alone, so that they are composed at once, over all trees.
    """
    # Without gradients each node is written into its place, so that a tree as high as it has words takes linear time.
    learning = torch.is_grad_enabled()
    others = 0 if learning else len(trees.children)
    states, at = tuple(torch.cat([leaf, leaf.new_empty(others, *leaf.shape[1:])]) for leaf in leaves), 0
    for count in trees.of_height:
        children = trees.children[at : at + count]
        end = len(leaves[0]) + at
        at += count
        there = children >= 0
        width = int(there.sum(1).max())
        whole = bool(there[:, :width].all())
        rows = children[:, :width].clamp_min(0)
        below = tuple(leaf[rows.flatten()].unflatten(0, rows.shape) for leaf in states)
        above = composition.compose(below, None if whole else there[:, :width])
        if learning:
            states = tuple(torch.cat(parts) for parts in zip(states, above, strict=True))
        else:
            for leaf, new in zip(states, above, strict=True):
                leaf[end : end + count] = new
    return states
