"""Trees side by side as arrays, their nodes in order of height."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from elman.data.trees.shape import Shape


class Trees(NamedTuple):
    """The nodes of B trees over words [S, B]: L leaves, tree by tree, then the M others, the lowest first; N = L + M.

    Attributes:
        children: rows of the children of each node that is no leaf, in order, int64 [M, K]; -1: there are fewer.
        of_height: how many nodes of each height there are, 1 first; a node is one higher than its highest child.
        places: of each leaf in the words as one row, [L]: position * B + tree.
        sentence, start, end: of every node its tree, first word and word after the last, [N].
        lengths: of the sentences, in words, [B].
    """

    children: Tensor
    of_height: tuple[int, ...]
    places: Tensor
    sentence: Tensor
    start: Tensor
    end: Tensor
    lengths: Tensor

    def to(self, device: torch.device, *, non_blocking: bool = False) -> "Trees":
        moved = (part.to(device, non_blocking=non_blocking) if isinstance(part, Tensor) else part for part in self)
        return Trees(*moved)  # type: ignore[arg-type]


def side_by_side(shapes: Sequence[Shape]) -> tuple[Trees, list[list[int]]]:
    """The nodes of some trees, and the row of each node of every tree, in the order of its `Shape`."""
    lengths = [shape.num_words for shape in shapes]
    first_leaf = np.cumsum([0, *lengths])
    heights = np.concatenate([np.zeros(0, np.int64), *(np.array(shape.heights, np.int64) for shape in shapes)])
    order = np.argsort(heights, kind="stable")
    row_of = np.empty(len(order), np.int64)
    row_of[order] = first_leaf[-1] + np.arange(len(order))
    first_inner = np.cumsum([0, *(len(shape.children) for shape in shapes)])
    rows = [
        [*range(leaf, leaf + length), *row_of[inner : inner + len(shape.children)].tolist()]
        for leaf, length, inner, shape in zip(first_leaf, lengths, first_inner, shapes, strict=False)
    ]
    arity = max((len(below) for shape in shapes for below in shape.children), default=2)
    children = np.full((len(order), arity), -1, np.int64)
    facts = np.zeros((first_leaf[-1] + len(order), 3), np.int64)
    for number, (shape, places) in enumerate(zip(shapes, rows, strict=True)):
        for below, row in zip(shape.children, places[shape.num_words :], strict=True):
            children[row - first_leaf[-1], : len(below)] = [places[child] for child in below]
        facts[places] = [(number, start, end) for start, end in shape.spans]
    sentence, start, end = (torch.from_numpy(column.copy()) for column in facts.T)
    leaves = slice(0, int(first_leaf[-1]))
    counts = np.bincount(heights, minlength=1)[1:].tolist()
    places_of_words = start[leaves] * len(shapes) + sentence[leaves]
    return (
        Trees(torch.from_numpy(children), tuple(counts), places_of_words, sentence, start, end, torch.tensor(lengths)),
        rows,
    )
