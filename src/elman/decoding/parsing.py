"""Parsing: binary trees over sentences, found by a chart or greedily, and how a node is wrong.

The score of a tree is the sum over its nodes of u'p, for nodes with children, and of the log-probability of the label.
The vector of a node depends on the whole tree below it, so that an exact search would have to keep all trees. In the
chart, as in the paper with a beam of one (Socher et al. 2013, section 3.3), each span keeps a single vector, from
the division with the greatest sum of u'p and the scores of both parts; its label is the best for this vector. All spans
of one length, of all sentences of a batch, are composed in one product; what depends on one child alone is computed
once per span. Greedy search (Socher et al. 2010, section 3.2) joins the best pair of neighbours until one is left.
"""

from collections.abc import Callable, Collection
from typing import NamedTuple

import torch
from torch import Tensor

from elman.data.trees.shape import NONE, Shape, Trees, side_by_side
from elman.network.tree_model import TreeModel
from elman.network.trees.composition import NodeState, Part

Span = tuple[int, int]
"""The first word, and the word after the last."""


class Bracketing(NamedTuple):
    """A binary tree and the labels of its nodes as ids, in the order of the shape, whose own labels mean nothing."""

    shape: Shape
    labels: list[int]


class Augmentation(NamedTuple):
    """What is added to scores in search while training: `kappa` for every node that is not in the right tree.

    `right`, int64 [B, S, S + 1]: the label of each span (first word, word after the last) of the right trees; -1 where
    there is no node.
    """

    right: Tensor
    kappa: float

    @classmethod
    def of(cls, trees: Trees, labels: Tensor, kappa: float) -> "Augmentation":
        """What marks the nodes of trees, with labels [N], as right."""
        length = int(trees.lengths.max())
        right = labels.new_full((len(trees.lengths), length, length + 1), -1)
        right[trees.sentence, trees.start, trees.end] = labels
        return cls(right, kappa)

    def wrong(self, trees: Trees, labels: Tensor) -> Tensor:
        """Whether nodes with labels [N] of trees over the same sentences are not in the right ones, bool [N]."""
        return self.right[trees.sentence, trees.start, trees.end] != labels

    def added(self, log_probs: Tensor, length: int) -> Tensor:
        """Scores [B, S - length + 1, L] of the labels of all spans of a length, with kappa where they are wrong."""
        starts = torch.arange(log_probs.shape[1], device=log_probs.device)
        right = self.right[:, starts, starts + length].unsqueeze(-1)
        labels = torch.arange(log_probs.shape[-1], device=log_probs.device)
        return log_probs + self.kappa * (right != labels)


def divided(num_words: int, split: Callable[[Span], int]) -> Shape:
    """The tree in which each span of more words than one is divided before the word `split`."""
    below, waiting = dict[Span, tuple[Span, Span]](), [(0, num_words)]
    while waiting:
        start, end = waiting.pop()
        if end - start > 1:
            middle = split((start, end))
            below[start, end] = (start, middle), (middle, end)
            waiting += below[start, end]
    heights = {(word, word + 1): 0 for word in range(num_words)}
    for span in sorted(below, key=lambda span: span[1] - span[0]):
        heights[span] = 1 + max(heights[child] for child in below[span])
    spans = sorted(below, key=lambda span: (heights[span], span[0]))
    every = [*((word, word + 1) for word in range(num_words)), *spans]
    numbers = {span: number for number, span in enumerate(every)}
    return Shape(
        num_words,
        tuple(tuple(numbers[child] for child in below[span]) for span in spans),
        tuple(heights[span] for span in spans),
        (NONE,) * len(every),
        tuple(every),
    )


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
            score, split, state = _divide(model, levels, longest, length)
        log_probs = model.label_log_probs(state[0])
        log_probs[..., list(forbidden)] = -torch.inf
        if augmentation is not None:
            log_probs = augmentation.added(log_probs, length)
        best, label = log_probs.max(-1)
        composition = model.core.composition
        levels.append(_Spans(score + best, label, split, composition.left(state), composition.right(state)))
    splits, labels = ([getattr(level, name).tolist() for level in levels] for name in ("split", "label"))
    found = []
    for row, length in enumerate(lengths.tolist()):

        def split_at(span: Span, row: int = row) -> int:
            return int(span[0] + splits[span[1] - span[0] - 1][row][span[0]])

        shape = divided(length, split_at)
        found.append(Bracketing(shape, [labels[end - start - 1][row][start] for start, end in shape.spans]))
    return found


def _divide(model: TreeModel, levels: list[_Spans], longest: int, length: int) -> tuple[Tensor, Tensor, NodeState]:
    """The best division of every span of a length: scores [B, S], words before it [B, S], states [B, S, ...]."""
    spans = longest - length + 1
    halves = [(levels[at - 1], levels[length - at - 1], slice(at, at + spans)) for at in range(1, length)]
    below = torch.stack([one.score[:, :spans] + other.score[:, there] for one, other, there in halves], 2)
    left = zip(*([leaf[:, :spans] for leaf in one.left] for one, *_ in halves), strict=True)
    right = zip(*([leaf[:, there] for leaf in other.right] for _, other, there in halves), strict=True)
    states = model.core.composition.join(*(tuple(torch.stack(leaf, 2) for leaf in side) for side in (left, right)))
    score, place = (below + model.scores(states[0])).max(2)
    chosen = tuple(leaf.take_along_dim(_over(place, leaf), 2).squeeze(2) for leaf in states)
    return score, place + 1, chosen


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
    splits: list[dict[Span, int]] = [{} for _ in edges]
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
        state = tuple(
            torch.where(_over(here, leaf), new, leaf.take_along_dim(_over(moved, leaf), 1))
            for leaf, new in zip(state, above, strict=True)
        )
        left_to_do = (left_to_do - 1).clamp_min(1)
    shapes = [divided(length, own.__getitem__) for length, own in zip(lengths.tolist(), splits, strict=True)]
    trees, rows = side_by_side(shapes)
    log_probs = model.label_log_probs(model.nodes(leaves, trees.to(lengths.device))[0])
    log_probs[..., list(forbidden)] = -torch.inf
    labels = log_probs.argmax(-1).tolist()
    return [Bracketing(shape, [labels[row] for row in places]) for shape, places in zip(shapes, rows, strict=True)]


def _over(places: Tensor, leaf: Tensor) -> Tensor:
    """Places [B, W] with further axes of size one, as many as a leaf [B, W, ...] has."""
    return places.view(*places.shape, *[1] * (leaf.ndim - 2))
