"""Lists of hypotheses in a better order, by command."""

import numpy as np
import pytest

from elman.cli import main
from elman.tasks.text import rescoring
from support.commands import TEXTS, column, complaint, output, table, trained

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", params=TEXTS)
def run(request, tmp_path_factory):
    return trained(request.param, tmp_path_factory)


@pytest.fixture
def nbest(tmp_path):
    file = tmp_path / "nbest.tsv"
    file.write_text("b\t-1\tw1 w2 w3\nb\t0\tw3 w3\na\t-2\tw5 w6\na\t-2\tw6\na\t-3\t\n")
    return file


def test_the_order_of_rescoring(capsys, run, nbest, tmp_path):
    rows = table(output(capsys, "rescore", run, nbest, "--all", "--weight", "0.5", "--word-penalty", "0.25"))
    scored = tmp_path / "one.txt"
    for row in rows:
        words = len(row["text"].split())
        expected = float(row["given_1"]) + 0.5 * float(row["log_prob"]) - 0.25 * words
        assert float(row["score"]) == pytest.approx(expected, abs=1e-5)
        if row["text"]:
            scored.write_text(row["text"] + "\n")
            (alone,) = table(output(capsys, "score", run, scored, "--by", "sentence"))
            assert float(row["log_prob"]) == pytest.approx(float(alone["log_prob"]), abs=1e-4)
    assert [row["id"] for row in rows] == ["b"] * 2 + ["a"] * 3
    for name in "ba":
        scores = column([row for row in rows if row["id"] == name], "score")
        assert scores == sorted(scores, reverse=True)
    best = [f"{row['id']}\t{row['text']}" for row in rows if row["rank"] == "1"]
    again = ("--weight", "0.5", "--word-penalty", "0.25", "--batch-size", "1")
    assert output(capsys, "rescore", run, nbest, *again).splitlines() == best


def test_carried_states_follow_what_was_chosen(capsys, run, nbest, tmp_path):
    """As the chosen texts in one document, where nothing but the given scores choose."""
    nbest.write_text(nbest.read_text().replace("b\t-1\t", "b\t1\t"))  # the longest, which the model scores least
    rows = table(output(capsys, "rescore", run, nbest, "--carry", "--all", "--weight", "0"))
    best = [row for row in rows if row["rank"] == "1"]
    document = tmp_path / "document.txt"
    document.write_text("".join(row["text"] + "\n" for row in best))
    sentences = table(output(capsys, "score", run, document, "--by", "sentence", "--document"))
    assert column(best, "log_prob") == pytest.approx(column(sentences, "log_prob"), abs=1e-4)


def test_rescoring_is_tuned_on_references(capsys, run, nbest, tmp_path):
    references = tmp_path / "references.txt"
    references.write_text("a\tw5 w6\nb\tw3 w3\n")
    arguments = ["rescore", str(run), str(nbest), "--references", str(references)]
    assert main([*arguments, "--tune"]) == 0
    captured = capsys.readouterr()
    assert captured.out.splitlines() == ["b\tw3 w3", "a\tw5 w6"]
    assert "word error rate 0.00 %; without the model 0.00 %" in captured.err
    assert "tuned: --weight 0 " in captured.err
    references.write_text("a\tw5 w6\n")
    assert "no reference for b" in complaint(capsys, *arguments)
    assert "no reference for b" in complaint(capsys, arguments[0], tmp_path / "no run", *arguments[2:]), "at once"
    assert "--tune needs --references" in complaint(capsys, "rescore", run, nbest, "--tune")


def test_rescoring_reads_kaldi_lists(capsys, run, tmp_path):
    (tmp_path / "text").write_text("u-1 w1 w2\nu-2 w3\n")
    (tmp_path / "ac").write_text("u-1 100\nu-2 0\n")
    got = output(capsys, "rescore", run, tmp_path / "text", "--kaldi", "--costs", tmp_path / "ac")
    assert got == "u w3\n"


def test_weights_and_penalties_are_tried_in_the_steps_that_the_pages_name():
    grid = rescoring.Grid()
    assert grid.weights == pytest.approx([*np.linspace(0, 2, 41), *np.linspace(2.5, 20, 36)])
    assert sorted(grid.penalties) == pytest.approx(np.linspace(-1, 1, 5))
    assert grid.given == pytest.approx(np.linspace(0, 2, 21))
