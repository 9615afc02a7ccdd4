"""Two small runs, of words and of characters, compared on a text, on minimal pairs and on the sentences of a table."""

import json
import math
import shutil

import numpy as np
import pytest

from elman.cli import main
from elman.cli.stimuli import _read_alike
from elman.errors import UserError, said
from elman.tasks.text.comparison import Word, Words
from support.commands import output, refusal, table, trained


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    return tuple(str(trained(name, tmp_path_factory)) for name in ("words", "characters"))


def nll_per_word(capsys, run, words):
    row = json.loads(output(capsys, "evaluate", run, "--json"))
    return row["nll"] * row["tokens"] / words


@pytest.mark.slow
def test_runs_with_other_tokens_are_compared_by_the_same_words(capsys, runs):
    found = json.loads(output(capsys, "compare", *runs, "--unknown", "spread", "--json"))
    a, b = (nll_per_word(capsys, run, found["tokens"]) for run in runs)
    assert (found["unit"], found["tokens"], found["unknown_types"]) == ("word", 180, [0, 0])
    assert found["difference"] == pytest.approx(a - b, rel=1e-5)


def test_what_is_compared_is_said(capsys, runs):
    printed = output(capsys, "compare", *runs)
    assert "Compared are white-space words with the end of their line, the sums over their tokens." in printed
    assert "Unknown words: 0 words unknown to a run are left out for both." in printed


@pytest.mark.slow
def test_a_text_without_a_final_line_break_is_compared(capsys, tmp_path_factory, tmp_path):
    words, characters = (trained(name, tmp_path_factory) for name in ("words", "exact"))
    text = tmp_path / "text.txt"
    text.write_text("w1 w2 w3 w4\nw5 w6\n" * 30 + "w7 w8")
    assert main(["compare", str(words), str(characters), "--data", str(text), "--split", "all", "--json"]) == 0
    printed = capsys.readouterr()
    assert json.loads(printed.out)["tokens"] == 181
    assert [line for line in printed.err.splitlines() if "whole file" not in line] == [
        "elman: the last word, 'w8', is left out for both: only one of the runs predicts a line end after it"
    ]


@pytest.mark.parametrize(
    ("text", "splits"), [("w1 w2 w3 w4 w5\n" * 12, "train, valid"), ("w1 w2 w3 w4 w5 " * 500, "train")]
)
def test_a_whole_text_needs_no_cut(capsys, runs, tmp_path, text, splits):
    path = tmp_path / "text.txt"
    path.write_text(text)
    row = json.loads(output(capsys, "evaluate", runs[0], "--data", path, "--split", "all", "--json"))
    assert row["tokens"] == len(text.split()) + max(1, text.count("\n"))
    found = json.loads(output(capsys, "compare", *runs, "--data", path, "--split", "all", "--json"))
    assert found["tokens"] == len(text.split())
    assert main(["evaluate", runs[0], "--data", str(path), "--split", "test"]) == 2
    assert capsys.readouterr().err.endswith(f"elman: {path}: no test split; it has {splits}; all is the whole text\n")


def test_one_vocabulary_is_compared_by_tokens_or_by_words(capsys, runs):
    by_token = json.loads(output(capsys, "compare", runs[0], runs[0], "--json"))
    by_word = json.loads(output(capsys, "compare", runs[0], runs[0], "--unknown", "score", "--json"))
    assert [(one["unit"], one["tokens"], one["p_value"]) for one in (by_token, by_word)] == [
        ("token", 200, 1),
        ("word", 180, 1),
    ]


def test_runs_are_compared_on_minimal_pairs(capsys, runs, tmp_path):
    file = tmp_path / "pairs.tsv"
    file.write_text("item\tgood\tbad\tphenomenon\n1\tw1 w2\tw2 w1\tx\n2\tw3 w1\tw1 w3\tx\n3\tw9 w8\tw8 w9\ty\n")
    found = json.loads(output(capsys, "compare", *runs, "--pairs", file, "--json"))
    rows = [json.loads(output(capsys, "minimal-pairs", run, "--pairs", file, "--json")) for run in runs]
    for mine, *others in zip(found["phenomena"], *(row["phenomena"] for row in rows), strict=True):
        assert [mine["a"], mine["b"]] == [other["accuracy"] for other in others]
    file.write_text("good\tbad\nw1 w2\tw2 w1\nw1 w2\tw1  w2\n")  # the second differs in no word
    printed = output(capsys, "compare", *runs, "--pairs", file)
    assert "1 of 2 pairs, whose sentences a run reads as the same (A 1, B " in printed
    assert "McNemar's test, mid-p" in output(capsys, "compare", *runs, "--pairs", file)


