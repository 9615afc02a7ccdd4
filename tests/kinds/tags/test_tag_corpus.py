"""From files to ids: treebanks, chunks, what is held out and what is said, the lexicon by hand."""

import math

import numpy as np
import pytest

from elman.data.text.vocabulary import Vocabulary
from elman.data.trees.brackets import read_trees
from elman.errors import UserError
from elman.kinds.tags.bank import chunks, is_chunk_tag, parts
from elman.kinds.tags.corpus import TagSymbols, gather, open_tags
from elman.kinds.tags.lexicon import Lexicon
from elman.kinds.tags.record import TagOptions
from elman.kinds.trees.corpus import open_trees
from elman.kinds.trees.record import TreeOptions
from support import tagged, treebank

JOHN = "(ROOT (S (NP-SBJ (NNP John) (CC and) (NNP Jane)) (VP (VBZ go) (PP (IN to) (NP (NNP Rome)))) (. .)))"


def test_parts_of_speech_and_chunks_by_hand():
    """A chunk is a constituent whose children are all words; `go`, `to` and `.` stand beside constituents."""
    (tree,) = read_trees(JOHN, "bank")
    assert parts(tree) == ["NNP", "CC", "NNP", "VBZ", "IN", "NNP", "."]
    assert chunks(tree) == ["B-NP", "I-NP", "I-NP", "O", "O", "B-NP", "O"]
    (nested,) = read_trees("(TOP (NP (NP (DT the) (NN end)) (NP=2 (-NONE- *) (NN day))))", "bank")
    assert chunks(nested) == ["B-NP", "I-NP", "B-NP"]
    (root,) = read_trees("(ROOT (NN word) (. .))", "bank")
    assert chunks(root) == ["O", "O"]


@pytest.mark.parametrize(
    ("tag", "is_one"), [("O", True), ("B-NP", True), ("I-X-Y", True), ("B-", False), ("E-NP", False)]
)
def test_tags_of_chunks(tag, is_one):
    assert is_chunk_tag(tag) is is_one


@pytest.mark.parametrize("split", ["hash", "last"])
def test_held_out_sentences_are_those_of_trees(split, tmp_path):
    bank = treebank.write(tmp_path / "bank")
    ours = open_tags(bank, TagOptions(form="trees", valid=12, test=12, split=split))
    theirs = open_trees(bank, TreeOptions(valid=12, test=12, split=split))
    for name in ("train", "valid", "test"):
        assert ours.split(name).sentences == theirs.split(name).sentences
    held = {tuple(words) for name in ("valid", "test") for words in ours.split(name).sentences}
    assert not held & {tuple(words) for words in ours.split("train").sentences}


def test_a_folder_brings_its_splits(tmp_path):
    for name, seed in (("train", 0), ("dev", 1), ("test", 2)):
        tagged.write(tmp_path / f"{name}.txt", count=10, seed=seed)
    corpus = open_tags(tmp_path, TagOptions(min_count=1))
    wanted = {"train": 0, "valid": 1, "test": 2}
    assert {name: split.sentences for name, split in corpus.splits.items()} == {
        name: [words for words, _ in tagged.sentences(10, seed)] for name, seed in wanted.items()
    }


def test_unknown_words_and_tags_are_counted_and_said(tmp_path, capsys):
    (tmp_path / "train.txt").write_text("the X\nThe X\ncat Y\n\ncat Y\n\nthe X\na X\nlong Y\nsentence Y\n")
    (tmp_path / "valid.txt").write_text("the Z\ndog Y\n")
    (tmp_path / "test.txt").write_text("the X\n")
    corpus = open_tags(tmp_path, TagOptions(min_count=2, lowercase=True, max_words=3), symbols=None)
    assert corpus.symbols.words.words == ("the", "cat", "<unk>")
    assert corpus.symbols.labels.words == ("X", "Y", "<unk>")
    facts = corpus.split("valid").facts
    assert (facts["lines"], facts["tokens"], facts["unknown"], facts["unknown_tags"]) == (1, 2, 1, 1)
    assert corpus.split("train").facts["too_long"] == 1
    said = capsys.readouterr().err
    assert "1 words of the valid split have tags that training lacks: counted as wrong" in said
    assert "1 training sentences left out: of more than data.max_words = 3 words" in said


