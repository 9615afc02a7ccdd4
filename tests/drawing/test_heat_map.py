import math

import pytest

from elman.drawing.heat_map import HOTTEST, Word, heat, heat_map, mean_bits, most_surprising


def test_heat_runs_from_nought_to_one():
    assert [heat(bits) for bits in (-1.0, 0.0, HOTTEST / 2, HOTTEST, 99.0)] == [0, 0, 0.5, 1, 1]


def test_words_carry_heat_bits_and_a_tooltip():
    html = heat_map([Word("cat", 4.0)])
    assert 'style="--heat:0.250"' in html
    assert 'data-bits="4.0"' in html
    assert 'title="cat: 4.00 bits, probability 1 in 16"' in html


def test_end_of_sentence_ends_the_line():
    assert "<br>" in heat_map([Word("<eos>", 1.0)])
    assert "<br>" not in heat_map([Word("a", 1.0), Word("b", 2.0)])


@pytest.mark.parametrize("bits", [1.0, None, math.nan])
def test_words_are_escaped(bits):
    html = heat_map([Word("\"><script>alert('x')</script>", bits)])
    assert "<script" not in html
    assert html.count("<span") == 1


def test_unscored_words_have_no_heat():
    words = [Word("a", None), Word("b", math.nan), Word("c", 3.0), Word("d", 5.0)]
    assert heat_map(words).count("--heat") == 2
    assert mean_bits(words) == 4.0
    assert most_surprising(words, 1) == [("d", 5.0)]


def test_a_heat_map_of_no_scored_word_is_drawn():
    assert math.isnan(mean_bits([]))
    assert most_surprising([]) == []
