"""Trees from their leaves upwards: all nodes of one height in one product, or plainly one node at a time."""

import torch

from elman.data.trees.nodes import Trees
from elman.network.trees.composition import Composition, NodeState


def by_height(composition: Composition, leaves: NodeState, trees: Trees) -> NodeState:
    """The states of all nodes of some trees, [N, ...], in the order of `Trees`: first their leaves, which are given.

    The nodes of one height depend on lower ones alone, so that they are composed at once, over all trees.
    """
    states, at = leaves, 0
    for count in trees.of_height:
        children = trees.children[at : at + count]
        at += count
        there = children >= 0
        width = int(there.sum(1).max())
        whole = bool(there[:, :width].all())
        rows = children[:, :width].clamp_min(0)
        below = tuple(leaf[rows.flatten()].unflatten(0, rows.shape) for leaf in states)
        above = composition.compose(below, None if whole else there[:, :width])
        states = tuple(torch.cat(parts) for parts in zip(states, above, strict=True))
    return states


def one_by_one(composition: Composition, leaves: NodeState, trees: Trees) -> NodeState:
    """As `by_height`, by a recursion that composes a single node at a time: its reference."""
    num_leaves = len(leaves[0])
    found: dict[int, NodeState] = {}

    def state(row: int) -> NodeState:
        if row < num_leaves:
            return tuple(leaf[row] for leaf in leaves)
        if row not in found:
            below = [state(child) for child in trees.children[row - num_leaves].tolist() if child >= 0]
            children = tuple(torch.stack(parts).unsqueeze(0) for parts in zip(*below, strict=True))
            found[row] = tuple(part.squeeze(0) for part in composition.compose(children))
        return found[row]

    rows = [state(row) for row in range(num_leaves + len(trees.children))]
    return tuple(torch.stack(parts) for parts in zip(*rows, strict=True))