def test_minimal_pairs_are_written_item_by_item(capsys, runs, tmp_path):
    file, items = tmp_path / "pairs.tsv", tmp_path / "items.tsv"
    file.write_text("item\tgood\tbad\tcondition\nA7\tw1 w2\tw2 w1\tnear\nA8\tw1 zz\tw1 zzz\tfar\n")
    facts = json.loads(output(capsys, "minimal-pairs", runs[0], "--pairs", file, "--items", items, "--json"))
    first, second = table(items.read_text())
    assert (first["item"], first["good"], first["condition"], first["unknown"]) == ("A7", "w1 w2", "near", "")
    for side, text in (("good", "w1 w2"), ("bad", "w2 w1")):
        (tmp_path / side).write_text(f"{text}\n")
        (row,) = table(output(capsys, "score", runs[0], tmp_path / side, "--by", "sentence"))
        assert float(first[f"log_prob_{side}"]) == pytest.approx(float(row["log_prob"]), abs=1e-5)
    assert float(first["difference"]) == pytest.approx(
        float(first["log_prob_good"]) - float(first["log_prob_bad"]), abs=2e-6
    )
    assert int(first["correct"]) == facts["phenomena"][-1]["accuracy"]
    assert (second["correct"], second["log_prob_good"], second["unknown"]) == ("", "", "zz zzz")


def test_a_verb_is_judged_with_its_end_where_letters_spell_it(capsys, runs, tmp_path):
    files = {"a.text": "w1 w2 w3\n", "a.gold": "1\tw2\tw22\t0\n", "end": "w1 w2\n", "on": "w1 w2 w3\n"}
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    items = tmp_path / "items.tsv"
    output(capsys, "minimal-pairs", runs[1], "--pairs", tmp_path / "a.gold", "--items", items)
    (row,) = table(items.read_text())
    end, on = (
        [float(one["log_prob"]) for one in table(output(capsys, "score", runs[1], tmp_path / name))]
        for name in ("end", "on")
    )
    assert float(row["log_prob_good"]) == pytest.approx(math.log(math.exp(sum(end)) + math.exp(sum(on[:6]))), abs=1e-4)
    assert (row["tokens_good"], row["tokens_bad"]) == ("5", "6")


def test_pairs_of_one_sentence_are_named(capsys, runs, tmp_path):
    file = tmp_path / "pairs.tsv"
    file.write_text("item\tgood\tbad\nA7\tw1 w2\tw1  w2\nA8\tw1 w2\tw2 w1\nA9\tw1 zz\tw1 zzz\n")
    assert main(["minimal-pairs", runs[0], "--pairs", str(file)]) == 0
    (line,) = capsys.readouterr().err.splitlines()
    assert line == (
        f"elman: {runs[0]} reads both sentences of 1 pair as the same, and not for unknown words (such as item A7 of"
        " pairs: 'w1 w2', 'w1  w2'); none of them is judged"
    )


def test_runs_are_compared_on_the_sentences_of_a_table(capsys, runs, tmp_path):
    file = tmp_path / "stimuli.csv"
    texts = ["w1 w2 w3", "w3 w1 w2", "w2 w2", "w9 w1"]
    rows = [f"{n // 2},{'ab'[n % 2]},{text}" for n, text in enumerate(texts)]
    file.write_text("\n".join(["item,condition,sentence", *rows]) + "\n")
    found = json.loads(output(capsys, "compare", *runs, "--stimuli", file, "--column", "sentence", "--json"))
    assert [(row["condition"], row["items"]) for row in found["conditions"]] == [("a", 2), ("b", 2), ("all", 2)]
    (tmp_path / "text").write_text("\n".join(texts) + "\n")
    for side, run in zip("ab", runs, strict=True):
        scored = table(output(capsys, "score", run, tmp_path / "text", "--by", "sentence"))
        mean = math.fsum(float(row["surprisal"]) for row in scored) / 4
        assert found["conditions"][-1][side] == pytest.approx(mean, abs=1e-4)


def test_sentences_of_probability_0_have_no_mean_difference(capsys, tmp_path):
    file, model = tmp_path / "stimuli.tsv", tmp_path / "model.arpa"
    file.write_text("item\ttext\n1\ta b\n2\tb b\n3\ta\n")
    lines = "-99\t<s>\n-inf\ta\n-1\tb\n-0.5\t</s>\n-1\t<unk>\n"
    model.write_text(f"\\data\\\nngram 1=5\n\n\\1-grams:\n{lines}\n\\end\\\n")
    line = refusal(capsys, "compare", model, model, "--stimuli", file)
    assert "of 3 sentences 2 have the probability 0 under a run, so that no difference has a mean" in line


