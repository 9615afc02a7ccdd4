"""From the linear form back to a tree, whatever a model wrote."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from elman.data.trees import ROOT, Leaf, Node


class Repaired(NamedTuple):
    """A tree.

    Attributes:
        tree: over all the words given, rooted in `ROOT`.
        repairs: how many symbols had to be added or dropped; 0 where the line was well formed.

    """

    tree: Node
    repairs: int


def bracket(symbol: str) -> tuple[str, str]:
    """The side, `(` or `)`, and the label of a bracket; of a symbol for a word no side, and itself."""
    return (symbol[0], symbol[1:]) if len(symbol) > 1 and symbol[0] in "()" else ("", symbol)


def to_tree(symbols: Iterable[str], words: Sequence[str]) -> Repaired:
    """A tree over `words` from symbols `(LABEL`, `)LABEL` and, for a word, anything else.

    What does not fit is repaired by this rule, each symbol counted:

    1. `)LABEL` closes the nearest open LABEL, and first what is open within it; where none is open it is dropped;
    2. a symbol for a word takes the next word; when all are taken it is dropped;
    3. at the end what is open is closed; words left over go to the end of the outermost constituent, if there are
       several of the last;
    4. constituents without a word are dropped.

    """
    top: list[Node | Leaf] = []
    open_: list[tuple[str, list[Node | Leaf]]] = []
    used = repairs = 0

    def close() -> None:
        label, children = open_.pop()
        (open_[-1][1] if open_ else top).append(Node(label, tuple(children)))

    for symbol in symbols:
        side, label = bracket(symbol)
        if side == "(":
            open_.append((label, []))
        elif side == ")":
            depth = next((n for n, (name, _) in enumerate(reversed(open_), 1) if name == label), 0)
            repairs += depth - 1 if depth else 1
            for _ in range(depth):
                close()
        elif used < len(words):
            (open_[-1][1] if open_ else top).append(Leaf(symbol, words[used]))
            used += 1
        else:
            repairs += 1
    repairs += len(open_) + len(words) - used
    while open_:
        close()
    left = tuple(Leaf("XX", word) for word in words[used:])
    if left and top and isinstance(top[-1], Node):
        top[-1] = Node(top[-1].label, top[-1].children + left)
    else:
        top += left
    whole = Node(ROOT, tuple(top))
    tree, dropped = _without_hollow(whole)
    return Repaired(tree, repairs + dropped)


def _without_hollow(tree: Node) -> tuple[Node, int]:
    """A tree without the constituents that have no word, and how many those were."""
    children: list[Node | Leaf] = []
    dropped = 0
    for child in tree.children:
        if isinstance(child, Node):
            kept, below = _without_hollow(child)
            dropped += below + (not kept.children)
            children += [kept] if kept.children else []
        else:
            children.append(child)
    return Node(tree.label, tuple(children)), dropped
