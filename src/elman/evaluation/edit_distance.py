"""The errors of a hypothesis: the fewest words to insert, delete or replace."""

from collections.abc import Sequence


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
