"""Recipes whose rule goes step by step: trained, interrupted and resumed like any other."""

import json

import msgspec
import pytest

from elman import config
from elman.config.toml import find
from elman.errors import UserError
from elman.learning import checkpoint
from elman.learning.trainer import StopReason
from elman.tasks.experiment import Experiment
from support import text_runs
from support.interruption import StopAt

RULES = {
    "rtrl": {"rule": {"kind": "rtrl"}},
    "bptt-3-forced": {"rule": {"kind": "bptt", "steps": 3}, "forcing": {"schedule": "linear", "scale": 0.5}},
    "gradient-norm": {"penalties": {"gradient_norm": 0.1}},
}


@pytest.fixture
def corpus(tmp_path, monkeypatch):
    monkeypatch.setenv("ELMAN_CACHE", str(tmp_path / "cache"))
    return text_runs.write_corpus(tmp_path / "corpus", {"train": 30, "valid": 5, "test": 5})


def recipe(**training):
    plain = config.Model(encoder=config.Lookup(size=4), core=config.Stack(sizes=(4,), cell=config.Elman(), biases=1))
    base = text_runs.recipe(epochs=1, batch_size=2, window={"length": 6}, penalties={}, **training)
    return msgspec.structs.replace(base, model=plain)


@pytest.mark.slow
@pytest.mark.parametrize("rule", RULES)
def test_resumed_is_the_same_run_bit_for_bit(rule, corpus, tmp_path):
    settings = dict(RULES[rule])
    penalties = settings.pop("penalties", {})
    made = recipe(**settings)
    training = msgspec.structs.replace(made.training, penalties=config.Penalties(**penalties))
    made = msgspec.structs.replace(made, training=training)
    whole = Experiment(made, tmp_path / "whole", data=corpus)
    assert whole.train() is StopReason.FINISHED
    assert Experiment(made, tmp_path / "broken", data=corpus).train([StopAt(7)]) is StopReason.INTERRUPTED
    assert Experiment(made, tmp_path / "broken", data=corpus, resume=True).train() is StopReason.FINISHED
    places = [tmp_path / name / "checkpoint.safetensors" for name in ("whole", "broken")]
    assert len({checkpoint.digest_of(checkpoint.load(place)[0]) for place in places}) == 1


def test_a_network_too_big_for_rtrl_leaves_nothing_behind(corpus, tmp_path):
    big = recipe(rule={"kind": "rtrl", "max_gb": 1e-6})
    with pytest.raises(UserError, match=r"would need .* more than the 1e-06 GB of training\.rule\.max_gb"):
        Experiment(big, tmp_path / "run", data=corpus)
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_the_recipe_of_rtrl_learns_characters(corpus, tmp_path):
    settings = ["training.batch_size=4", "training.log_every=20", "data.evaluation.streams=4"]
    made = config.load_recipe(find("shakespeare/rtrl.toml"), settings)
    assert made.training.rule == config.RTRL()
    assert Experiment(made, tmp_path / "run", data=corpus).train() is StopReason.FINISHED
    records = map(json.loads, (tmp_path / "run" / "metrics.jsonl").read_text().splitlines())
    losses = [record["loss"] for record in records if record["kind"] == "train"]
    assert losses[-1] < 0.8 * losses[0]
