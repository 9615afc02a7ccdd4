"""White-space words of one text under tokens of several kinds."""

import numpy as np
import pytest

from elman.config.text import TextOptions
from elman.data.text.passages import passages
from elman.data.text.utf8 import Line
from elman.data.text.vocabulary import EOS
from elman.errors import UserError
from elman.tasks.text.comparison import Word, Words, require_same_words, shared, without_open_end, words_of
from support.pairwise import every_pair

LINES = [" \n", " Don't  stop, he said; \n", "\n", " well-beloved 3.14 o'er. \n"]
RAW = TextOptions(tokenisation="raw")


SPACED = ["Oui\u00a0! 10\u202f000 \u3000\n", "\u3000non\u2003si\u00e0\n", "fin\n"]


def read(options, lines=LINES):
    tokens = [token for one in passages([Line(line, True) for line in lines], options) for token in one.words]
    return tokens, words_of(tokens, lines, options)


@every_pair(eos=["line", "paragraph", "none"], kind=["words", "raw", "characters", "bytes"], lowercase=[False, True])
def test_every_kind_of_tokens_makes_up_the_same_words(kind, eos, lowercase):
    tokens, words = read(TextOptions(tokenisation=kind, eos=eos, lowercase=lowercase))
    written = "".join(LINES).split()
    assert [word.text for word in words] == ([word.lower() for word in written] if lowercase else written)
    assert [index for word in words for index in range(word.tokens.start, word.tokens.stop)] == [*range(len(tokens))]
    ends = {"line": ["said;", "o'er."], "paragraph": ["said;", "o'er."], "none": []}[eos]
    assert [word.text for word in words if word.ends] == ends


@pytest.mark.parametrize("kind", ["words", "characters", "bytes"])
def test_white_space_beyond_ascii_separates_what_is_spelt_and_is_a_part_of_words(kind):
    tokens, words = read(TextOptions(tokenisation=kind), SPACED)
    apart = ["Oui", "!", "10", "000", "non", "si\u00e0", "fin"]
    whole = ["Oui\u00a0!", "10\u202f000", "\u3000", "\u3000non\u2003si\u00e0", "fin"]
    assert [word.text for word in words] == (whole if kind == "words" else apart)
    assert [word.text for word in words if word.ends] == (
        [*whole[2:]] if kind == "words" else ["000", "si\u00e0", "fin"]
    )
    assert [index for word in words for index in range(word.tokens.start, word.tokens.stop)] == [*range(len(tokens))]


def test_line_ends_before_the_first_word_belong_to_it():
    tokens = [EOS, "a", EOS]
    assert words_of(tokens, ["\n", "a\n"], TextOptions()) == [Word("a", True, slice(0, 3))]


def words(texts, log_probs, unknown, types=2, ends=False):
    parts = [Word(text, ends, slice(n, n + 1)) for n, text in enumerate(texts)]
    return Words(parts, np.array(log_probs, dtype=float), np.array(unknown), types, np.full(len(parts), int(ends)))


def test_other_words_are_never_compared():
    same = words("ab", [0, 0], [0, 0])
    require_same_words(same, same, ("A", "B"))
    for other, message in (
        (words("aB", [0, 0], [0, 0]), "A and B read other words: word 2 is 'b' to the one and 'B' to the other"),
        (words("ab", [0, 0], [0, 0], ends=True), "read other line ends: after word 1"),
        (words("a", [0], [0]), "A reads 2 words and B 1"),
    ):
        with pytest.raises(UserError, match=message):
            require_same_words(same, other, ("A", "B"))


def test_a_last_word_that_ends_for_one_run_alone_is_left_out():
    closed, opened = words("abc", [-1, -2, -3], [0, 0, 1], ends=True), words("ab", [-1, -2], [0, 1], ends=True)
    last = Word("c", False, slice(2, 3))
    other = closed._replace(words=[*closed.words[:-1], last], line_ends=np.array([1, 1, 0]))
    found = without_open_end(closed, other)
    assert [[word.text for word in one.words] for one in found] == [["a", "b"]] * 2
    assert [one.line_ends.tolist() for one in found] == [[1, 1]] * 2
    for same in ((closed, closed), (closed, opened), (other, other)):
        assert without_open_end(*same) == same


def test_unknown_words_are_left_out_for_both_or_share_the_probability():
    a, b = words("abc", [-1, -2, -3], [0, 2, 0], types=4), words("abc", [-4, -5, -6], [1, 0, 0], types=3)
    found = shared((a, b), "exclude")
    assert ([one.tolist() for one in found.log_probs], found.left_out) == ([[-3], [-6]], 2)
    found = shared((a, b), "spread").log_probs
    np.testing.assert_allclose(found[0], [-1, -2 - 2 * np.log(4), -3])
    np.testing.assert_allclose(found[1], [-4 - np.log(3), -5, -6])
    np.testing.assert_allclose(shared((a, b), "spread", types=10).log_probs[1], [-4 - np.log(10), -5, -6])
    assert shared((a, b), "score").log_probs[0].tolist() == [-1, -2, -3]
    c = words("abc", [-7, -8, -9], [0, 0, 1])
    assert shared((a, b, c), "exclude").left_out == 3


def test_the_word_eos_in_a_text_is_an_end_of_the_word_before_it():
    tokens = ["a", EOS, "b", EOS, EOS, "c"]
    expected = [Word("a", True, slice(0, 2)), Word("b", True, slice(2, 5)), Word("c", False, slice(5, 6))]
    assert words_of(tokens, [f"a {EOS} b {EOS}\n", "c"], TextOptions()) == expected
