from hypothesis import given
from hypothesis import strategies as st

from elman.tasks.text.rescoring import edit_distance

words = st.lists(st.sampled_from("abc"), max_size=6)


def recursive(one, other):
    """The definition."""
    if not one or not other:
        return len(one) + len(other)
    replaced = recursive(one[1:], other[1:]) + (one[0] != other[0])
    return min(recursive(one[1:], other) + 1, recursive(one, other[1:]) + 1, replaced)


@given(words, words)
def test_edit_distance_is_the_fewest_edits(one, other):
    assert edit_distance(one, other) == recursive(one, other)
