"""Trees that a parser finds, and how a node is wrong."""

from collections.abc import Mapping
from typing import NamedTuple

import torch
from torch import Tensor

from elman.kinds.trees.nodes import Trees
from elman.kinds.trees.shape import NONE, Shape


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
        """That of trees with the labels [N] of their nodes."""
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


def from_splits(
    num_words: int, splits: Mapping[tuple[int, int], int], labels: Mapping[tuple[int, int], int]
) -> Bracketing:
    """The tree in which each span of more words than one is divided before the word `splits`; labels by their spans."""
    spans, waiting = list[tuple[int, int]](), [(0, num_words)]
    while waiting:
        start, end = waiting.pop()
        if end - start > 1:
            spans.append((start, end))
            waiting += [(start, splits[start, end]), (splits[start, end], end)]
    heights = {(word, word + 1): 0 for word in range(num_words)}
    below = {}
    for start, end in sorted(spans, key=lambda span: span[1] - span[0]):
        middle = splits[start, end]
        below[start, end] = ((start, middle), (middle, end))
        heights[start, end] = 1 + max(heights[child] for child in below[start, end])
    spans.sort(key=lambda span: (heights[span], span[0]))
    every = [*((word, word + 1) for word in range(num_words)), *spans]
    numbers = {span: number for number, span in enumerate(every)}
    shape = Shape(
        num_words,
        tuple(tuple(numbers[child] for child in below[span]) for span in spans),
        tuple(heights[span] for span in spans),
        (NONE,) * len(every),
        tuple(every),
    )
    return Bracketing(shape, [labels[span] for span in every])
