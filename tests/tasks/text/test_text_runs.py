"""Runs on bytes, characters and subwords: figures that compare, samples and scores that give the text exactly."""

import csv
import io
import json
import math
from types import SimpleNamespace

import msgspec
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from elman import config
from elman.cli import main
from elman.config.text import TextOptions
from elman.data.text.utf8 import to_bytes
from elman.data.text.vocabulary import EOS, Vocabulary
from elman.tasks.experiment import Experiment
from elman.tasks.text.run import TextRun
from elman.tasks.text.task import TextTask
from support import text_runs
from support.commands import refusal
from support.parameters import slow_except

TEXT = "吾輩《わがはい》は猫である。\nthe cat sat , the dog ran\r\n" * 60


@pytest.fixture(scope="module", params=slow_except(("characters",), ("characters", "bytes", "subwords")))
def run(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp(request.param)
    (folder / "text.txt").write_bytes(TEXT.encode())
    raw = msgspec.to_builtins(text_runs.recipe(epochs=1, window={"length": 10}), str_keys=True)
    raw["data"] = {
        "kind": "text",
        "tokenisation": request.param,
        "eos": "exact",
        "ruby": "remove",
        "subwords": {"size": 300, "coverage": 1.0},
        "test_fraction": 0.2,
    }
    experiment = Experiment(config.parse_recipe(raw, "toy"), folder / "run", data=folder / "text.txt")
    experiment.train()
    experiment.finish()
    return folder / "run"


def test_figures_are_of_the_same_text(run):
    (row,) = [row for row in json.loads((run / "results.json").read_text()) if row["split"] == "test"]
    split = TextRun(run).corpus().split("test")
    text = TextRun(run).tokeniser.decode(TextRun(run).vocabulary.decode(split.tokens))
    assert "《" not in text
    assert (row["characters"], row["bytes"]) == (len(text), len(text.encode()))
    assert row["words"] == len(text.split()) + text.count("\n")
    total = row["nll"] * row["tokens"]
    for unit in ("character", "byte", "word"):
        assert row[f"bits_per_{unit}"] == pytest.approx(total / math.log(2) / row[f"{unit}s"])
    assert row["word_perplexity"] == pytest.approx(math.exp(total / row["words"]))


def test_score_gives_the_text_back(run, tmp_path, capsysbinary):
    text = "the cat\r\n\n猫ran 吾輩"
    (tmp_path / "a.txt").write_bytes(text.encode())
    assert main(["score", str(run), str(tmp_path / "a.txt"), "--by", "sentence", "--json"]) == 0
    rows = [json.loads(line) for line in capsysbinary.readouterr().out.splitlines()]
    assert "\n".join(row["text"] for row in rows) == text


def test_a_row_of_a_sentence_is_one_line(run, tmp_path, capsys):
    (tmp_path / "a.txt").write_text("the cat\n\nran\n")
    assert main(["score", str(run), str(tmp_path / "a.txt"), "--by", "sentence"]) == 0
    header, *rows = capsys.readouterr().out.splitlines()
    assert [row.split("\t")[header.split("\t").index("text")] for row in rows] == ["the cat", "", "ran"]


def test_a_character_beyond_the_vocabulary_is_named_with_its_place(run, tmp_path, capsys):
    if TextRun(run).options.open_vocabulary:
        pytest.skip("every text can be spelt")
    path = tmp_path / "a.txt"
    path.write_text("the cat\nthe Cat\n" * 20)
    for command in ("evaluate", str(run), "--split", "all"), ("compare", str(run), str(run)):
        message = refusal(capsys, *command, "--data", path)
        assert f"{path}:2: the character 'C' is not in the vocabulary of " in message
    path.write_text("good\tbad\nthe cat\tthe Cat\n")
    message = refusal(capsys, "minimal-pairs", str(run), "--pairs", path)
    assert "'the Cat': the character 'C' is not in the vocabulary of " in message
    message = refusal(capsys, "compare", str(run), str(run), "--stimuli", path, "--column", "bad")
    assert "'the Cat': the character 'C' is not in the vocabulary of " in message


@pytest.mark.slow
def test_samples_are_exact(run, capsys):
    call = ["generate", str(run), "--prompt", "吾輩は\n", "--tokens", "60", "--seed", "3"]
    assert main([*call, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert TextRun(run).tokeniser.decode(told["words"]) == told["text"]
    assert len(told["words"]) == 60
    assert json.loads((run / "samples.json").read_text())


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@example("e\u0301 👩‍👩‍👧 \ufeff\u2028\x0b\x00\t  ▁ <unk> <eos> <0x41> \r\n\n\r")
@given(st.text(st.characters(codec="utf-8", exclude_characters="《》｜［］"), min_size=1))
def test_any_text_is_read_and_scored_exactly(run, text):
    loaded = TextRun(run)
    if not loaded.tokeniser.options.open_vocabulary:
        pytest.skip("characters that were not counted are an error")
    scored = list(loaded.score_text(loaded.reading(text)))
    assert loaded.tokeniser.decode([token for sentence, _ in scored for token in sentence.tokens]) == text
    assert all((log_probs < 0).all() for _, log_probs in scored)
    assert loaded.tokeniser.decode(loaded.vocabulary.decode(loaded.encode(text))) == text


@pytest.mark.slow
def test_any_bytes_are_scored_and_prompted_exactly(run, tmp_path, capsysbinary, monkeypatch):
    data = b"\xef\xbb\xbfthe \xff\xfe\r\n\xe7\x8c\r\n\n\xed\xa0\x80 cat"
    (tmp_path / "a.txt").write_bytes(data)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data), encoding="utf-8"))
    loaded = TextRun(run)
    if loaded.tokeniser.options.tokenisation != "bytes":
        for command in (["score", str(run), str(tmp_path / "a.txt")], ["generate", str(run), "--prompt", "-"]):
            assert main(command) == 2
            assert b"not UTF-8 at byte 7 (0xff)" in capsysbinary.readouterr().err
        return
    assert main(["generate", str(run), "--prompt", "-", "--tokens", "0"]) == 0
    assert capsysbinary.readouterr().out == data + b"\n"
    for form in ("tsv", "jsonl"):
        assert main(["score", str(run), str(tmp_path / "a.txt"), "--format", form]) == 0
        out = capsysbinary.readouterr().out.decode()
        rows = csv.DictReader(io.StringIO(out, newline=""), delimiter="\t")
        tokens = [row["token"] for row in (rows if form == "tsv" else map(json.loads, out.splitlines()))]
        assert to_bytes(loaded.tokeniser.decode(tokens)) == data
    assert main(["score", str(run), str(tmp_path / "a.txt"), "--by", "sentence", "--json"]) == 0
    rows = [json.loads(line) for line in capsysbinary.readouterr().out.splitlines()]
    assert to_bytes("\n".join(row["text"] for row in rows)) == data


