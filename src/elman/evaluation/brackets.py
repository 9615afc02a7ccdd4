"""Bracket F1 of constituency trees, as evalb computes it with the parameters of Collins."""

from collections import Counter
from collections.abc import Sequence

import numpy as np

from elman.errors import UserError
from elman.evaluation.statistics import Measure, f1, precision, recall
from elman.kinds.pairs.trees import ROOT, Leaf, Node, bare, to_tree

_DASHES_AND_QUOTES = "\u2013 \u2014 \u2018 \u2019 \u201c \u201d \u2026"
PUNCTUATION = frozenset(f", . ? ! ; : -- .. ... `` '' \" ' {_DASHES_AND_QUOTES}".split())
"""Words that brackets do not count: those that the Penn Treebank tags as `,`, `.`, `:` and quotation marks."""

Brackets = Counter[tuple[str, int, int]]
"""Label, first word and word after the last; words of punctuation are not counted."""

SIGNATURE = "brackets without ROOT, over words without punctuation, functions cut off, PRT = ADVP, repaired"


def brackets(tree: Node) -> Brackets:
    """The brackets of a tree as evalb counts them.

    `ROOT` and constituents of punctuation alone have no bracket; functions are cut off (`NP-SBJ` is `NP`), and `PRT` is
    `ADVP`. A bracket that occurs twice, as in unary chains, counts twice.
    """
    found: Brackets = Counter()
    _collect(tree, 0, found)
    return found


def tree_measures(hypotheses: Sequence[str], references: Sequence[str], sentences: Sequence[str]) -> list[Measure]:
    """Labelled F1, precision and recall, unlabelled F1, whole trees found, and well-formed lines (percent).

    Hypotheses and references are linear trees, sentences words at spaces. A hypothesis is repaired where it needs it
    (`elman.kinds.pairs.trees.to_tree`); a reference that does not fit its sentence raises UserError.
    """
    rows: dict[str, list[list[float]]] = {"labelled": [], "unlabelled": [], "whole": [], "well-formed": []}
    for number, (hypothesis, reference, sentence) in enumerate(
        zip(hypotheses, references, sentences, strict=True), start=1
    ):
        gold = to_tree(reference.split(), sentence.split())
        if gold.repairs:
            raise UserError(f"the reference tree of line {number} does not fit its {len(sentence.split())} words")
        ours = to_tree(hypothesis.split(), sentence.split())
        true, found = brackets(gold.tree), brackets(ours.tree)
        rows["labelled"].append(_counts(found, true))
        rows["unlabelled"].append(_counts(_unlabelled(found), _unlabelled(true)))
        rows["whole"].append([float(found == true), 1])
        rows["well-formed"].append([float(ours.repairs == 0), 1])
    statistics = {name: np.array(counted) for name, counted in rows.items()}
    return [
        Measure("bracket F1", statistics["labelled"], f1, SIGNATURE),
        Measure("precision", statistics["labelled"], precision, SIGNATURE),
        Measure("recall", statistics["labelled"], recall, SIGNATURE),
        Measure("unlabelled F1", statistics["unlabelled"], f1, SIGNATURE),
        Measure("whole trees", statistics["whole"], precision, SIGNATURE),
        Measure("well-formed", statistics["well-formed"], precision, "lines that needed no repair"),
    ]


def _collect(tree: Node | Leaf, start: int, found: Brackets) -> int:
    """Count the brackets of a tree that begins at word `start`; the word after it."""
    if isinstance(tree, Leaf):
        return start + (tree.word not in PUNCTUATION)
    end = start
    for child in tree.children:
        end = _collect(child, end, found)
    if end > start and tree.label != ROOT:
        label = bare(tree.label)
        found["ADVP" if label == "PRT" else label, start, end] += 1
    return end


def _unlabelled(found: Brackets) -> Brackets:
    plain: Brackets = Counter()
    for (_, start, end), count in found.items():
        plain["", start, end] += count
    return plain


def _counts(found: Brackets, true: Brackets) -> list[float]:
    return [(found & true).total(), found.total(), true.total()]
