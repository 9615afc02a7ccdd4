"""Measures of output: brackets of constituency trees, edit distance and whole outputs that are right.

Brackets count as evalb counts them with the parameters of Collins.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np

from elman.data.lines import fields
from elman.data.trees.brackets import ROOT, Leaf, Node, bare, to_tree, walk
from elman.errors import UserError
from elman.evaluation.statistics import Floats, Measure, f1, precision, recall

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
    begun, word = list[int](), 0
    for side, one in walk(tree):
        if isinstance(one, Leaf):
            word += one.word not in PUNCTUATION
        elif side == "(":
            begun.append(word)
        elif (start := begun.pop()) < word and one.label != ROOT:
            label = bare(one.label)
            found["ADVP" if label == "PRT" else label, start, word] += 1
    return found


def tree_measures(hypotheses: Sequence[str], references: Sequence[str], sentences: Sequence[str]) -> list[Measure]:
    """Labelled F1, precision and recall, unlabelled F1, whole trees found, and well-formed lines (percent).

    Hypotheses and references are linear trees, sentences words at spaces. A hypothesis is repaired where it needs it
    (`elman.data.trees.brackets.to_tree`); a reference that does not fit its sentence raises UserError.
    """
    rows: dict[str, list[list[float]]] = {"labelled": [], "unlabelled": [], "whole": [], "well-formed": []}
    for number, (hypothesis, reference, sentence) in enumerate(
        zip(hypotheses, references, sentences, strict=True), start=1
    ):
        gold = to_tree(fields(reference), fields(sentence))
        if gold.repairs:
            raise UserError(f"the reference tree of line {number} does not fit its {len(fields(sentence))} words")
        ours = to_tree(fields(hypothesis), fields(sentence))
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


def _unlabelled(found: Brackets) -> Brackets:
    plain: Brackets = Counter()
    for (_, start, end), count in found.items():
        plain["", start, end] += count
    return plain


def _counts(found: Brackets, true: Brackets) -> list[float]:
    return [(found & true).total(), found.total(), true.total()]


Unit = Literal["words", "characters"]


class Item(NamedTuple):
    """A system's output for a source, and the references of which any is right."""

    hypothesis: str
    references: tuple[str, ...]


def edit_distance(hypothesis: Sequence[str], reference: Sequence[str]) -> int:
    """The Levenshtein distance, in O(n m) time and O(m) memory.

    Example:
        >>> edit_distance("the cat sat".split(), "a cat sat down".split())
        2
    """
    before = list(range(len(reference) + 1))
    for row, word in enumerate(hypothesis, start=1):
        now = [row]
        for column, wanted in enumerate(reference, start=1):
            now.append(min(before[column] + 1, now[-1] + 1, before[column - 1] + (word != wanted)))
        before = now
    return before[-1]


def items(hypotheses: Sequence[str], references: Sequence[str], sources: Sequence[str] = ()) -> list[Item]:
    """An item for every line, or, given the sources, for every different one: its lines are alternative references.

    The output of the first line of a source counts.

    Example:
        >>> items(["k a", "d o", "k a"], ["k a", "d o", "k e"], ["ca", "do", "ca"])
        [Item(hypothesis='k a', references=('k a', 'k e')), Item(hypothesis='d o', references=('d o',))]
    """
    found: dict[str, Item] = {}
    keys = sources or [str(place) for place in range(len(references))]
    for key, hypothesis, reference in zip(keys, hypotheses, references, strict=True):
        one = found.get(key, Item(hypothesis, ()))
        found[key] = one._replace(references=(*one.references, reference))
    return list(found.values())


def exact_match(items: Sequence[Item]) -> Measure:
    """The percentage of outputs that equal a reference."""
    right = [[100.0 * (one.hypothesis in one.references), 1] for one in items]
    return Measure("exact match", np.array(right), _quotient, "exact match: percent of whole outputs")


def error_rate(items: Sequence[Item], unit: Unit) -> Measure:
    """Substitutions, deletions and insertions per 100 symbols of the references; it may exceed 100.

    Symbols are words at spaces, or characters. Of several references the one with the fewest edits counts; ties go to
    the first. NaN where the references have no symbols.
    """
    rows = []
    for one in items:
        ours, *theirs = (line.split() if unit == "words" else list(line) for line in (one.hypothesis, *one.references))
        edits, length = min(((edit_distance(ours, right), len(right)) for right in theirs), key=lambda pair: pair[0])
        rows.append([100.0 * edits, length])
    what = "symbols between spaces" if unit == "words" else unit
    return Measure(
        "error rate", np.array(rows), _quotient, f"error rate: edits per 100 {what}, of the nearest reference"
    )


def _quotient(sums: Floats) -> float:
    return float(sums[0] / sums[1]) if sums[1] else float("nan")
