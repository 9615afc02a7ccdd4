"""Trees as nodes with labels, and back."""

import numpy as np
import pytest

from elman.data.trees.brackets import bracketed, linear, read_trees, to_pair, to_tree
from elman.data.trees.shape import NONE, shape_of, side_by_side, tree_of
from elman.evaluation.measures import brackets
from elman.kinds.tags.bank import chunks
from elman.kinds.trees.drawing import constituents
from support.tree_networks import random_trees

WORDS = "(ROOT (S (NP-SBJ (DT the) (JJ old) (NN cat)) (VP (VBZ sits) (ADVP (RB here))) (. .)))"
PLAIN = "(ROOT (S (NP (XX the) (XX old) (XX cat)) (VP (XX sits) (ADVP (XX here))) (XX .)))"


def tree(text):
    return read_trees(text, "bank")[0]


def spans(shape):
    return dict(zip(shape.spans, shape.labels, strict=True))


@pytest.mark.parametrize("binary", ["right", "left", "none"])
def test_there_and_back(binary):
    shape = shape_of(tree(WORDS), binary, functions=False)
    assert bracketed(tree_of(shape, ["the", "old", "cat", "sits", "here", "."])) == PLAIN
    assert all(len(below) == 2 for below in shape.children) == (binary != "none")
    assert list(shape.heights) == sorted(shape.heights)


def test_more_than_two_children_are_put_together_from_either_end():
    inner = {
        binary: {
            span
            for span, label in spans(shape_of(tree(WORDS), binary)).items()
            if label == NONE and span[1] - span[0] > 1
        }
        for binary in ("right", "left", "none")
    }
    assert inner == {"right": {(1, 3), (3, 6)}, "left": {(0, 2), (0, 5)}, "none": set()}


def test_labels_of_chains_functions_and_words():
    found = spans(shape_of(tree("(TOP (S-IMP (VP (VB go) (NP (NN home)))) )"), "right", functions=True))
    assert found == {(0, 1): NONE, (1, 2): "NP", (0, 2): "S-IMP VP"}
    assert spans(shape_of(tree("(ROOT (FRAG (INTJ (UH oh))))"), "right")) == {(0, 1): "FRAG INTJ"}
    two = shape_of(tree("(ROOT (NP (NN a)) (NP (NN b)))"), "right")
    assert spans(two) == {(0, 1): "NP", (1, 2): "NP", (0, 2): NONE}
    assert bracketed(tree_of(two, ["a", "b"])) == "(ROOT (NP (XX a)) (NP (XX b)))"
    assert two.is_constituent == [True, True, False]


@pytest.mark.slow
def test_a_long_flat_tree():
    flat = tree(f"(ROOT (NP {' '.join(f'(NN w{n})' for n in range(3000))}))")
    shape = shape_of(flat, "right")
    assert shape.heights[-1] == 2999
    assert bracketed(tree_of(shape, [f"w{n}" for n in range(3000)])) == bracketed(flat).replace("(NN", "(XX")


def test_nodes_side_by_side_are_in_order_of_height():
    shapes, trees, rows = random_trees([5, 1, 8])
    assert sorted(row for places in rows for row in places) == list(range(len(trees.sentence)))
    height = np.zeros(len(trees.sentence), int)
    for shape, places in zip(shapes, rows, strict=True):
        for below, row in zip(shape.children, places[shape.num_words :], strict=True):
            assert [places[child] for child in below] == trees.children[row - 14].tolist()
            height[row] = 1 + max(height[places[child]] for child in below)
        for (start, end), row in zip(shape.spans, places, strict=True):
            assert (int(trees.start[row]), int(trees.end[row])) == (start, end)
    assert (np.diff(height) >= 0).all()
    assert np.bincount(height)[1:].tolist() == list(trees.of_height)
    assert trees.places.tolist() == [word * 3 + row for row, length in enumerate([5, 1, 8]) for word in range(length)]
    assert trees.lengths.tolist() == [5, 1, 8]


def test_words_alone_have_no_nodes_above():
    trees, _ = side_by_side([shape_of(tree("(ROOT (NP (NN a)))"), "right")])
    assert trees.of_height == ()
    assert trees.children.shape == (0, 2)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("(S " * 20_000 + "(NN dog)" + ")" * 20_000, 1),
        ("(S (DT a) " * 4_000 + "(NN dog)" + ")" * 4_000, 4_001),
        ("(S " + "(NN w) " * 20_000 + ")", 20_000),
    ],
    ids=["chain", "deep", "wide"],
)
def test_trees_of_any_depth_and_width(text, words):
    """Everything that is done with a tree is done without recursion, and in linear time."""
    (tree,) = read_trees(text, "text")
    assert bracketed(tree) == f"(ROOT {' '.join(text.split()).replace(' )', ')')})"
    symbols = linear(tree)
    spoken, written = to_pair(tree, True, False)
    assert written.split() == symbols
    assert len(spoken.split()) == words
    again = to_tree(symbols, spoken.split())
    assert again.repairs == 0
    assert linear(again.tree) == symbols
    assert sum(brackets(tree).values()) == text.count("(S")
    assert len(constituents(tree)) == text.count("(S")
    assert len(chunks(tree)) == words
    for binary in ("right", "left", "none"):
        shape = shape_of(tree, binary)
        assert linear(tree_of(shape, spoken.split())) == symbols
