"""What a model of pairs writes for a split: the same for every batch size, and measured beside a baseline."""

import json

import msgspec
import pytest
import torch

from elman import config
from elman.cli import main
from elman.kinds.pairs.corpus import open_pairs
from elman.kinds.pairs.evaluation import measure_output, write_targets
from elman.kinds.pairs.measures import references
from elman.kinds.pairs.record import PairEvaluation
from elman.network.build import build_model

RECIPE = {
    "title": "backwards",
    "data": {
        "kind": "pairs",
        "valid": 6,
        "test": 6,
        "measures": "headlines",
        "max_source": 6,
        "max_target": 12,
        "evaluation": {"beam": 2},
    },
    "model": {
        "encoder": {"kind": "lookup", "size": 6},
        "source": {"stack": {"kind": "stack", "sizes": [3]}, "encoder": {"kind": "lookup", "size": 6}},
        "core": {"kind": "attentive", "stack": {"kind": "stack", "sizes": [6]}},
    },
    "training": {"epochs": 1, "batch_size": 16, "optimiser": {"kind": "adam", "lr": 0.01}},
}


@pytest.fixture
def pairs_file(tmp_path):
    words = ["one", "two", "three", "four", "five"]
    lines = [f"{' '.join(words[(n * k) % 5] for k in range(1, 2 + n % 6))} w{n}" for n in range(40)]
    path = tmp_path / "pairs.tsv"
    path.write_text("".join(f"{line}\t{' '.join(reversed(line.split()))}\n" for line in lines), encoding="utf-8")
    return path


@pytest.fixture
def corpus(pairs_file):
    return open_pairs(pairs_file, config.parse_recipe(RECIPE, "r").data.options)


@pytest.fixture
def model(corpus):
    torch.manual_seed(3)
    vocabulary = corpus.symbols.target
    recipe = config.parse_recipe(RECIPE, "r").model
    return build_model(recipe, len(vocabulary), vocabulary.counts, len(corpus.symbols.source)).eval()


@pytest.mark.parametrize("beam", [1, 3])
def test_output_does_not_depend_on_the_batch(corpus, model, beam):
    rules, pairs = PairEvaluation(beam=beam), corpus.split("test")
    alone = write_targets(model, corpus, pairs, rules, batch_size=1)
    assert alone == write_targets(model, corpus, pairs, rules, batch_size=6)
    assert all(0 <= len(line.split()) <= 100 and "<unk>" not in line for line in alone)


def test_an_unknown_word_is_that_of_the_source(corpus, model):
    """With a bias that makes every symbol unknown, only words of the source come out."""
    vocabulary, pairs = corpus.symbols.target, corpus.split("test")
    with torch.no_grad():
        model.output.choice.bias[vocabulary.unk] = 50.0
    copied = write_targets(model, corpus, pairs, PairEvaluation(beam=1, copy_unknown=True))
    for line, text in zip(copied, pairs.source_text, strict=True):
        assert line
        assert set(line.split()) <= set(text.split()[:6])


@pytest.mark.slow
def test_the_right_output_has_the_best_figures(corpus):
    pairs = corpus.split("test")
    quality = measure_output(references(pairs, corpus.symbols), corpus, pairs, PairEvaluation(beam=3))
    assert [one.value for one in quality.measures] == pytest.approx([100, 100, 100, 100])
    assert quality.baseline_name.startswith("first ")
    assert quality.baseline[1].value < 100
    assert "constrained" not in msgspec.to_builtins(quality)


@pytest.mark.slow
def test_a_run_keeps_its_output_and_what_it_is_worth(pairs_file, tmp_path, capsys):
    recipe, run = tmp_path / "recipe.toml", tmp_path / "run"
    recipe.write_text(config.dump_recipe(config.parse_recipe(RECIPE, "r")), encoding="utf-8")
    assert main(["train", str(recipe), "--data", str(pairs_file), "--out", str(run), "--device", "cpu"]) == 0
    assert "ROUGE-1" in capsys.readouterr().out
    lines, right = ((run / f"{name}-test.txt").read_text().splitlines() for name in ("output", "reference"))
    assert len(lines) == len(right) == 6
    (test,) = [row for row in json.loads((run / "results.json").read_text()) if row["split"] == "test"]
    assert test["output"]["beam"] == 2
    assert main(["evaluate", str(run), "--beam", "2", "--json", "--device", "cpu"]) == 0
    again = json.loads(capsys.readouterr().out)
    assert again["output"] == test["output"]
    assert main(["evaluate", str(run), "--beam", "1", "--device", "cpu"]) == 0
    assert "beam 1" in capsys.readouterr().out
