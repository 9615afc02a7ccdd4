"""elman analyze, from the command line to the page."""

import json
import os
import shutil
import subprocess

import msgspec
import numpy as np
import pytest

from elman import config
from elman.analysis.rank import spectrum
from elman.cli import main
from elman.network.output.activation import ACTIVATIONS
from elman.tasks.experiment import Experiment
from elman.tasks.text.run import TextRun
from support import text_runs
from support.commands import refusal
from support.systems import posix

MIXTURE = {"kind": "mixture", "heads": {1: 1, 2: 2}, "size": 8}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A softmax and a mixture, each trained for an epoch."""
    folder = tmp_path_factory.mktemp("analyze")
    text = text_runs.write_corpus(folder / "text")
    plain = msgspec.to_builtins(text_runs.recipe(epochs=1), str_keys=True)
    for name, contexts in (("softmax", {"kind": "single"}), ("doc", MIXTURE)):
        plain["model"]["output"]["contexts"] = contexts
        Experiment(config.parse_recipe(plain, "toy"), folder / name, data=text).train()
    return folder


@pytest.fixture
def analyze(capsys):
    """Run an analysis and return its standard output."""

    def call(*arguments):
        status = main(["analyze", *map(str, arguments)])
        captured = capsys.readouterr()
        assert status == 0, captured.err
        return captured.out

    return call


def assert_self_contained(page):
    text = page.read_text(encoding="utf-8")
    assert text.startswith("<!doctype html>")
    for reference in ("http:", "https:", "<script", "<link", "<img", "@import", "{{", "{%"):
        assert reference not in text.replace("http://www.w3.org/", "")
    return text


@pytest.mark.slow
def test_rank_of_one_run_is_written_beside_it(runs, analyze):
    found = json.loads(analyze("rank", runs / "softmax", "--json", "--dtype", "float64"))
    (row,) = found["runs"]
    assert (row["size"], row["bound"], row["num_tokens"], row["method"]) == (8, 10, 200, "exact")
    assert row["rank"] == 10
    assert not row["exceeds"]
    text = assert_self_contained(runs / "softmax/rank.html")
    assert "a softmax with d = 8 never exceeds d + 2 = 10; the rank 10 is within it" in text
    (written,) = json.loads((runs / "softmax/rank.json").read_text())
    run = TextRun(runs / "softmax")
    expected = spectrum(run.model.double(), run.corpus().split("test").tokens, run.first, method="exact")
    np.testing.assert_allclose(written["singular_values"], expected.singular_values, rtol=1e-6, atol=1e-9)
    assert "singular_values" not in row


@pytest.mark.slow
@posix
def test_the_page_of_ranks_goes_into_a_pipe_and_no_file_beside_it(runs, analyze, tmp_path):
    places = tmp_path / "pipe", tmp_path / "page"
    os.mkfifo(places[0])
    with places[1].open("wb") as file, subprocess.Popen(["cat", str(places[0])], stdout=file):
        found = json.loads(analyze("rank", runs / "softmax", "--json", "--out", places[0]))
    assert "</html>" in places[1].read_text()
    assert found["singular_values"] is None
    assert {*tmp_path.iterdir()} == {*places}


def test_the_page_of_ranks_is_not_replaced_by_its_values(runs, tmp_path, capsys):
    said = refusal(capsys, "analyze", "rank", str(runs / "softmax"), "--out", str(tmp_path / "rank.json"))
    assert "the singular values are written as JSON beside the page; name it .html" in said
    assert not any(tmp_path.iterdir())


@pytest.mark.slow
def test_ranks_of_several_runs_share_a_page(runs, analyze, tmp_path):
    out = tmp_path / "both.html"
    told = analyze("rank", runs / "softmax", runs / "doc", "--dtype", "float64", "--out", out, "--max-tokens", "90")
    told = " ".join(told.split())
    assert "softmax: a softmax with d = 8 never exceeds d + 2 = 10; the rank 10 is within it." in told
    assert "doc: not bounded by d; the rank" in told
    text = assert_self_contained(out)
    assert text.count('class="key"') >= 2
    assert [len(row["singular_values"]) for row in json.loads(out.with_suffix(".json").read_text())] == [21, 21]


def test_ranks_over_other_texts_are_not_taken_for_those_of_one(runs, tmp_path, capsys):
    shutil.copytree(runs / "softmax", tmp_path / "other")
    shutil.copytree(runs / "text", tmp_path / "text")
    facts = json.loads((tmp_path / "other" / "data.json").read_text())
    (tmp_path / "other" / "data.json").write_text(json.dumps({**facts, "source": str(tmp_path / "text")}))
    page = tmp_path / "rank.html"
    command = ["analyze", "rank", str(runs / "softmax"), str(tmp_path / "other"), "--max-tokens", "40"]
    assert main([*command, "--out", str(page)]) == 0
    assert "the runs read other data each" in capsys.readouterr().err
    assert f"of the test split of {runs / 'text'}, or of {tmp_path / 'text'}." in page.read_text()


@pytest.mark.slow
@pytest.mark.parametrize("method", ["gram", "exact", "randomised"])
def test_every_method_can_be_asked_for(method, runs, analyze, tmp_path, drawn):
    found = json.loads(
        analyze("rank", runs / "doc", "--method", method, "--values", "5", "--json", "--out", tmp_path / "rank.html")
    )
    assert found["runs"][0]["method"] == method
    assert found["runs"][0]["dtype"] == "float32"


@pytest.mark.slow
def test_outputs_need_no_run(analyze, tmp_path):
    out = tmp_path / "outputs.html"
    told = analyze("outputs", "--out", out)
    assert "Softmax never exceeds 2." in told
    text = assert_self_contained(out)
    assert text.count("<svg") == 2 * len(ACTIVATIONS) + 1
    some = json.loads(analyze("outputs", "--activation", "softmax", "sigsoftmax", "--out", out, "--json"))
    assert {row["activation"] for row in some["ranks"]} == {"softmax", "sigsoftmax"}
    assert all(row["rank"]["8"] == (2 if row["activation"] == "softmax" else 8) for row in some["ranks"])


def test_outputs_of_softmax_alone(analyze, tmp_path):
    assert "Softmax never exceeds 2." in analyze("outputs", "--activation", "softmax", "--out", tmp_path / "o.html")


@pytest.mark.slow
def test_mixture_over_a_text(runs, analyze, tmp_path):
    text = tmp_path / "some.txt"
    text.write_text("w3 w1 w2\nw5 w3\n")
    told = analyze("mixture", runs / "doc", text)
    assert "3 components (1 from layer 1, 2 from layer 2)" in told
    assert "Weights by layer" in assert_self_contained(runs / "doc/mixture.html")
    found = json.loads(analyze("mixture", runs / "doc", text, "--json", "--top", "2", "--out", tmp_path / "m.html"))
    assert [token["token"] for token in found["tokens"]] == ["w3", "w1", "w2", "<eos>", "w5", "w3", "<eos>"]
    assert sum(component["weight"] for component in found["components"]) == pytest.approx(1)
    assert all(len(top) == 2 for token in found["tokens"] for top in token["top"])
    assert 1 <= found["effective_number"] <= 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["rank", "{runs}/none"], "none is not a run folder"),
        (["rank", "{runs}/softmax", "--max-tokens", "0"], "--max-tokens is 0; it must be 1 or more"),
        (["rank", "{runs}/softmax", "--split", "dev"], "no dev split; it has"),
        (["rank", "{runs}/softmax", "--out", "{runs}"], "is a folder; give the name of a file, such as"),
        (["outputs", "--activation", "tanh"], "--activation tanh: unknown; choose among softmax"),
        (["mixture", "{runs}/softmax", "{runs}/text/test.txt"], "not a mixture"),
        (["mixture", "{runs}/doc", "{runs}/none.txt"], "none.txt: cannot be read"),
    ],
)
@pytest.mark.slow
def test_analyze_mistakes_are_one_line(arguments, message, runs, capsys):
    assert main(["analyze", *(part.format(runs=runs) for part in arguments)]) == 2
    told = capsys.readouterr().err
    assert message in told
    assert told.count("\n") == 1