def test_a_prompt_is_read_exactly(run):
    loaded = TextRun(run)
    ids = loaded.encode("the cat\r\n\n吾輩")
    assert loaded.tokeniser.decode(loaded.vocabulary.decode(ids)) == "the cat\r\n\n吾輩"


@pytest.mark.parametrize("split", ["valid", "test"])
def test_a_split_of_one_token_that_does_not_count_is_refused_before_training(split, tmp_path, capsys):
    data = text_runs.write_corpus(tmp_path / "data")
    (data / f"{split}.txt").write_text("w1")
    recipe, out = tmp_path / "r.toml", tmp_path / "run"
    recipe.write_text(config.dump_recipe(text_runs.recipe(epochs=1)))
    skip = ("--set", "data.evaluation.skip_first=true", "--set", "data.eos=none")
    line = refusal(capsys, "train", recipe, "--data", data, "--out", out, "--threads", "1", *skip)
    assert f"the {split} split of {data} has one token, which data.evaluation.skip_first leaves out" in line
    assert not out.exists()


def test_ends_of_lines_and_paragraphs_are_told_from_words():
    vocabulary = Vocabulary(("a", EOS, "b"), (3, 2, 1))
    for options, words in (
        (TextOptions(), " (3 words, 2 ends of lines)"),
        (TextOptions(tokenisation="raw", eos="paragraph"), " (3 words and marks, 2 ends of paragraphs)"),
        (TextOptions(tokenisation="characters"), " (3 characters, 2 ends of lines)"),
    ):
        task = SimpleNamespace(corpus=SimpleNamespace(vocabulary=vocabulary, options=options))
        assert TextTask._ends(task, SimpleNamespace(tokens=np.array([0, 1, 2, 0, 1]))) == words
        assert TextTask._ends(task, SimpleNamespace(tokens=np.array([0, 2]))) == ""
