"""Greedy parsing: the best pair of neighbours is put together until one is left (Socher et al. 2010, section 3.2)."""

from collections import defaultdict
from collections.abc import Collection

import torch
from torch import Tensor

from elman.decoding.bracketing import Bracketing, from_splits
from elman.kinds.trees.nodes import side_by_side
from elman.network.tree_model import TreeModel
from elman.network.trees.composition import NodeState


@torch.no_grad()
def greedy_search(
    model: TreeModel, leaves: NodeState, lengths: Tensor, *, forbidden: Collection[int] = ()
) -> list[Bracketing]:
    """A tree of each of B sentences of `lengths` [B], from the states [S, B, ...] of their leaves.

    In every step the pair of neighbours with the greatest u'p becomes a node, in all sentences at once; the labels are
    the most probable ones, never any of those `forbidden`. Of n words it composes about n^2 / 2 nodes, a chart n^3 / 6.
    """
    composition, state = model.core.composition, tuple(leaf.transpose(0, 1) for leaf in leaves)
    longest = state[0].shape[1]
    left_to_do = lengths.clone()
    edges = [list(range(length + 1)) for length in lengths.tolist()]
    splits: list[dict[tuple[int, int], int]] = [{} for _ in edges]
    for width in range(longest, 1, -1):
        first, second = (tuple(leaf[:, rows] for leaf in state) for rows in (slice(None, -1), slice(1, None)))
        above = composition.join(composition.left(first), composition.right(second))
        pairs = torch.arange(width - 1, device=lengths.device)
        scores = model.scores(above[0]).masked_fill(pairs >= (left_to_do - 1).unsqueeze(1), -torch.inf)
        best, active = scores.argmax(1), left_to_do > 1
        for row in active.nonzero().flatten().tolist():
            place = int(best[row])
            start, middle, end = edges[row][place : place + 3]
            splits[row][start, end] = middle
            del edges[row][place + 1]
        moved = pairs + (pairs > torch.where(active, best, width).unsqueeze(1))
        here = (pairs == best.unsqueeze(1)) & active.unsqueeze(1)
        state = tuple(_merged(leaf, new, moved, here) for leaf, new in zip(state, above, strict=True))
        left_to_do = (left_to_do - 1).clamp_min(1)
    shapes = [
        from_splits(length, split, defaultdict(int)).shape
        for length, split in zip(lengths.tolist(), splits, strict=True)
    ]
    trees, rows = side_by_side(shapes)
    log_probs = model.label_log_probs(model.nodes(leaves, trees.to(lengths.device))[0])
    log_probs[..., list(forbidden)] = -torch.inf
    labels = log_probs.argmax(-1).tolist()
    return [Bracketing(shape, [labels[row] for row in places]) for shape, places in zip(shapes, rows, strict=True)]


def _merged(leaf: Tensor, new: Tensor, moved: Tensor, here: Tensor) -> Tensor:
    """The nodes of the next step, [B, width - 1, ...]: those `moved` to the left, and a new one where it is `here`."""
    axes = [1] * (leaf.ndim - 2)
    kept = leaf.take_along_dim(moved.view(*moved.shape, *axes), 1)
    return torch.where(here.view(*here.shape, *axes), new, kept)
