"""The examples run, at their smallest sizes, and show what they claim."""

import re
import runpy
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
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


def test_every_example_is_short_and_run_here():
    for path in EXAMPLES.glob("*.py"):
        assert len(path.read_text("utf-8").splitlines()) <= 150, path.name
        assert f'run("{path.stem}", "--tiny"' in Path(__file__).read_text("utf-8"), path.name


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
    free, bounded, reflected, stable = out.splitlines()
    assert number(free, "sigma_1") > 2
    assert number(bounded, "; sigma_1") == pytest.approx(1.8, abs=1e-3)
    assert number(bounded, "Jacobian") < 1 < number(free, "Jacobian")
    assert 1 < number(reflected, "; sigma_1") <= 1.1
    assert number(stable, "perplexity") != number(free, "perplexity")
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


def test_speech_by_ctc_and_by_a_transducer(run, tmp_path, monkeypatch):
    """With tones in the place of a synthesiser: each word has two of its own, and each voice a pitch."""
    draw, called = np.random.default_rng(0), subprocess.run

    def speak(command, **rest):
        if command[0] != "espeak-ng":
            return called(command, **rest)
        tones = [100 * (1 + (7 * ord(letter)) % 26) for word in command[-1].split() for letter in (word[0], word[-1])]
        times, pitch = np.arange(1800) / 22050, draw.uniform(0.95, 1.05)
        sound = np.concatenate([np.sin(2 * np.pi * tone * pitch * times) for tone in tones])
        return SimpleNamespace(stdout=bytes(44) + (10_000 * sound).astype(np.int16).tobytes())

    monkeypatch.setattr(subprocess, "run", speak)
    _, names = run("speech", "--tiny", "--out", tmp_path)
    assert len(names["rates"]) == 4
    assert max(names["rates"].values()) < 0.3
    assert (tmp_path / "speech.png").stat().st_size > 10_000
    for name in ("CTC", "transducer"):
        rows = [row.split("\t") for row in (tmp_path / f"test-{name}.tsv").read_text().splitlines()]
        assert {row[0] for row in rows} == {str(n) for n in range(names["HELD"])}
        assert all(float(row[1]) <= 0 for row in rows)


def test_levels_of_language_models_help_a_tagger(run, tmp_path):
    _, names = run("elmo", "--tiny", "--out", tmp_path / "elmo.png")
    assert names["rates"]["weighted levels"][-1] > names["rates"]["without"][-1]
    assert (tmp_path / "elmo.png").stat().st_size > 10_000


def test_a_network_over_trees_finds_identities(run):
    out, names = run("identities", "--tiny")
    assert names["rates"]["over trees"] > max(names["common"], names["rates"]["over symbols"])
    assert number(out, "over trees:") == pytest.approx(100 * names["rates"]["over trees"], abs=0.1)
    assert names["right"] > 4
    table = names["table"]
    assert table(("or", ("and", "a", "b"), ("not", "c"))) == 0b11010101
    assert table(("not", ("and", "a", "b"))) == table(("or", ("not", "a"), ("not", "b")))


def test_reviews_are_read_in_order(run, tmp_path):
    """Also the reviews of a file, whose words alone say the label."""
    _, names = run("reviews", "--tiny")
    assert names["rates"]["in order"] > 0.9 > 0.7 > names["rates"]["without order"]
    lines = [f"{label}\tThis was {label} {n}" for n in range(40) for label in ("fine", "poor", "odd")]
    (tmp_path / "own.tsv").write_text("\n".join(lines))
    _, names = run("reviews", "--tiny", "--data", tmp_path / "own.tsv")
    assert names["labels"] == ["fine", "odd", "poor"]
    assert min(names["rates"].values()) > 0.9


def test_a_chain_over_the_tags_tags_more_sentences(run):
    _, names = run("tags_crf", "--tiny")
    sentences = {name: shares[0][1] for name, shares in names["results"].items()}
    assert sentences["counts"] < sentences["softmax"] < sentences["random field"] < sentences["who knows the chain"]
    assert sentences["counts"] < sentences["Markov model"] < sentences["who knows the chain"]


def test_the_noisy_channel_takes_among_candidates(run):
    """Sixty steps teach little: that all five ways take some, and none is above the best candidate."""
    _, names = run("noisy_channel", "--tiny")
    (best,) = names["results"].pop("the best candidate")
    assert len(names["results"]) == 5
    assert all(1 / 40 < shares[0] <= best for shares in names["results"].values())


def test_a_bag_of_words_is_put_in_order(run):
    _, names = run("bag_of_words", "--tiny")
    (_, used), (_, without) = names["results"]["in any order"][0], names["results"]["without the bag"][0]
    assert used == 1 > without
    assert names["results"]["with the bag"][0][1] > without


def test_handwriting_reads_its_text_through_the_window(run, tmp_path):
    pytest.importorskip("HersheyFonts", reason="the example writes in fonts of the package Hershey-Fonts")
    out, names = run("handwriting", "--tiny", "--picture", tmp_path / "lines.png")
    chance, blind, seeing = names["results"].values()
    assert max(blind, seeing) < chance - 0.5
    assert number(out, "given another text") > seeing + 0.05, "it reads the text that it is given"
    assert number(out, "window on the letter") > 0.4
    assert (tmp_path / "lines.png").is_file()


def test_captions_look_at_what_they_name(run, tmp_path):
    out, names = run("captions", "--tiny", "--hard", "--picture", tmp_path / "attention.png")
    once, soft, hard = (results[0]["colour"] for results in names["results"].values())
    assert soft > max(once, 0.8)
    assert hard > max(once, 0.4)
    assert number(out, "right shape") > 0.6
    assert (tmp_path / "attention.png").is_file()


def test_digits_are_told_apart_by_four_losses(run):
    pytest.importorskip("sklearn", reason="the digits come with scikit-learn")
    out, names = run("digits", "--tiny")
    assert len(names["results"]) == 8
    for (_, bounded), ((right,), _, (gain,)) in names["results"].items():
        assert right > (0.7 if bounded else 0.9)
        assert gain <= 1 + 1e-5 if bounded else gain > 2
    assert number(out, "softmax, without a bound: right") > 90


def test_digits_say_what_they_lack(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    with pytest.raises(SystemExit, match="come with scikit-learn, which is not installed"):
        run("digits", "--tiny")
