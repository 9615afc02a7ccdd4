"""Every core through the whole machine: trained, stopped, resumed, adapted; one key of a recipe says which."""

import json

import msgspec
import pytest
import torch

from elman import config
from elman.cli import main
from elman.evaluation.dynamic import DynamicModel, Rule
from elman.learning import checkpoint
from elman.tasks.experiment import Experiment
from elman.tasks.text.run import TextRun
from support import text_runs
from support.interruption import StopAt

CORES = {
    "highway": config.Stack(sizes=(8,), cell=config.Highway(depth=2), recurrent_dropout=0.2, weight_drop=0.2),
    "mogrifier": config.Stack(sizes=(8, 8), cell=config.Mogrifier(rank=2), connections="melis", between_dropout=0.1),
    "ladder": config.Stack(sizes=(8, 8), cell=config.Ladder(), connections="graves", output_dropout=0.1),
    "jordan": config.Jordan(size=8, output_dropout=0.1),
    "jordan-target": config.Jordan(size=8, feedback="target", decay=0.5),
    "ntm": config.TuringMachine(size=8, rows=6, width=4, read_heads=2, output_dropout=0.1),
    "mlstm": config.Residual(size=8, depth=1, cell=config.MLSTM(heads=2), dropout=0.1),
    "rg-lru": config.Residual(size=8, depth=1, cell=config.RGLRU(heads=2), output_dropout=0.1, feed_forward="none"),
    "reservoir": config.Reservoir(size=30, leak=0.5, output_dropout=0.1),
}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return text_runs.write_corpus(tmp_path_factory.mktemp("corpus"), {"train": 50, "valid": 10, "test": 10})


def recipe(core):
    raw = msgspec.to_builtins(text_runs.recipe(epochs=1), str_keys=True)
    raw["model"] |= {"core": msgspec.to_builtins(core), "output": {"choice": {"kind": "flat"}}}
    return config.parse_recipe(raw, "toy")


@pytest.mark.slow
@pytest.mark.parametrize("name", CORES)
def test_a_run_of_every_core(name, tmp_path, corpus):
    given = recipe(CORES[name])
    Experiment(given, tmp_path / "one", data=corpus).train()
    Experiment(given, tmp_path / "two", data=corpus).train([StopAt(5)])
    Experiment(given, tmp_path / "two", data=corpus, resume=True).train()
    tensors = [checkpoint.load(tmp_path / run / "checkpoint.safetensors")[0] for run in ("one", "two")]
    assert checkpoint.digest_of(tensors[0]) == checkpoint.digest_of(tensors[1])
    records = map(json.loads, (tmp_path / "one" / "metrics.jsonl").read_text().splitlines())
    losses = [record["loss"] for record in records if record["kind"] == "train"]
    assert losses[-1] < losses[0]
    run = TextRun(tmp_path / "one")
    assert len(run.words(count=5, seed=1)) == 5
    words = torch.randint(20, (6, 2))
    adapting = DynamicModel(run.model, Rule(kind="sgd", lr=0.1))
    before = [parameter.clone() for parameter in run.model.parameters()]
    first = adapting.read(words[:-1], words[1:], run.model.begin(2))
    again = adapting.read(words[:-1], words[1:], run.model.begin(2))
    assert again.log_prob.sum() > first.log_prob.sum()
    assert all(torch.equal(old, new) for old, new in zip(before, run.model.parameters(), strict=True))


@pytest.mark.slow
def test_one_key_changes_the_core(tmp_path, corpus):
    path = tmp_path / "recipe.toml"
    path.write_text(config.dump_recipe(recipe(config.Stack(sizes=(8, 8)))))
    for key in (
        'model.core={kind="jordan", size=8}',
        'model.core.cell={kind="highway", depth=2}',
        'model.core.connections="graves"',
        'model.core={kind="reservoir", size=20}',
        'model.core={kind="ntm", size=8, controller={kind="feed-forward"}}',
    ):
        assert main(["train", str(path), "--data", str(corpus), "--dry-run", "--set", key]) == 0
