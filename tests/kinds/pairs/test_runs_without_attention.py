"""A run on pairs whose decoder has no attention: what it writes, and what it refuses."""

import json

import pytest

from elman import config
from elman.cli import main
from elman.config.inference import Beam
from elman.errors import UserError
from elman.kinds.pairs.run import PairRun
from elman.report.page import write_report
from elman.tasks.experiment import Experiment

RECIPE = """
title = "toy pairs"
[model]
encoder = { kind = "lookup", size = 8 }
source = { encoder = { kind = "lookup", size = 8 }, stack = { sizes = [8] }, bidirectional = false }
core = { kind = "stack", sizes = [8] }
[training]
epochs = 1
optimiser = { kind = "adam" }
[data]
kind = "pairs"
valid = 4
test = 4
"""


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pairs")
    (folder / "toy.toml").write_text(RECIPE)
    words = ["one", "two", "three", "four"]
    lines = [f"{a} {b} {c}\t{b} {a}" for a in words for b in words for c in words[:2]]
    (folder / "toy.tsv").write_text("\n".join(lines) + "\n")
    experiment = Experiment(config.load_recipe(folder / "toy.toml"), folder / "run", data=folder / "toy.tsv")
    experiment.train()
    experiment.finish()
    return folder / "run"


@pytest.mark.slow
def test_the_folder_has_output_and_samples_and_no_attention(trained):
    samples = json.loads((trained / "samples.json").read_text())
    assert len(samples) == 4
    assert all(sample.keys() == {"prompt", "reference", "text"} for sample in samples)
    assert len((trained / "output-test.txt").read_text().splitlines()) == 4
    assert 'class="attention"' not in write_report([trained]).read_text()


def test_what_needs_attention_is_refused(trained, tmp_path, capsys):
    run = PairRun(trained)
    assert not run.translate(["one two"])[0][0].attention.any()
    with pytest.raises(UserError, match="--copy needs attention"):
        run.translate(["one two"], copy=True)
    with pytest.raises(UserError, match="--coverage needs attention"):
        run.translate(["one two"], Beam(coverage=0.1))
    source = tmp_path / "source.txt"
    source.write_text("one two\n")
    assert main(["translate", str(trained), "--source", str(source), "--attention", str(tmp_path / "page.html")]) == 2
    assert "--attention needs attention to the source" in capsys.readouterr().err
    assert main(["analyze", "attention", str(trained), "--source", str(source)]) == 2
    assert "elman analyze attention needs attention to the source" in capsys.readouterr().err


def test_a_recipe_cannot_copy_what_no_weight_points_at(tmp_path):
    (tmp_path / "toy.toml").write_text(RECIPE)
    with pytest.raises(UserError, match=r"data.evaluation.copy_unknown .* no attention"):
        config.load_recipe(tmp_path / "toy.toml", ["data.evaluation.copy_unknown=true"])
