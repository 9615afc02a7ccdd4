"""Trees that a parser must exceed: right- or left-branching ones."""

from collections import Counter
from collections.abc import Sequence

from elman.data.lines import fields
from elman.data.trees.brackets import XX, Leaf, Node, linear, to_tree
from elman.evaluation.measures import PUNCTUATION, brackets


def branching(
    trees: Sequence[str], train_sentences: Sequence[str], sentences: Sequence[str], *, left: bool = False
) -> list[str]:
    """Right- or left-branching linear trees over sentences, with the labels that such constituents have in training.

    The labels are the most frequent ones; `trees`: of the training sentences, in linear form.
    """
    outer, inner = _labels(trees, train_sentences, left=left)
    return [" ".join(linear(_branching(fields(text), outer, inner, left=left))) for text in sentences]


def _branching(words: list[str], outer: str, inner: str, *, left: bool) -> Node:
    """A tree in which the sister of a word is all on one side of it; final punctuation attaches to the top."""
    marks = 1 if len(words) > 1 and words[-1] in PUNCTUATION else 0
    leaves = [Leaf(XX, word) for word in words]
    first, end = leaves[: len(leaves) - marks], leaves[len(leaves) - marks :]
    order = first if left else first[::-1]
    rest: tuple[Node | Leaf, ...] = (order[0],)
    for leaf in order[1:]:
        whole = rest[0] if len(rest) == 1 else Node(inner, rest)
        rest = (whole, leaf) if left else (leaf, whole)
    return Node(outer, (*rest, *end))


def _labels(trees: Sequence[str], sentences: Sequence[str], *, left: bool) -> tuple[str, str]:
    """The most frequent label of whole sentences, and of other constituents that end (left: begin) with their sentence.

    Either stands for the other where the trees have none of its kind, and `S` for both.
    """
    outer: Counter[str] = Counter()
    inner: Counter[str] = Counter()
    for text, sentence in zip(trees, sentences, strict=True):
        found = brackets(to_tree(fields(text), fields(sentence)).tree)
        end = max((stop for _, _, stop in found), default=0)
        for (label, start, stop), count in found.items():
            if start == 0 and stop == end:
                outer[label] += count
            elif start == 0 if left else stop == end:
                inner[label] += count
    first, second = (one.most_common(1)[0][0] if one else "S" for one in (outer or inner, inner or outer))
    return first, second
