"""Bracketed trees: reading, the linear form, and what is said of damaged ones."""

import pytest

from elman.data.trees.brackets import Leaf, Node, bare, bracketed, leaves, linear, linear_line, read_trees, to_tree
from elman.errors import UserError
from elman.kinds.pairs.corpus import open_pairs
from elman.kinds.pairs.record import PairOptions

JOHN = "(ROOT (S (NP-SBJ (NNP John)) (VP (VBZ has) (NP (DT a) (NN dog))) (. .)))"


def read(text):
    return read_trees(text, "bank")


def test_the_linear_form_is_that_of_the_paper():
    """Vinyals et al. 2015, figure 2, with their XX."""
    (tree,) = read(JOHN)
    assert " ".join(linear(tree)) == "(S (NP XX )NP (VP XX (NP XX XX )NP )VP XX )S"
    kept = "(S (NP-SBJ NNP )NP-SBJ (VP VBZ (NP DT NN )NP )VP . )S"
    assert " ".join(linear(tree, hide_tags=False, functions=True)) == kept
    assert [leaf.word for leaf in leaves(tree)] == ["John", "has", "a", "dog", "."]


def test_reading_forgives_layout_and_identifiers():
    over_lines = JOHN.replace(" (VP", "\n   (VP")
    for text in (JOHN, f"{over_lines}\n", f"doc-1\t{JOHN}", JOHN.replace("ROOT", ""), JOHN.replace("ROOT", "TOP")):
        assert read(text) == read(JOHN)
    assert read(JOHN[6:-1]) == read(JOHN)
    assert len(read(f"{JOHN}\n\n{JOHN}")) == 2
    assert bracketed(read(JOHN)[0]) == JOHN


def test_square_brackets_are_read_alike_and_parentheses_are_words_then():
    square = JOHN.translate(str.maketrans("()", "[]"))
    assert read(f"doc-1\t{square}") == read(JOHN)
    (tree,) = read("[S [-LRB- (] [NN word]]")
    assert [leaf.word for leaf in leaves(tree)] == ["-LRB-", "word"]
    assert [leaf.word for leaf in leaves(read("(S (-LRB- [) (NN word))")[0])] == ["[", "word"]


def test_empty_elements_go_with_what_is_empty_then():
    (tree,) = read("(S (NP-SBJ (-NONE- *)) (VP (VB go) (NP (-NONE- *T*-1))))")
    assert tree == Node("ROOT", (Node("S", (Node("VP", (Leaf("VB", "go"),)),)),))


@pytest.mark.parametrize(
    ("label", "plain"), [("=H", "=H"), ("NP-SBJ=2", "NP"), ("-LRB-", "-LRB-"), ("PP-LOC", "PP"), ("S|X", "S")]
)
def test_labels_lose_their_functions_and_numbers(label, plain):
    assert bare(label) == plain


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (f"{JOHN}\n(S (NP (NN x))\n", "bank:2: a tree begins here and its brackets are not closed"),
        (f"{JOHN}\n\n{JOHN})\n", "bank:3: a closing bracket that nothing opened"),
        (f"{JOHN}\nwords\n", "bank:2: the text 'words' between trees"),
        ("(S (NP))", r"bank:1: \(NP\) has no word"),
        ("(ROOT\n( (S (NN a)))) (S (NN b))", "bank:2: a constituent within a tree has no label"),
        ("(S (NP John sleeps))", r"bank:1: \(NP John .*a word stands alone"),
        ("\n", "bank: there is no tree"),
    ],
)
def test_a_damaged_tree_is_named_by_its_line(text, says):
    with pytest.raises(UserError, match=says):
        read(text)


def test_a_treebank_is_a_corpus_of_pairs(tmp_path):
    sentences = [JOHN.replace("John", name) for name in ("Ann", "Bob", "Cid", "Dan")]
    path = tmp_path / "bank.txt"
    path.write_text("\n".join(f"doc\t{tree}" for tree in sentences), encoding="utf-8")
    corpus = open_pairs(path, PairOptions(form="trees", valid=1, test=1, lowercase=True, split="last"))
    assert corpus.split("train").source_text == ["Ann has a dog .", "Bob has a dog ."]
    assert corpus.split("test").target_text == ["(S (NP XX )NP (VP XX (NP XX XX )NP )VP XX )S"]
    assert "(NP" in corpus.symbols.target.words
    assert "ann" in corpus.symbols.source.words


def test_parentheses_in_words_are_written_so_that_the_tree_can_be_read():
    tree = Node("ROOT", (Node("S", (Leaf("X", "("), Leaf("X", "f(x)"), Leaf("X", ")"))),))
    assert bracketed(tree) == "(ROOT (S (X -LRB-) (X f-LRB-x-RRB-) (X -RRB-)))"
    (again,) = read_trees(bracketed(tree), "text")
    assert bracketed(again) == bracketed(tree)


def test_a_line_with_two_trees_is_refused():
    assert linear_line("(S (X a))", "out:1") == "(S XX )S"
    with pytest.raises(UserError, match="out:1: 2 trees; give one"):
        linear_line("(S (X a)) (S (X b))", "out:1")


def test_closing_brackets_find_theirs_at_any_depth():
    """A label that is open is closed with what is open within it; one that is not open is dropped; in linear time."""
    deep = 20_000
    found = to_tree(["(A", *["(S"] * deep, "XX", *[")B"] * deep, ")A", "XX"], ["a", "b"])
    assert found.repairs == 2 * deep
    assert linear(found.tree) == ["(A", *["(S"] * deep, "XX", *[")S"] * deep, ")A", "XX"]
