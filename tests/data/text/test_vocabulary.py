from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from elman.data.text.vocabulary import EOS, UNK, Vocabulary
from elman.errors import UserError
from elman.files import sha256_file


def test_how_a_text_was_written_is_known_by_its_vocabulary():
    def written(*words):
        found = Vocabulary(words, (1,) * len(words))
        return found.in_lower_case, found.has_n_for_numbers, found.marks_apart

    assert written("the", "cat", "I") == (True, False, True)
    assert written("the", "Cat") == (False, False, True)
    assert written("the", "N", "7") == (True, True, True)
    assert written("the", "N", "77") == (True, False, True)
    assert written("the", "77") == (True, False, True)
    assert written("the", "cat,", "dog;", ",") == (True, False, False)


def test_falling_count_then_first_appearance():
    vocabulary = Vocabulary.from_counts(Counter({"b": 2, "a": 2, "c": 5, EOS: 3}))
    assert vocabulary.words == ("c", EOS, "b", "a")
    assert vocabulary.counts == (5, 3, 2, 2)
    assert (vocabulary.eos, vocabulary.unk) == (1, None)


def test_rare_words_are_counted_for_unk():
    vocabulary = Vocabulary.from_counts(Counter({"a": 5, "b": 4, "c": 1, "d": 1, EOS: 2}), min_count=2)
    assert dict(zip(vocabulary.words, vocabulary.counts, strict=True)) == {"a": 5, "b": 4, EOS: 2, UNK: 2}


def test_max_size_counts_eos_and_unk():
    counts = Counter({"a": 5, "b": 4, "c": 3, "d": 1, EOS: 2})
    vocabulary = Vocabulary.from_counts(counts, max_size=4)
    assert set(vocabulary.words) == {"a", "b", EOS, UNK}
    assert sum(vocabulary.counts) == sum(counts.values())
    assert len(Vocabulary.from_counts(counts, max_size=5)) == 5
    assert Vocabulary.from_counts(counts, max_size=5).unk is None


@pytest.mark.parametrize(("minimum", "add", "unk"), [(1, False, False), (2, False, True), (1, True, True)])
def test_when_unk_is_there(minimum, add, unk):
    vocabulary = Vocabulary.from_counts(Counter({"a": 5, "b": 4}), min_count=minimum, add_unk=add)
    assert (vocabulary.unk is not None) == unk


def test_eos_can_be_left_out():
    assert Vocabulary.from_counts(Counter("abc"), add_eos=False).eos is None
    assert Vocabulary.from_counts(Counter(["a", "b", EOS]), add_eos=False).eos is not None


@given(st.lists(st.sampled_from("abcdefgh"), min_size=2), st.integers(1, 4), st.integers(3, 9))
def test_counts_of_a_vocabulary_add_up_to_the_words_read(words, minimum, size):
    counts = Counter(words)
    try:
        vocabulary = Vocabulary.from_counts(counts, minimum, size)
    except UserError:
        return
    assert sum(vocabulary.counts) == len(words)
    assert len(vocabulary) <= size
    assert list(vocabulary.counts) == sorted(vocabulary.counts, reverse=True)


def test_encode_and_decode():
    vocabulary = Vocabulary.from_counts(Counter("abca"), add_unk=True)
    ids = vocabulary.encode(["a", "never", "c"])
    assert ids.dtype == np.int32
    assert vocabulary.decode(ids) == ["a", UNK, "c"]


def test_unknown_word_without_unk():
    with pytest.raises(UserError) as error:
        Vocabulary.from_counts(Counter("ab")).encode(["a", "zebra"])
    assert str(error.value) == (
        "the word 'zebra' is not in the vocabulary of 3 words, which has no <unk>; "
        "train with min_count = 2 or more to have one"
    )


def test_one_word_is_too_few():
    with pytest.raises(UserError) as error:
        Vocabulary.from_counts(Counter({"a": 7, EOS: 2, UNK: 1}))
    assert str(error.value) == (
        "the text has only the word 'a' besides <eos> and <unk>; a vocabulary needs two words or more"
    )


def test_too_few_words_left():
    with pytest.raises(UserError) as error:
        Vocabulary.from_counts(Counter({"a": 7, "b": 1}), min_count=5)
    assert str(error.value) == (
        "of 2 words 1 are left with min_count = 5 and max_vocabulary = none; a vocabulary needs two words or "
        "more: lower min_count or raise max_vocabulary"
    )


_WORDS = st.lists(st.text(min_size=1), min_size=2, unique=True)


@given(_WORDS.filter(lambda words: all(c < "\ud800" or c > "\udfff" for word in words for c in word)))
def test_a_vocabulary_saved_and_loaded_is_the_same(tmp_path_factory, words):
    path = tmp_path_factory.mktemp("vocabulary") / "vocabulary.tsv"
    vocabulary = Vocabulary(tuple(words), tuple(range(len(words), 0, -1)))
    vocabulary.save(path)
    assert Vocabulary.load(path) == vocabulary
    assert sha256_file(path) == vocabulary.digest


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a\t2\nb 1\n", ":2: expected a word, a tab and its count, found 'b 1'"),
        ("a\t2\nb\t-1\n", r":2: expected a word, a tab and its count, found 'b\t-1'"),
        ("\t2\n", r":1: expected a word, a tab and its count, found '\t2'"),
        ("a\t2\nb\t1\na\t1\n", ":3: the word 'a' appears twice; every word has one line"),
        ("", ": the vocabulary is empty; restore the file from its run"),
    ],
)
def test_a_malformed_vocabulary_is_named_by_line(tmp_path, text, message):
    path = tmp_path / "vocabulary.tsv"
    path.write_text(text)
    with pytest.raises(UserError) as error:
        Vocabulary.load(path)
    assert str(error.value) == f"{path}{message}"


def test_not_there_or_not_utf8(tmp_path):
    path = tmp_path / "vocabulary.tsv"
    with pytest.raises(UserError) as error:
        Vocabulary.load(path)
    assert str(error.value).startswith(f"{path}: cannot be read (No such file or directory); ")
    path.write_bytes(b"a\t1\n\xff\t2\n")
    with pytest.raises(UserError) as error:
        Vocabulary.load(path)
    assert str(error.value).startswith(f"{path}: not UTF-8 at byte 4 (0xff); ")
