"""What is shown of a split."""

import pytest

from elman.tasks.splits import shown

SENTENCES = [["word"] * length for length in (3, 5, 6, 9, 10, 11, 30)]


@pytest.mark.parametrize(
    ("count", "longest", "limit", "places"),
    [(9, 10, None, [2, 3, 4]), (2, 10, None, [2, 3]), (9, 10, 9, [2, 3]), (3, 2, None, [0, 1, 2]), (9, 10, 5, [0, 1])],
)
def test_samples_are_of_sentences_of_middle_length_if_there_are_any(count, longest, limit, places):
    assert shown(SENTENCES, count, longest, limit) == places
