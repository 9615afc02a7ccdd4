import pytest

from elman.data.hypotheses import Hypothesis, by_utterance, read_kaldi, read_references, read_tsv, scattered
from elman.errors import UserError


def test_hypotheses_are_read_from_rows_with_tabs():
    found = read_tsv(["u1\t-1\t2e1\tto be\n", "\n", "u1\t0\t1\t\r\n", "u2\t0\t0\tor"], "n")
    assert found[0] == Hypothesis("u1", (-1.0, 20.0), "to be")
    assert found[1].text == ""
    assert by_utterance(found) == {"u1": [0, 1], "u2": [2]}
    assert read_tsv(["u1\tto be"], "n") == [Hypothesis("u1", (), "to be")]


def test_kaldi_lists_are_read_with_their_costs():
    found = read_kaldi(["u-1-1 to be", "u-1-2 "], [("ac", ["u-1-1 3.5", "u-1-2 4"])], "text")
    assert found == [Hypothesis("u-1", (-3.5,), "to be"), Hypothesis("u-1", (-4.0,), "")]


def test_utterances_whose_hypotheses_are_apart():
    a, b = Hypothesis("a", (), "x"), Hypothesis("b", (), "y")
    assert scattered([a, a, b]) is None
    assert scattered([a, b, b, a]) == "a"


def test_references_are_read_by_utterance():
    assert read_references(["u1\tto be\n", "u2 or not\n", "u3\n"], "r") == {"u1": "to be", "u2": "or not", "u3": ""}
    assert read_references(["u 1\tto be\n", "u 2\t\n"], "r") == {"u 1": "to be", "u 2": ""}


@pytest.mark.parametrize(
    ("read", "message"),
    [
        (lambda: read_tsv(["u1\tone\tto be"], "n"), "n:1: expected an id, numbers and a text"),
        (lambda: read_tsv(["u1\tnan\tto be"], "n"), "n:1: expected an id, numbers and a text"),
        (
            lambda: read_tsv(["u1 1 a", "u1 2 b"], "n"),
            "n:1: expected an id, scores and a text with tabs between",
        ),
        (lambda: read_tsv(["u-1 to be", "u-2 or not"], "n"), "n:1: .* no tab in 'u-1 to be'; .* add --kaldi"),
        (lambda: read_tsv(["u1\t1\ta", "b"], "n"), "n:2: .* found no tab in 'b'$"),
        (lambda: read_tsv(["u1\t1\t", "u2\t1\t "], "n"), "n: every text is empty"),
        (lambda: read_kaldi(["u-1 to", "u-1 be"], [], "n"), "n:2: u-1 appears twice"),
        (lambda: read_tsv(["u1\t1\ta", "u1\ta"], "n"), "n:2: 0 scores, but the first row has 1"),
        (lambda: read_kaldi(["u1 to be"], [], "n"), "n:1: expected a key such as utterance-1"),
        (lambda: read_kaldi(["u1-1 to"], [("ac", ["u1-2 1"])], "n"), "ac: no cost of u1-1, which n:1 has"),
        (
            lambda: read_kaldi(["u1-1 to"], [("ac", ["u1-1 10.5", "u1-2 9.0", "u1-1 99"])], "n"),
            "ac:3: u1-1 appears twice; every hypothesis has one cost",
        ),
        (lambda: read_kaldi(["u1-1 to"], [("ac", ["u1-1 1_5"])], "n"), "ac:1: expected a key and a number"),
        (lambda: read_kaldi(["u1-1 to"], [("ac", ["u1-1 1,5"])], "n"), "ac:1: expected a key and a number"),
        (lambda: read_kaldi(["u1-1 to"], [("ac", ["u1-1 1,500"])], "n"), "ac:1: expected a key and a number"),
        (lambda: read_kaldi(["u1-1 to"], [("ac", ["u1-2"])], "n"), "ac:1: expected a key and a number"),
        (lambda: read_references(["u1 a", "u1 b"], "r"), "r:2: u1 appears twice"),
        (lambda: read_references(["u1", "u2 "], "r"), "r: no reference has a word"),
    ],
)
def test_wrong_lists_of_hypotheses_are_named_by_line(read, message):
    with pytest.raises(UserError, match=message):
        read()
