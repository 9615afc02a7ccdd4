"""Unknown words told apart: numbers beyond the vocabulary for reading, `<unk>` for what is predicted."""

import numpy as np
import pytest

from elman.config.text import TextOptions
from elman.data.batches import stack_sequences
from elman.data.sentences import LabelledSymbols
from elman.data.text.corpus import open_corpus
from elman.data.text.sentences import spelled_sentences, spelled_split
from elman.data.text.vocabulary import UNK, Vocabulary
from elman.data.windows import EvaluationWindows

OPTIONS = TextOptions(min_count=2, lowercase=True)


def corpus(folder):
    for name, text in {"train": "a a a b b c\n", "valid": "a b\n", "test": "a Dog b c dog a\n"}.items():
        (folder / f"{name}.txt").write_text(text)
    return open_corpus(folder, OPTIONS)


def test_unknown_words_of_a_split_have_numbers_of_their_own(tmp_path):
    found = corpus(tmp_path)
    split, plain = spelled_split(found, "test"), found.split("test")
    size, unk = len(found.vocabulary), found.vocabulary.unk
    assert split.unknown_words
    read = [*found.vocabulary.words, *split.unknown_words]
    assert [read[number] for number in split.inputs] == ["a", "dog", "b", "c", "dog", "a", "<eos>"]
    np.testing.assert_array_equal(split.tokens, plain.tokens)
    np.testing.assert_array_equal(np.where(split.inputs >= size, unk, split.inputs), plain.tokens)
    assert spelled_split(found, "valid").inputs is None


def test_a_folder_with_a_test_split_alone(tmp_path):
    vocabulary = corpus(tmp_path).vocabulary
    (tmp_path / "only").mkdir()
    (tmp_path / "only/test.txt").write_text("a fox\n")
    other = open_corpus(tmp_path / "only", OPTIONS, vocabulary=vocabulary)
    assert spelled_split(other, "test").unknown_words == ("fox",)


def test_inputs_are_read_and_tokens_predicted():
    tokens, inputs = np.array([1, 2, 0, 2]), np.array([1, 5, 0, 6])
    (batch, _), *_ = EvaluationWindows(tokens, 0, length=10, inputs=inputs)
    assert batch.inputs[:, 0].tolist() == [0, 1, 5, 0]
    assert batch.targets[:, 0].tolist() == tokens.tolist()
    beside, _ = stack_sequences([tokens], 0, [inputs])
    assert beside.inputs[:, 0].tolist() == [0, 1, 5, 0]
    assert beside.targets[:, 0].tolist() == tokens.tolist()


def test_sentences_share_their_numbers(tmp_path):
    vocabulary = corpus(tmp_path).vocabulary
    numbers, words = spelled_sentences([["a", "fox"], ["fox", "<unk>"]], vocabulary)
    size = len(vocabulary)
    assert words == ["fox"]
    assert [one.tolist() for one in numbers] == [[vocabulary.ids["a"], size], [size, vocabulary.unk]]


@pytest.mark.parametrize("lowercase", [False, True])
def test_parentheses_are_read_as_the_vocabulary_writes_them(lowercase):
    """As the Penn Treebank's token where the vocabulary has that and no parenthesis, otherwise as they are."""
    left, right = ("-lrb-", "-rrb-") if lowercase else ("-LRB-", "-RRB-")
    labels = Vocabulary((UNK,), (1,))

    def read(*known):
        words = Vocabulary((UNK, *known), (1,) * (1 + len(known)))
        return LabelledSymbols(words, labels, TextOptions(lowercase=lowercase)).folded(["(", "a", ")", "Zebra"])

    last = "zebra" if lowercase else "Zebra"
    assert read("a", left, right) == [left, "a", right, last]
    assert read("a", left) == [left, "a", ")", last]
    assert read("a", "(", left, right) == ["(", "a", right, last]
    assert read("a") == ["(", "a", ")", last]
