"""Ordinary text, stimuli and hypotheses for a small model of tokenised words."""

import io
import json
import sys

import numpy as np
import pytest

import elman
from elman.cli import main
from elman.errors import UserError
from elman.tasks.evaluating import EvaluationOptions
from elman.tasks.experiment import Experiment
from elman.tasks.text.run import TextRun
from support import text_runs
from support.commands import column, refusal, table

LINES = ["the horse raced past the barn", "do n't let the company 's shares fall N", "the <unk> fell", "mr. smith fell"]
NATURAL = "The horse fell.\nDon't let Mr. Jones' shares\u2014ever\u2014fall.\n"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tokenised")
    for split, times in {"train": 20, "valid": 4, "test": 4}.items():
        (folder / f"{split}.txt").write_text("\n".join(LINES * times) + "\n")
    experiment = Experiment(text_runs.recipe(epochs=1), folder / "run", data=folder)
    experiment.train()
    return folder / "run"


@pytest.fixture
def natural(tmp_path):
    (tmp_path / "natural.txt").write_text(NATURAL)
    return tmp_path / "natural.txt"


def both(capsys, *arguments):
    assert main([str(argument) for argument in arguments]) == 0
    return capsys.readouterr()


def test_a_test_split_scores_as_it_is_evaluated(capsys, run):
    result = TextRun(run).evaluate(EvaluationOptions(split="test"))
    printed = both(capsys, "score", run, run.parent / "test.txt", "--document")
    assert printed.err == ""
    assert -sum(column(table(printed.out), "log_prob")) == pytest.approx(result.nll * result.tokens, rel=1e-5)


def test_natural_text_is_read_as_the_training_text(capsys, run, natural, tmp_path):
    fitted = tmp_path / "fitted.txt"
    fitted.write_text("the horse fell\ndo n't let mr. jones shares <unk> fall\n")
    printed, expected = (both(capsys, "score", run, file) for file in (natural, fitted))
    rows = [row for row in table(printed.out) if row["surprisal"]]
    assert [row["token"] for row in rows][:6] == ["The", "horse", "fell", "<eos>", "Do", "n't"]
    assert column(rows, "surprisal") == column(table(expected.out), "surprisal")
    unknown, refitted, marks = printed.err.splitlines()
    assert unknown == "2 of 8 words (25.0 %) are not in the vocabulary, read as <unk>: Jones, ever"
    assert refitted.startswith("5 words read as in the training text: The as the, fell. as fell, Don't as do n't, ...")
    assert marks.startswith("5 marks left out")


def test_ends_that_are_written_as_words_are_reported(capsys, run, tmp_path):
    (tmp_path / "marked.txt").write_text("the horse fell <eos>\nthe barn <eos> fell\n")
    printed = both(capsys, "score", run, tmp_path / "marked.txt", "--by", "sentence")
    assert column(table(printed.out), "tokens") == [5, 5]
    assert printed.err == "2 words <eos> in the text read as ends of sentences; the end of a line is one already\n"


def test_natural_text_as_it_is(capsys, run, natural):
    printed = both(capsys, "score", run, natural, "--as-is", "--by", "word")
    assert printed.err == "6 of 8 words (75.0 %) are not in the vocabulary, read as <unk>: The, fell., Don't, ...\n"
    assert [row["unknown"] for row in table(printed.out)] == [*"1010101110"]


def test_by_word_a_row_is_a_word_of_the_text(capsys, run, natural):
    words = table(both(capsys, "score", run, natural, "--by", "word", "--spill-over", 2).out)
    assert [row["word"] for row in words if row["word"] != "<eos>"] == NATURAL.split()
    tokens = table(both(capsys, "score", run, natural).out)
    assert sum(column(words, "surprisal")) == pytest.approx(sum(column(tokens, "surprisal")), abs=1e-4)
    assert [words[3]["previous_1"], words[3]["previous_2"]] == [words[2]["surprisal"], words[1]["surprisal"]]
    assert (words[4]["word"], words[4]["previous_1"], words[5]["previous_2"]) == ("Don't", "", "")


def test_a_table_carries_its_columns_and_adds_up_by_region(capsys, run, tmp_path):
    items = tmp_path / "items.tsv"
    items.write_text("item\tcond\ttext\n7\ta\tThe horse | raced past the barn | fell.\n7\tb\tthe shares|fell\n")
    how = ("score", run, items, "--column", "text", "--regions", "|")
    regions = table(both(capsys, *how, "--by", "region", "--spill-over", 1).out)
    assert [(row["item"], row["cond"], row["text"], row["words"]) for row in regions] == [
        ("7", "a", "The horse", "2"),
        ("7", "a", "raced past the barn", "4"),
        ("7", "a", "fell.", "1"),
        ("7", "a", "<eos>", "1"),
        ("7", "b", "the shares", "2"),
        ("7", "b", "fell", "1"),
        ("7", "b", "<eos>", "1"),
    ]
    words = table(both(capsys, *how, "--by", "word").out)
    assert [row["region"] for row in words] == [*"11222234", *"1123"]
    assert sum(column(words[:2], "surprisal")) == pytest.approx(float(regions[0]["surprisal"]), abs=1e-4)
    assert regions[2]["previous_1"] == regions[1]["surprisal"]
    sentences = both(capsys, *how, "--by", "sentence", "--json").out.splitlines()
    first = json.loads(sentences[0])
    assert (first["cond"], first["text"]) == ("a", "The horse raced past the barn fell.")
    assert first["surprisal"] == pytest.approx(sum(column(regions[:4], "surprisal")), abs=1e-4)


