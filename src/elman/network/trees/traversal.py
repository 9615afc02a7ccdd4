"""Trees from their leaves upwards: all nodes of one height in one product, or plainly one node at a time."""

import torch

from elman.data.trees.nodes import Trees
from elman.network.trees.composition import Composition, NodeState


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


def one_by_one(composition: Composition, leaves: NodeState, trees: Trees) -> NodeState:
    """As `by_height`, composing a single node at a time: its reference."""
    rows = list(zip(*(leaf.unbind() for leaf in leaves), strict=True))
    for below in trees.children.tolist():
        children = zip(*(rows[child] for child in below if child >= 0), strict=True)
        above = composition.compose(tuple(torch.stack(parts).unsqueeze(0) for parts in children))
        rows.append(tuple(part.squeeze(0) for part in above))
    return tuple(torch.stack(parts) for parts in zip(*rows, strict=True))
