"""Tags of the words of constituency trees: parts of speech, or the chunks of their lowest constituents."""

import re
from typing import Literal

from elman.data.trees.brackets import ROOT, Leaf, Node, bare, leaves, read_trees, walk
from elman.kinds.tags.columns import TaggedSentence

OUTSIDE = "O"  # the tag of words in no chunk
_CHUNK = re.compile(r"O|[BI]-.+", re.DOTALL)


def is_chunk_tag(tag: str) -> bool:
    """Whether a tag is one of chunks in the form IOB: `B-TYPE`, `I-TYPE` or `O`."""
    return _CHUNK.fullmatch(tag) is not None


def read_bank(text: str, name: str, tags: Literal["parts", "chunks"]) -> list[TaggedSentence]:
    """The sentences of a treebank in brackets; raises UserError as `read_trees` does."""
    of = parts if tags == "parts" else chunks
    return [TaggedSentence([leaf.word for leaf in leaves(tree)], of(tree)) for tree in read_trees(text, name)]


def parts(tree: Node) -> list[str]:
    return [leaf.tag for leaf in leaves(tree)]


def chunks(tree: Node) -> list[str]:
    """The chunk of every word in the form IOB2 (Ramshaw & Marcus 1995; Tjong Kim Sang & Veenstra 1999).

    A chunk is a constituent whose children are all words, by its label without functions: its first word has the tag
    `B-LABEL`, the others `I-LABEL`. Words in none have `O`; the root is none.
    """
    found, within = list[str](), OUTSIDE
    for side, one in walk(tree):
        if isinstance(one, Leaf):
            found.append(within)
            within = within.replace("B-", "I-", 1)
        else:
            is_chunk = side == "(" and one.label != ROOT and all(isinstance(child, Leaf) for child in one.children)
            within = f"B-{bare(one.label)}" if is_chunk else OUTSIDE
    return found
