"""Trees for the report: what each node was taken for, beside the right tree."""

from collections import Counter
from collections.abc import Sequence

from elman.data.trees.brackets import ROOT, Leaf, Node, walk
from elman.drawing.constituents import Constituent, TreeDrawing

Spans = list[tuple[str, int, int, int]]


def constituents(tree: Node) -> Spans:
    """Label, first word, word after the last and height of every node but the root, from the top downwards."""
    found: Spans = []
    open_ = [(0, 0)]
    word = 0
    heights = [0]
    for side, one in walk(tree):
        if isinstance(one, Leaf):
            word += 1
        elif side == "(":
            open_.append((len(found), word))
            heights.append(0)
            if one.label != ROOT:
                found.append((one.label, word, word, 0))
        else:
            (place, start), height = open_.pop(), heights.pop() + 1
            heights[-1] = max(heights[-1], height)
            if one.label != ROOT:
                found[place] = (one.label, start, word, height)
    return found


def drawing_of(found: Node, right: Node, words: Sequence[str], *, given: bool = False) -> TreeDrawing:
    """A tree that was found, each of its nodes compared with those of the right tree; `given`: only labels were found.

    A node is right where the right tree has one with its label over the same words; of several in a chain with one
    label as many as that tree has.
    """
    truth = constituents(right)
    left = Counter((label, start, end) for label, start, end, _ in truth)
    nodes = []
    for label, start, end, height in constituents(found):
        is_right = left[label, start, end] > 0
        left[label, start, end] -= is_right
        over = " ".join(name for name, first, after, _ in truth if (first, after) == (start, end))
        nodes.append(Constituent(label, start, end, height, is_right, "" if is_right else over))
    kept = left.elements() if not given else ()
    missed = [f"{label} over {_shown(words[start:end])}" for label, start, end in kept]
    return TreeDrawing(list(words), nodes, missed, given)


def _shown(words: Sequence[str], most: int = 4) -> str:
    """Words between quotation marks, only the first and the last ones of many."""
    text = " ".join(words) if len(words) <= most else f"{' '.join(words[:2])} ... {words[-1]}"
    return f"“{text}”"
