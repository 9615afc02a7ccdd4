"""Runs on trees: all that decodes writes trees over the words of the source, unless --unconstrained is set."""

import json

import msgspec
import numpy as np
import pytest

from elman import config
from elman.cli import main
from elman.config.inference import Beam
from elman.data.trees.brackets import to_tree
from elman.decoding.beam import beam_search
from elman.kinds.pairs.evaluation import evaluate_output, write_targets
from elman.kinds.pairs.record import PairEvaluation
from elman.kinds.pairs.run import PairRun
from elman.learning.trainer import StopReason
from elman.report.page import write_report
from elman.tasks.experiment import Experiment

RECIPE = {
    "title": "toy trees",
    "data": {
        "kind": "pairs",
        "form": "trees",
        "tags": "keep",
        "valid": 6,
        "test": 6,
        "max_source": 9,
        "max_target": 40,
        "evaluation": {"beam": 2},
    },
    "model": {
        "encoder": {"kind": "lookup", "size": 6},
        "source": {"stack": {"kind": "stack", "sizes": [3]}, "encoder": {"kind": "lookup", "size": 6}},
        "core": {"kind": "attentive", "stack": {"kind": "stack", "sizes": [6]}},
    },
    "training": {"epochs": 1, "batch_size": 16, "optimiser": {"kind": "adam", "lr": 0.03}},
}


def grown(draw, depth):
    """A tree of two to eight words, in brackets."""
    if depth == 0:
        return f"({draw.choice(['DT', 'NN', 'VB'])} {draw.choice(list('abcdefgh'))})"
    below = (grown(draw, depth - 1 - draw.integers(depth)) for _ in range(2))
    return f"({draw.choice(['NP', 'VP'])} {' '.join(below)})"


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder, draw = tmp_path_factory.mktemp("trees"), np.random.default_rng(0)
    (folder / "bank.txt").write_text("".join(f"(ROOT {grown(draw, 3)})\n" for _ in range(60)), encoding="utf-8")
    experiment = Experiment(config.parse_recipe(RECIPE, "r"), folder / "run", data=folder / "bank.txt")
    assert experiment.train() is StopReason.FINISHED
    experiment.finish()
    return folder / "run"


def are_trees(lines, sentences):
    found = [to_tree(line.split(), text.split()) for line, text in zip(lines, sentences, strict=True)]
    return [one.repairs == 0 for one in found]


@pytest.mark.slow
def test_a_run_writes_trees_alone(trained):
    held = PairRun(trained).corpus().split("test")
    lines = (trained / "output-test.txt").read_text().splitlines()
    assert all(are_trees(lines, held.source_text))
    output = json.loads((trained / "results.json").read_text())[1]["output"]
    assert output["constrained"] is True
    assert {one["name"]: one["value"] for one in output["measures"]}["well-formed"] == 100
    for sample in json.loads((trained / "samples.json").read_text()):
        assert are_trees([sample["text"]], [sample["prompt"]]) == [True]
    assert "beam 2, constrained</th>" in write_report([trained]).read_text()


@pytest.mark.slow
def test_what_is_written_does_not_depend_on_the_batch(trained):
    run = PairRun(trained)
    corpus = run.corpus()
    lines = (trained / "output-test.txt").read_text().splitlines()
    for size in (1, 4):
        rules = run.data.evaluation
        assert write_targets(run.model, corpus, corpus.split("test"), rules, batch_size=size) == lines


@pytest.mark.slow
def test_unconstrained_is_the_plain_search(trained):
    run = PairRun(trained)
    corpus = run.corpus()
    pairs, words = corpus.split("test"), corpus.symbols.target
    lines, worth = evaluate_output(run.model, corpus, pairs, PairEvaluation(beam=2, constrained=False))
    batch = corpus.gather(pairs, list(range(len(pairs))))
    plain = beam_search(run.model, batch.source, Beam(size=2, max_length=40), words.eos, (words.unk,))
    assert lines == [" ".join(words.decode(best.symbols)) for best, *_ in plain]
    assert not all(are_trees(lines, pairs.source_text))
    assert worth.constrained is False


@pytest.mark.slow
def test_every_command_writes_trees(trained, tmp_path, capsys):
    held = PairRun(trained).corpus().split("test")
    source = tmp_path / "source.txt"
    source.write_text("".join(f"{line}\n" for line in held.source_text), encoding="utf-8")

    def written(*arguments):
        assert main([*arguments, "--device", "cpu"]) == 0
        return capsys.readouterr().out

    translate = ("translate", str(trained), "--source", str(source), "--beam", "2")
    assert written(*translate) == (trained / "output-test.txt").read_text()
    free = written(*translate, "--unconstrained").splitlines()
    assert not all(are_trees(free, held.source_text))
    assert "beam 2, constrained" in written("evaluate", str(trained))
    told = json.loads(written("evaluate", str(trained), "--unconstrained", "--json"))
    assert told["output"]["constrained"] is False
    page = ("analyze", "attention", str(trained), "--source", str(source), "--out", str(tmp_path / "a.html"), "--json")
    lines = [" ".join(one["target"][:-1]) for one in json.loads(written(*page))["pairs"]]
    assert all(are_trees(lines, held.source_text))


@pytest.mark.slow
def test_the_recipe_decides_where_nothing_else_does(trained):
    run = PairRun(trained)
    line = run.corpus().split("test").source_text[0]
    free = run.translate([line], Beam(max_length=40), constrained=False)
    run.data = msgspec.structs.replace(run.data, evaluation=PairEvaluation(constrained=False))
    assert run.translate([line], Beam(max_length=40))[0][0].words == free[0][0].words
    (tree,) = run.translate([line], constrained=True)
    assert are_trees([tree[0].text], [line]) == [True]
