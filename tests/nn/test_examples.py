"""The examples run, at their smallest sizes, and show what they claim."""

import re
import runpy
import sys
from pathlib import Path

import pytest
import torch

EXAMPLES = Path(__file__).parents[2] / "examples"
pytestmark = pytest.mark.skipif(not EXAMPLES.is_dir(), reason="the examples are in a checkout alone")


@pytest.fixture
def run(monkeypatch, capsys):
    """From the name of an example and its arguments to what it printed, and its names."""

    def run(name, *arguments):
        monkeypatch.setattr(sys, "argv", [name, *map(str, arguments)])
        names = runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
        return capsys.readouterr().out, names

    return run


def number(text, before):
    """The number that follows some words."""
    return float(re.search(rf"{before} ([\d.]+)", text)[1])


def test_awd_lstm_learns_adapts_and_is_saved(run, tmp_path):
    for split, count in (("train", 90), ("valid", 12), ("test", 12)):
        (tmp_path / f"{split}.txt").write_text("a rose is a rose , it said\n" * count)
    out, names = run("awd_lstm", "--tiny", "--data", tmp_path, "--epochs", 5, "--save", tmp_path / "new.safetensors")
    assert number(out, "validation") < 8
    assert number(out, "with a cache") < 8
    assert names["number"]["<eos>"] < 8
    assert (tmp_path / "new.safetensors").is_file()
    assert names["model"].output.weight is names["model"].encoder.weight


def test_constrained_gru_stays_below_the_bound(run):
    out, names = run("constrained_gru", "--tiny", "--rate", 0.03)
    free, bounded = out.splitlines()
    assert number(free, "sigma_1") > 2
    assert number(bounded, "; sigma_1") == pytest.approx(1.8, abs=1e-3)
    assert number(bounded, "Jacobian") < 1 < number(free, "Jacobian")
    assert isinstance(names["model"].core, torch.nn.Module)


def test_a_mixture_has_a_higher_rank(run):
    out, _ = run("mixture_of_softmaxes", "--tiny")
    softmax, _, mixture = (line for line in out.splitlines() if "parameters" in line)
    assert number(softmax, "rank") <= 6
    assert number(mixture, "perplexity") < 64


def test_a_cell_of_ones_own_learns_and_leaves(run, tmp_path):
    out, names = run("own_cell", "--tiny", "--out", tmp_path)
    assert names["errors"]["Independent"] < 1 / 6
    assert "saved, and exported" in out
    assert {path.name for path in tmp_path.iterdir()} == {"adding.safetensors", "adding.pt2"}


def test_the_kalman_filter_needs_fewer_updates(run):
    _, names = run("kalman", "--tiny")
    filtered, descended = names["results"].values()
    assert filtered[0] < descended[0] / 2


def test_handwriting_reads_its_text_through_the_window(run, tmp_path):
    pytest.importorskip("HersheyFonts", reason="the example writes in fonts of the package Hershey-Fonts")
    out, names = run("handwriting", "--tiny", "--picture", tmp_path / "lines.png")
    chance, blind, seeing = names["results"].values()
    assert seeing < blind < chance - 0.5
    assert number(out, "given another text") > seeing
    assert (tmp_path / "lines.png").is_file()


def test_captions_look_at_what_they_name(run, tmp_path):
    out, names = run("captions", "--tiny", "--picture", tmp_path / "attention.png")
    once, soft = (results[0]["colour"] for results in names["results"].values())
    assert soft > max(once, 0.8)
    assert number(out, "right shape") > 0.6
    assert (tmp_path / "attention.png").is_file()
