"""Parsing with a chart: the best tree over every span from those of shorter ones (Socher et al. 2013, section 3.3).

The score of a tree is the sum over its nodes of u'p, for nodes with children, and of the log-probability of the label.
The vector of a node depends on the whole tree below it, so that an exact search would have to keep all trees; here, as
in the paper with a beam of one, each span keeps a single vector: that of the division with the greatest sum of u'p and
the scores of both parts. Its label is the best for this vector. All spans of one length, of all sentences of a batch,
are composed in one product; what depends on one child alone is computed once per span.
"""

from collections.abc import Collection, Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from elman.decoding.bracketing import Augmentation, Bracketing, from_splits
from elman.network.tree_model import TreeModel
from elman.network.trees.composition import NodeState, Part


class _Spans(NamedTuple):
    """The best trees over all spans of one length, [B, S, ...]: scores, labels, words before the division, parts."""

    score: Tensor
    label: Tensor
    split: Tensor
    left: Part
    right: Part


@torch.no_grad()
def chart_search(
    model: TreeModel,
    leaves: NodeState,
    lengths: Tensor,
    *,
    augmentation: Augmentation | None = None,
    forbidden: Collection[int] = (),
) -> list[Bracketing]:
    """The best trees of B sentences of `lengths` [B], from the states [S, B, ...] of their leaves.

    `augmentation`: what is added to the scores while training. Labels `forbidden` are never chosen.
    """
    levels: list[_Spans] = []
    state: NodeState = tuple(leaf.transpose(0, 1) for leaf in leaves)
    batch, longest = state[0].shape[:2]
    none = torch.zeros(batch, longest, dtype=torch.int64, device=lengths.device)
    score, split = torch.zeros(batch, longest, dtype=state[0].dtype, device=lengths.device), none
    for length in range(1, longest + 1):
        if length > 1:
            score, split, state = _divided(model, levels, longest, length)
        log_probs = model.label_log_probs(state[0])
        log_probs[..., list(forbidden)] = -torch.inf
        if augmentation is not None:
            log_probs = augmentation.added(log_probs, length)
        best, label = log_probs.max(-1)
        composition = model.core.composition
        levels.append(_Spans(score + best, label, split, composition.left(state), composition.right(state)))
    splits, labels = ([getattr(level, name).tolist() for level in levels] for name in ("split", "label"))
    return [_backtrack(row, length, splits, labels) for row, length in enumerate(lengths.tolist())]


def _divided(model: TreeModel, levels: list[_Spans], longest: int, length: int) -> tuple[Tensor, Tensor, NodeState]:
    """The best division of every span of a length: scores [B, S], words before it [B, S], states [B, S, ...]."""
    spans = longest - length + 1

    def side(name: str) -> Iterator[Tensor]:
        """A part of all left or right halves, [B, S, length - 1, ...]."""
        for place in range(len(getattr(levels[0], name))):
            halves = (
                getattr(levels[words - 1], name)[place][:, :spans]
                if name == "left"
                else getattr(levels[length - words - 1], name)[place][:, words : words + spans]
                for words in range(1, length)
            )
            yield torch.stack(list(halves), 2)

    below = torch.stack(
        [
            levels[words - 1].score[:, :spans] + levels[length - words - 1].score[:, words : words + spans]
            for words in range(1, length)
        ],
        2,
    )
    states = model.core.composition.join(tuple(side("left")), tuple(side("right")))
    score, place = (below + model.scores(states[0])).max(2)
    chosen = tuple(
        leaf.take_along_dim(place.view(*place.shape, *[1] * (leaf.ndim - 2)), 2).squeeze(2) for leaf in states
    )
    return score, place + 1, chosen


def _backtrack(row: int, length: int, splits: list[list[list[int]]], labels: list[list[list[int]]]) -> Bracketing:
    """The tree of one sentence; tables by length, sentence and first word."""
    found, waiting = dict[tuple[int, int], int](), [(0, length)]
    named = {}
    while waiting:
        start, end = waiting.pop()
        named[start, end] = labels[end - start - 1][row][start]
        if end - start > 1:
            found[start, end] = start + splits[end - start - 1][row][start]
            waiting += [(start, found[start, end]), (found[start, end], end)]
    return from_splits(length, found, named)
