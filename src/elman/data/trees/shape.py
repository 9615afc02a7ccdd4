"""A constituency tree as nodes that each have a label: chains of one child in one node, and binary if it is asked for.

The label of a node is that of its constituent, or of several in a chain of single children, the outermost first and a
space between (`S VP`). A node that only makes the tree binary, and a word that is no constituent by itself, have the
label `NONE`. Parts of speech are not kept.
"""

import dataclasses
from collections.abc import Sequence
from typing import Literal

from elman.data.trees.brackets import ROOT, XX, Leaf, Node, bare, walk

NONE = "<none>"
"""The label of nodes that are no constituents."""

Binary = Literal["right", "left", "none"]


@dataclasses.dataclass(frozen=True)
class Shape:
    """The nodes of a tree over `num_words` words: the leaves, one per word, then the others, the lowest first.

    Attributes:
        children: of each node that is no leaf, the numbers of its children in order.
        heights: of each node that is no leaf; one more than that of its highest child, 0 of leaves.
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
        """Of every node."""
        return [label != NONE for label in self.labels]


@dataclasses.dataclass
class _Open:
    """A node while a tree is read; its number is that of the leaf, or is known later."""

    label: str
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
    open_: list[list[_Open]] = [[]]
    chains: list[list[str]] = [[]]
    for side, one in walk(tree):
        if isinstance(one, Leaf):
            words.append(_Open(" ".join(chains.pop()) or NONE, len(words), len(words) + 1, 0, []))
            open_[-1].append(words[-1])
        elif side == "(":
            if one.label != ROOT:
                chains[-1].append(one.label if functions else bare(one.label))
            if len(one.children) > 1:
                open_.append([])
                chains += [[] for _ in one.children]
        elif len(one.children) > 1:
            below = _put_together(open_.pop(), binary)
            open_[-1].append(_above(" ".join(chains.pop()) or NONE, below))
    ((top,),) = open_
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
        tuple(one.label for one in every),
        tuple((one.start, one.end) for one in every),
    )


def tree_of(shape: Shape, words: Sequence[str], labels: Sequence[str] | None = None) -> Node:
    """The tree over these words, rooted in `ROOT`, each with the part of speech `XX`; nodes labelled `NONE` left out.

    `labels`: others than those of the shape.
    """
    labels = shape.labels if labels is None else labels
    built: list[tuple[Node | Leaf, ...]] = []
    for number, label in enumerate(labels):
        parts: tuple[Node | Leaf, ...] = ()
        if number < shape.num_words:
            parts = (Leaf(XX, words[number]),)
        elif label != NONE or number == len(labels) - 1:
            parts = tuple(part for child in _labelled_below(shape, labels, number) for part in built[child])
        for name in reversed([] if label == NONE else label.split(" ")):
            parts = (Node(name, parts),)
        built.append(parts)
    return Node(ROOT, built[-1])


def _labelled_below(shape: Shape, labels: Sequence[str], number: int) -> list[int]:
    """The children of a node where those that are labelled `NONE`, other than words, are left out."""
    found, waiting = [], [number]
    while waiting:
        one = waiting.pop()
        if one < shape.num_words or (labels[one] != NONE and one != number):
            found.append(one)
        else:
            waiting += reversed(shape.children[one - shape.num_words])
    return found


def _put_together(below: list[_Open], binary: Binary) -> list[_Open]:
    """The children of a node, two of them unless more are allowed."""
    if binary == "none" or len(below) == 2:
        return below
    if binary == "right":
        first, *others, last = below
        for one in reversed(others):
            last = _above(NONE, [one, last])
        return [first, last]
    first, *others, last = below
    for one in others:
        first = _above(NONE, [first, one])
    return [first, last]


def _above(label: str, below: list[_Open]) -> _Open:
    height = 1 + max(child.height for child in below)
    return _Open(label, below[0].start, below[-1].end, height, below)
