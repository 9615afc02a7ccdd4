"""Word error rate: the fewest words to insert, delete or replace."""

from collections.abc import Iterable, Sequence


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


def word_error_rate(pairs: Iterable[tuple[Sequence[str], Sequence[str]]]) -> float:
    """Errors in all over words of the references in all; pairs are (hypothesis, reference). NaN without words."""
    errors = words = 0
    for hypothesis, reference in pairs:
        errors, words = errors + edit_distance(hypothesis, reference), words + len(reference)
    return errors / words if words else float("nan")
