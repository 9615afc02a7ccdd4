"""The interface of compositions: vectors of leaves, and nodes from their children."""

from abc import ABC, abstractmethod
from typing import TypeAlias

from torch import Tensor, nn

from elman import config
from elman.config.parts import Built

NodeState: TypeAlias = tuple[Tensor, ...]
"""Tensors [*, ...] of nodes; the first is their vector [*, H]."""

Part: TypeAlias = tuple[Tensor, ...]
"""What a node contributes to the node above it, as its left or its right child: tensors [*, ...]."""


class Composition(Built, nn.Module, ABC):
    """The state of a node from those of its children; N nodes at a time, with any further axes before the last ones.

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
        """The state of N nodes from those of their children [N, K, ...], in order; K = 2 where the arity is fixed.

        `there`, bool [N, K], is false where a node has fewer than K children; None: all have K.
        """
        assert there is None or self.any_arity, "a binary composition has two children"
        first, second = (tuple(leaf[:, place] for leaf in children) for place in (0, 1))
        return self.join(self.left(first), self.right(second))

    @abstractmethod
    def initialise(self, rules: config.Initialisation) -> None:
        """Fill the parameters, in a fixed order, from torch's global random state."""