@pytest.mark.parametrize(
    ("files", "options", "says"),
    [
        ({"train.txt": "a X\nb X\nc X\n"}, {}, "every word has the tag 'X'"),
        ({"train.txt": "a X\na Y\n"}, {}, "words: the text has only the word 'a'"),
        ({"train.txt": "a B-X\nb O\n", "valid.txt": "a E-X\n"}, {}, "the valid split has the tag 'E-X'"),
        ({"train.txt": "a X\nb <unk>\n"}, {}, "a word has the tag <unk>"),
        ({"train.txt": "a X\nb Y\n"}, {"max_words": 1}, "no training sentence has data.max_words = 1"),
    ],
)
def test_data_that_cannot_be_used(files, options, says, tmp_path):
    for name, text in ({"valid.txt": "a X\n", "test.txt": "a X\n"} | files).items():
        (tmp_path / name).write_text(text)
    with pytest.raises(UserError, match=says):
        open_tags(tmp_path, TagOptions(min_count=1, **options))


def test_files_that_are_not_there_or_too_small(tmp_path):
    with pytest.raises(UserError, match="no such file or folder"):
        open_tags(tmp_path / "nope", TagOptions())
    with pytest.raises(UserError, match="160 sentences, too few to hold out"):
        open_tags(tagged.write(tmp_path / "few"), TagOptions())


def test_sentences_side_by_side():
    batch = gather([np.array([4, 5, 6]), np.array([7])], [np.array([1, 0, 1]), np.array([2])])
    assert batch.inputs.tolist() == [[4, 7], [5, 0], [6, 0]]
    assert batch.targets.tolist() == [[1, 2], [0, 0], [1, 0]]
    assert batch.mask.tolist() == [[True, True], [True, False], [True, False]]


def test_the_lexicon_by_hand():
    """Words seen once have X, X, Y: p_0 = (2 + 1, 1 + 1, 1) / 6."""
    lexicon = Lexicon.of(["a", "a", "a", "b", "c", "d"], ["Y", "Y", "X", "X", "X", "Y"])
    labels = Vocabulary(("X", "Y", "<unk>"), (3, 3, 0))
    unknown = np.array([3, 2, 1]) / 6
    wanted = [(np.array([1, 2, 0]) + unknown) / 4, (np.array([1, 0, 0]) + unknown) / 2, unknown]
    np.testing.assert_allclose(np.exp(lexicon.log_probs(["a", "b", "new"], labels)), wanted)
    assert lexicon.knows(["a", "new"]).tolist() == [True, False]
    twice = Lexicon.of(["a", "a", "b", "b"], ["X", "X", "Y", "X"])
    np.testing.assert_allclose(np.exp(twice.log_probs(["new"], labels)), [np.array([4, 2, 1]) / 7])


def test_what_is_saved_is_loaded_and_damage_is_named(tmp_path):
    options = TagOptions(valid=10, test=10)
    symbols = open_tags(tagged.write(tmp_path / "file"), options).symbols
    symbols.save(tmp_path)
    assert TagSymbols.load(tmp_path, options) == symbols
    assert TagSymbols.load(tmp_path, options).digest == symbols.digest
    assert math.isclose(sum(symbols.labels.counts), sum(sum(one.values()) for one in symbols.lexicon.counts.values()))
    (tmp_path / "lexicon.tsv").write_text("fish\tN\t3\nduck\n")
    with pytest.raises(UserError, match=r"lexicon\.tsv:2: expected a word, its tag and a count"):
        TagSymbols.load(tmp_path, options)
    (tmp_path / "tags.tsv").write_text("N\t3\n")
    with pytest.raises(UserError, match="it lacks <unk>"):
        TagSymbols.load(tmp_path, options)
