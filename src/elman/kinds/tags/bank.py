"""Tags of the words of constituency trees: parts of speech, or the chunks of their lowest constituents."""

import re
from collections.abc import Iterator
from typing import Literal

from elman.data.trees.brackets import ROOT, Leaf, Node, bare, leaves, read_trees
from elman.kinds.tags.columns import TaggedSentence

OUTSIDE = "O"
"""The tag of words in no chunk."""


_CHUNK = re.compile(r"O|[BI]-.+", re.DOTALL)


def is_chunk_tag(tag: str) -> bool:
    """Whether a tag is one of chunks in the form IOB: `B-TYPE`, `I-TYPE` or `O`."""
    return _CHUNK.fullmatch(tag) is not None


def read_bank(text: str, name: str, tags: Literal["parts", "chunks"]) -> list[TaggedSentence]:
    """The sentences of a treebank in brackets; raises UserError as `read_trees` does."""
    of = parts if tags == "parts" else chunks
    return [TaggedSentence([leaf.word for leaf in leaves(tree)], of(tree)) for tree in read_trees(text, name)]


def parts(tree: Node) -> list[str]:
    """The part of speech of every word."""
    return [leaf.tag for leaf in leaves(tree)]


def chunks(tree: Node) -> list[str]:
    """The chunk of every word in the form IOB2 (Ramshaw & Marcus 1995; Tjong Kim Sang & Veenstra 1999).

    A chunk is a constituent whose children are all words, by its label without functions: its first word has the tag
    `B-LABEL`, the others `I-LABEL`. Words in none have `O`; the root is none.
    """
    return list(_tags(tree))


def _tags(node: Node) -> Iterator[str]:
    if node.label != ROOT and all(isinstance(child, Leaf) for child in node.children):
        label = bare(node.label)
        yield f"B-{label}"
        yield from [f"I-{label}"] * (len(node.children) - 1)
        return
    for child in node.children:
        if isinstance(child, Leaf):
            yield OUTSIDE
        else:
            yield from _tags(child)
