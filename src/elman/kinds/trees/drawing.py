"""Trees for the report: what each node was taken for, beside the right tree."""

from collections import Counter
from collections.abc import Sequence

from elman.data.trees.brackets import ROOT, Leaf, Node, walk
from elman.drawing.constituents import Constituent, TreeDrawing

Spans = list[tuple[str, int, int, int]]


def constituents(tree: Node) -> Spans:
    """Label, first word, word after the last and height of every node but the root, from the top downwards."""
    found: Spans = []
    open_ = [(0, 0, 0)]  # place in `found`, first word, height of what is within it so far
    word = 0
    for side, one in walk(tree):
        if isinstance(one, Leaf):
            word += 1
        elif side == "(":
            open_.append((len(found), word, 0))
            if one.label != ROOT:
                found.append((one.label, word, word, 0))
        else:
            place, start, height = open_.pop()
            if one.label != ROOT:
                found[place] = (one.label, start, word, height + 1)
            above, first, highest = open_[-1]
            open_[-1] = (above, first, max(highest, height + 1))
    return found


def drawing_of(found: Node, right: Node, words: Sequence[str], *, given: bool = False) -> TreeDrawing:
    """A predicted tree, its nodes compared with the right tree; `given`: the tree was given, only labels are predicted.

    A node is right where the right tree has one with its label over the same words; of several in a chain with one
    label as many as that tree has.
    """
    truth, names = constituents(right), dict[tuple[int, int], list[str]]()
    for label, start, end, _ in truth:
        names.setdefault((start, end), []).append(label)
    left = Counter((label, start, end) for label, start, end, _ in truth)
    nodes = []
    for label, start, end, height in constituents(found):
        is_right = left[label, start, end] > 0
        left[label, start, end] -= is_right
        over = "" if is_right else " ".join(names.get((start, end), ()))
        nodes.append(Constituent(label, start, end, height, is_right, over))
    kept = left.elements() if not given else ()
    missed = [f"{label} over {_shown(words[start:end])}" for label, start, end in kept]
    return TreeDrawing(list(words), nodes, missed, given)


def _shown(words: Sequence[str], most: int = 4) -> str:
    """Words between quotation marks, only the first and the last ones of many."""
    text = " ".join(words) if len(words) <= most else f"{' '.join(words[:2])} ... {words[-1]}"
    return f"“{text}”"
