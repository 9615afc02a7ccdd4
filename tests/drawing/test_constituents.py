"""Trees within the report."""

import re

import msgspec
import pytest

from elman.data.trees.brackets import read_trees
from elman.drawing.constituents import Constituent, TreeDrawing
from elman.kinds.trees.drawing import constituents, drawing_of

RIGHT = "(ROOT (S (NP (XX the) (XX cat)) (VP (XX sees) (NP (XX <dog>)))))"
FOUND = "(ROOT (S (NP (XX the) (XX cat) (XX sees)) (PP (XX <dog>))))"
WORDS = ["the", "cat", "sees", "<dog>"]


def tree(text):
    return read_trees(text, "tree")[0]


def test_nodes_from_the_top_downwards():
    assert constituents(tree(RIGHT)) == [("S", 0, 4, 3), ("NP", 0, 2, 1), ("VP", 2, 4, 2), ("NP", 3, 4, 1)]


def test_what_is_wrong_and_what_is_missed():
    drawn = drawing_of(tree(FOUND), tree(RIGHT), WORDS)
    assert [(node.label, node.right, node.truth) for node in drawn.nodes] == [
        ("S", True, ""),
        ("NP", False, ""),
        ("PP", False, "NP"),
    ]
    assert drawn.missed == ["NP over “the cat”", "VP over “sees <dog>”", "NP over “<dog>”"]
    assert drawn.caption.startswith(": 1 of 3 constituents right; missed: NP over “the cat”, ")
    whole = drawing_of(tree(RIGHT), tree(RIGHT), WORDS, given=True)
    assert whole.caption == ": 4 of 4 labels right"


def test_a_chain_of_one_label_counts_as_often_as_the_right_tree_has_it():
    chain, single = tree("(ROOT (NP (NP (XX a) (XX b))))"), tree("(ROOT (NP (XX a) (XX b)))")
    assert [node.right for node in drawing_of(chain, single, ["a", "b"]).nodes] == [True, False]
    assert drawing_of(single, chain, ["a", "b"]).missed == ["NP over “a b”"]


@pytest.mark.parametrize("text", [RIGHT, FOUND, "(ROOT (XX a))", "(ROOT (NP (NP (NP (XX 猫)))))"])
def test_the_drawing_holds_every_node_and_word_and_stays_within_its_box(text):
    words = re.findall(r"\(XX ([^)]*)\)", text)
    drawn = drawing_of(tree(text), tree(text), words)
    svg = str(drawn.draw("", "a <name>"))
    assert "a &lt;name&gt;" in svg
    assert "<dog>" not in svg
    assert svg.count("<text") == len(words) + len(drawn.nodes)
    assert svg.count("<line") == len(drawn.nodes) - 1 + len(words) if drawn.nodes else "<line" not in svg
    _, _, width, height = map(float, re.search(r'viewBox="([^"]*)"', svg)[1].split())
    for x, y in re.findall(r'<text x="([^"]*)" y="([^"]*)"', svg):
        assert 0 < float(x) < width
        assert 10 <= float(y) < height
    for x1, y1, x2, y2 in re.findall(r'x1="([^"]*)" y1="([^"]*)" x2="([^"]*)" y2="([^"]*)"', svg):
        assert float(y1) > float(y2)
        assert max(float(x1), float(x2)) < width


def test_wrong_nodes_are_marked():
    svg = str(drawing_of(tree(FOUND), tree(RIGHT), WORDS).draw("", "tree"))
    assert svg.count('class="wrong"') == 2
    assert "PP*<title>PP: wrong; right: NP</title>" in svg
    assert "NP*<title>NP: wrong: no constituent</title>" in svg


@pytest.mark.parametrize(
    "nodes",
    [
        [Constituent("S", 0, 3, 1)],
        [Constituent("S", 1, 1, 1)],
        [Constituent("NP", 0, 1, 1), Constituent("S", 0, 2, 2)],
    ],
)
def test_damaged_trees_are_refused(nodes):
    raw = {"kind": "tree", "words": ["a", "b"], "nodes": msgspec.to_builtins(nodes)}
    with pytest.raises(msgspec.ValidationError, match="no tree over the words"):
        msgspec.convert(raw, TreeDrawing)
