"""A constituency tree as nodes that each have a label: chains of one child in one node, and binary if it is asked for.

The label of a node is that of its constituent, or of several in a chain of single children, the outermost first and a
space between (`S VP`). A node that only makes the tree binary, and a word that is no constituent by itself, have the
label `NONE`. Parts of speech are not kept.
"""

import dataclasses
from collections import deque
from collections.abc import Sequence
from typing import Literal

from elman.data.trees.brackets import ROOT, XX, Leaf, Node, bare, fold

NONE = "<none>"  # the label of nodes that are no constituents
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

    `labels`: others than those of the shape.
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