@pytest.mark.parametrize(
    ("how", "message"),
    [
        (("--by", "region"), "--by region needs --regions"),
        (("--spill-over", 1), "--spill-over belongs to --by word"),
        (("--column", "text", "--document"), "leave --document out"),
        (("--column", "missing"), ":1: no column 'missing'; it has surprisal, text"),
        (("--column", "text"), "the column 'surprisal' of the table is also one of the output"),
        (("--regions", "|", "--column", "text", "--by", "region"), ":2: region 2 of 2 is empty"),
    ],
)
def test_wrong_stimuli_are_one_line(capsys, run, tmp_path, how, message):
    items = tmp_path / "items.csv"
    items.write_text("surprisal,text\n1,the horse |\n")
    assert message in refusal(capsys, "score", run, items, *how)


def test_a_table_without_a_column_is_a_text_with_a_notice(capsys, run, tmp_path):
    (tmp_path / "items.tsv").write_text("item\ttext\n1\tthe horse\n")
    assert "items.tsv is read as a text; --column NAME" in both(capsys, "score", run, tmp_path / "items.tsv").err


def test_standard_input_is_scored_line_by_line(capsys, run, monkeypatch):
    lines, printed = [b"the horse fell\n", b"the barn fell\n"], []

    class Terminal(io.BytesIO):
        def readline(self, size=-1):
            printed.append(capsys.readouterr().out)
            return lines.pop(0) if lines else b""

    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(Terminal()))
    assert main(["score", str(run), "-"]) == 0
    assert [text.count("\n") for text in printed] == [0, 5, 4]


def test_prompts_and_steps_are_fitted(capsys, run):
    opened = TextRun(run)
    assert opened.encode("Don't, Mr. Smith!") == opened.encode("do n't mr. smith")
    assert opened.next_words("The horse", 3) == opened.next_words("the horse", 3)
    for word, tokens in {"Horse": ["horse"], "Don't": ["do", "n't"], "<eos>": ["<eos>"]}.items():
        state = opened.begin()
        for token in tokens:
            expected, state = opened.step(token, state)
        np.testing.assert_allclose(opened.step(word, opened.begin())[0], expected, rtol=1e-5)
    with pytest.raises(UserError, match="has no token"):
        opened.step("", opened.begin())
    printed = both(capsys, "generate", run, "--prompt", "The zebra fell", "--tokens", 1, "--seed", 1)
    assert "1 of 3 words (33.3 %) is not in the vocabulary, read as <unk>: zebra" in printed.err


def test_a_string_is_the_lines_that_it_holds(run):
    one, two = elman.score(run, "the horse fell\nthe barn"), elman.score(run, ["the horse fell", "the barn"])
    assert [scored.tokens for scored in one] == [["the", "horse", "fell", "<eos>"], ["the", "barn", "<eos>"]]
    for first, second in zip(one, two, strict=True):
        np.testing.assert_array_equal(first.log_probs, second.log_probs)


def test_states_of_natural_text(capsys, run, natural, tmp_path):
    printed = both(capsys, "embed", run, natural, "--out", tmp_path / "a.npz")
    assert "read as <unk>: Jones" in printed.err
    assert np.load(tmp_path / "a.npz")["tokens"].tolist()[:4] == ["The", "horse", "fell", "<eos>"]
    assert "give a state that --save-state wrote" in refusal(capsys, "generate", run, "--state", natural)


def test_rescoring_reports_what_it_read(capsys, run, tmp_path):
    nbest, references = tmp_path / "nbest.tsv", tmp_path / "references"
    nbest.write_text("u1\t-1\tThe zebra fell\nu2\t-2\tthe barn\nu1\t-1\tthe horse fell\n")
    references.write_text("u1 the horse fell\nu2 the barn\n")
    printed = both(capsys, "rescore", run, nbest, "--references", references, "--tune")
    assert "the id u1 appears again after others" in printed.err
    assert "1 of 8 words (12.5 %) is not in the vocabulary, read as <unk>: zebra" in printed.err
    assert "warning: tuned on 2 utterances; weights tuned on fewer than 30" in printed.err
    nbest.write_text("u1\t-1\tthe horse fell\n")
    printed = both(capsys, "rescore", run, nbest, "--references", references, "--tune")
    assert "every id has one hypothesis (1 ids): there is nothing to choose" in printed.err
    assert "warning: the weight is 0" in printed.err
    assert (
        "1 of 2 references, such as u2, have no hypothesis: their 2 words count as deleted in the word error rate"
        in printed.err.splitlines()
    )
    assert "word error rate 40.00 %; without the model 40.00 %" in printed.err
