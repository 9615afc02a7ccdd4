"""A constituency tree as nodes that each have a label, and trees side by side as arrays.

Chains of one child are one node, and a tree is binary if it is asked for. A node has the label of its
constituent, or the labels of a chain of single children, the outermost first and a space between (`S VP`). A node that
only makes the tree binary, and a word that is no constituent by itself, have the label `NONE`. Parts of speech are not
kept.
"""

import dataclasses
from collections import deque
from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor

from elman.data.trees.brackets import ROOT, XX, Leaf, Node, bare, fold

NONE = "<none>"  # the label of nodes that are no constituents
Binary = Literal["right", "left", "none"]


@dataclasses.dataclass(frozen=True)
class Shape:
    """The nodes of a tree over `num_words` words: the leaves, one per word, then the others, the lowest first.

    Attributes:
        children: of each node that is no leaf, the numbers of its children in order.
        heights: of each node that is no leaf; one more than its highest child, where leaves have 0.
        labels: of every node, leaves first.
        spans: of every node, leaves first: the first word, and the word after the last.
    """

    num_words: int
    children: tuple[tuple[int, ...], ...]
    heights: tuple[int, ...]
    labels: tuple[str, ...]
    spans: tuple[tuple[int, int], ...]

    @property
    def is_constituent(self) -> list[bool]:
        return [label != NONE for label in self.labels]


@dataclasses.dataclass
class _Open:
    """A node while a tree is read, and its labels, the innermost first; its number is the leaf's, or is known later."""

    chain: list[str]
    start: int
    end: int
    height: int
    below: "list[_Open]"


def shape_of(tree: Node, binary: Binary = "right", *, functions: bool = True) -> Shape:
    """The nodes of a tree that is rooted in `ROOT`, which is no constituent itself.

    `binary`: how more than two children are put together: the last ones first (`right`), the first ones first (`left`),
    or not (`none`). Without `functions` labels are bare (`NP`, not `NP-SBJ`).
    """
    words: list[_Open] = []

    def word(_: Leaf) -> _Open:
        words.append(_Open([], len(words), len(words) + 1, 0, []))
        return words[-1]

    def node(one: Node, below: list[_Open]) -> _Open:
        if len(below) == 1:
            (found,) = below
        else:
            rest = deque(below)
            while binary != "none" and len(rest) > 2:
                if binary == "right":
                    last = rest.pop()
                    rest.append(_above([rest.pop(), last]))
                else:
                    rest.appendleft(_above([rest.popleft(), rest.popleft()]))
            found = _above([*rest])
        if one.label != ROOT:
            found.chain.append(one.label if functions else bare(one.label))
        return found

    top = fold(tree, word, node)
    inner: list[_Open] = []
    waiting = [top] if top.below else []
    while waiting:
        one = waiting.pop()
        inner.append(one)
        waiting += [child for child in one.below if child.below]
    inner.sort(key=lambda one: (one.height, one.start))
    numbers = {id(one): number for number, one in enumerate([*words, *inner])}
    every = [*words, *inner]
    return Shape(
        len(words),
        tuple(tuple(numbers[id(child)] for child in one.below) for one in inner),
        tuple(one.height for one in inner),
        tuple(" ".join(reversed(one.chain)) or NONE for one in every),
        tuple((one.start, one.end) for one in every),
    )


def tree_of(shape: Shape, words: Sequence[str], labels: Sequence[str] | None = None) -> Node:
    """The tree over these words, rooted in `ROOT`, each with the part of speech `XX`; nodes labelled `NONE` left out.

    `labels`: replace the labels of the shape.
    """
    labels = shape.labels if labels is None else labels
    open_: list[tuple[str, list[Node | Leaf]]] = [(ROOT, [])]
    waiting: list[int | None] = [len(labels) - 1]  # None: what was opened last ends
    while waiting:
        number = waiting.pop()
        if number is None:
            name, parts = open_.pop()
            open_[-1][1].append(Node(name, tuple(parts)))
            continue
        names = [] if labels[number] == NONE else labels[number].split(" ")
        open_ += [(name, []) for name in names]
        waiting += [None] * len(names)
        if number < shape.num_words:
            open_[-1][1].append(Leaf(XX, words[number]))
        else:
            waiting += reversed(shape.children[number - shape.num_words])
    return Node(ROOT, tuple(open_[0][1]))


def _above(below: list[_Open]) -> _Open:
    height = 1 + max(child.height for child in below)
    return _Open([], below[0].start, below[-1].end, height, below)


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
