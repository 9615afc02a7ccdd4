"""Edit distance: how many symbols of a target are wrong, and whether all are right."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np

from elman.evaluation.statistics import Floats, Measure

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
    return Measure(
        "error rate", np.array(rows), _quotient, f"error rate: edits per 100 {unit} of the nearest reference"
    )


def _quotient(sums: Floats) -> float:
    return float(sums[0] / sums[1]) if sums[1] else float("nan")