@pytest.mark.parametrize(
    ("heading", "items"), [("item", 2), ("Item ID", 2), ("item_id", 2), ("Pair-ID", 2), ("list", 4)]
)
def test_the_column_of_items_is_found_and_named(capsys, runs, tmp_path, heading, items):
    file = tmp_path / "stimuli.tsv"
    file.write_text(f"{heading}\ttext\n1\tw1 w2\n1\tw2 w1\n2\tw3 zz\n2\tw3 w3\n")
    arguments = ("compare", runs[0], runs[0], "--stimuli", file)
    found = json.loads(output(capsys, *arguments, "--json"))
    assert found["conditions"][-1]["items"] == items
    assert found["item_column"] == (None if heading == "list" else heading)
    printed = output(capsys, *arguments)
    assert ("since no column is called item" if heading == "list" else f"from the column {heading};") in printed
    assert "1 of 4 sentences have some, scored as <unk>" in printed


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--column", "x"), "--column belongs to --stimuli; add it"),
        (("--pairs", "p.tsv", "--stimuli", "s.tsv"), "--pairs and --stimuli are two comparisons"),
        (("--pairs", "p.tsv", "--split", "valid"), "--split does not belong to --pairs and --stimuli"),
        (("--pairs", "p.tsv", "--unknown", "spread"), "--unknown spread belongs to sums over words"),
        (("--unknown", "exclude-items"), "--unknown exclude-items belongs to items: tables, pairs and suites"),
        (("--unknown", "score"), "--unknown score: <unk> stands for other words in each of two vocabularies"),
        (("--unknown-types", "3"), "--unknown-types belongs to --unknown spread; add it"),
    ],
)
def test_options_that_do_not_fit_together_are_refused(capsys, runs, options, message):
    assert message in refusal(capsys, "compare", *runs, *options)


def test_the_part_of_a_file_that_is_evaluated_is_said(capsys, runs, tmp_path):
    file = tmp_path / "novel.txt"
    file.write_text("w1 w2 w3\n" * 40)
    assert main(["evaluate", runs[0], "--data", str(file), "--json"]) == 0
    part = capsys.readouterr()
    assert f"{file}: only its test split, the last 5 %, is read; --split all reads the whole file" in part.err
    assert main(["evaluate", runs[0], "--data", str(file), "--split", "all", "--json"]) == 0
    whole = capsys.readouterr()
    assert f"{file}: the whole file is read" in whole.err
    part, whole = json.loads(part.out), json.loads(whole.out)
    assert (part["tokens"], whole["tokens"], whole["split"], whole["words"]) == (8, 160, "all", 160)
    (tmp_path / "text").mkdir()
    (tmp_path / "text" / "test.txt").write_text(file.read_text())
    alone = json.loads(output(capsys, "evaluate", runs[0], "--data", tmp_path / "text", "--json"))
    keys = ("nll", "tokens", "unknown", "characters", "bits_per_character", "word_perplexity")
    assert [whole[key] for key in keys] == [alone[key] for key in keys]
    compared = json.loads(output(capsys, "compare", *runs, "--data", file, "--split", "all", "--json"))
    assert compared["tokens"] == 120


def test_a_run_with_another_split_is_named_also_where_tokens_are_compared(capsys, runs, tmp_path):
    """What the second run was trained on may be what both read."""
    copy = shutil.copytree(runs[0], tmp_path / "copy")
    facts = json.loads((copy / "data.json").read_text())
    for command in (["compare", runs[0], str(copy)], ["evaluate", runs[0], str(copy), "--ensemble"]):
        said.cache_clear()
        (copy / "data.json").write_text(json.dumps(facts))
        assert main(command) == 0
        assert "another test split" not in capsys.readouterr().err
        other = facts | {"splits": facts["splits"] | {"test": facts["splits"]["test"] | {"sha256": "0" * 64}}}
        (copy / "data.json").write_text(json.dumps(other))
        assert main(command) == 0
        assert f"{copy} has another test split; all runs read the one of {runs[0]}" in capsys.readouterr().err


def test_figures_of_two_texts_are_said_to_be(capsys, runs):
    assert main(["evaluate", *runs]) == 0
    printed = capsys.readouterr()
    assert "the runs read other data each (" in printed.err
    assert main(["evaluate", runs[0], runs[0]]) == 0
    assert "other data" not in capsys.readouterr().err


def test_one_text_at_two_places_is_one_split(capsys, runs):
    assert main(["compare", *runs]) == 0
    assert "another test split" not in capsys.readouterr().err


def test_sentences_that_end_for_one_run_alone_are_said_to():
    ends, continues = (
        Words([Word("ab", end, slice(0, 2))], np.zeros(1), np.zeros(1, int), 0, np.array([int(end)]))
        for end in (True, False)
    )
    with pytest.raises(UserError, match=r"such as 'a b': without blanks A reads 'ab' and its end, B 'ab';"):
        _read_alike([ends, continues], ["a b"])


def test_small_letters_are_advised_where_one_run_alone_reads_capitals(capsys):
    texts = ["The dog", "a dog", "a cat"]
    folds, keeps = (
        Words([Word(form(text), False, slice(0, 2)) for text in texts], np.zeros(3), np.zeros(3, int), 0, np.zeros(3))
        for form in (str.lower, str)
    )
    assert _read_alike([folds, keeps], texts) == [1, 2]
    line = capsys.readouterr().err
    assert "1 of 3 sentences are left out, which the runs read as different symbols, such as 'The dog'" in line
    assert line.endswith("A reads 'the dog', B 'The dog'; give them in small letters\n")
    with pytest.raises(UserError, match="give them in small letters"):
        _read_alike([folds, keeps], texts[:2])
    with pytest.raises(UserError, match="give sentences that all read in the same way"):
        _read_alike([folds, keeps._replace(words=[Word("dog", False, slice(0, 1))] * 2)], texts[:2])
