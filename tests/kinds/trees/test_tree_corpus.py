"""Treebanks as they are read: what is left out of training, and labels that training lacks."""

import pytest

from elman.data.text.vocabulary import Vocabulary
from elman.errors import UserError
from elman.kinds.trees.corpus import TreeSymbols, open_trees
from elman.kinds.trees.record import TreeOptions

SHORT, LONG = (
    "(S (NP (DT the) (NN {0})) (VP (VB sleeps)))",
    "(S (NP (DT a) (JJ {0}) (NN cat)) (VP (VB sees) (NP (NN it))))",
)


def test_what_is_left_out_and_labels_that_training_lacks_are_reported(tmp_path, capsys):
    held_out = ["(S (NP (DT the) (NN cat)) (ADVP (RB there)))", SHORT.format("dog")]
    trees = [*(SHORT.format(f"w{number}") for number in range(6)), LONG.format("old"), LONG.format("new"), held_out[1]]
    path = tmp_path / "bank.ptb"
    path.write_text("\n".join([*trees, *held_out]) + "\n")
    options = TreeOptions(split="last", valid=1, test=1, max_words=3, min_count=1)
    corpus = open_trees(path, options)
    said = capsys.readouterr().err.splitlines()
    assert corpus.split("valid").facts["unknown_labels"] == 1
    assert said == [
        f"elman: {path}: 3 training trees left out: 1 whose source is held out too, 2 of more than data.max_words = 3"
        " words",
        f"elman: {path}: 1 constituent of the valid split with a label that training has fewer than data.min_label = 2"
        " times: counted as wrong",
    ]


def test_a_split_of_words_alone_is_refused(tmp_path):
    for name, trees in (("train", [SHORT.format("cat")] * 4), ("valid", ["(NN cat)"]), ("test", [SHORT.format("cat")])):
        (tmp_path / f"{name}.txt").write_text("\n".join(trees) + "\n")
    with pytest.raises(UserError, match="the trees of the valid split are words alone"):
        open_trees(tmp_path, TreeOptions(min_label=1))


@pytest.mark.parametrize(
    ("known", "read"),
    [(("-lrb-", "-rrb-", "a"), ["-lrb-", "a", "-rrb-", "b"]), (("(", "a"), ["(", "a", ")", "b"])],
)
def test_parentheses_are_read_as_the_treebank_has_them(known, read):
    words = Vocabulary((*known, "<unk>"), (1,) * (len(known) + 1))
    symbols = TreeSymbols(words, Vocabulary(("S", "<unk>", "<none>"), (1, 0, 1)), TreeOptions(lowercase=True))
    assert symbols.folded(["(", "A", ")", "b"]) == read
    said = symbols.tally([["(", "A", ")", "b"]]).lines("word", "read as <unk>")
    lacking = [word for word in read if word not in known]
    assert said[0].startswith(f"{len(lacking)} of 4 words")
    assert said[0].endswith(", ".join(lacking))
    assert said[1:] == ([] if "(" in known else ["2 words read as in the training text: ( as -lrb-, ) as -rrb-"])


def test_no_break_spaces_are_parts_of_words(tmp_path):
    """As in French treebanks: blanks of ASCII alone divide words, in trees and their linear form."""
    path = tmp_path / "bank.ptb"
    number, end = "10\u00a0000", "!\u202f"
    trees = [f"(S (NP (CD {number}) (NN w{one})) (VP (VB tombent) (PONCT {end})))" for one in range(9)]
    path.write_text("\n".join(trees) + "\n", encoding="utf-8")
    corpus = open_trees(path, TreeOptions(split="last", valid=1, test=1, min_count=1, min_label=1))
    assert corpus.split("test").sentences == [[number, "w8", "tombent", end]]
    assert {number, end} <= set(corpus.symbols.words.words)
    assert corpus.split("test").facts["unknown_labels"] == 0
