"""The input-to-output gate trained alone on another run, as its paper does."""

import msgspec
import pytest
import torch

from elman import config
from elman.errors import UserError
from elman.learning import checkpoint
from elman.network.output.input_gate import is_of_gate
from elman.tasks.experiment import Experiment
from elman.tasks.text.run import TextRun
from support import text_runs
from support.interruption import StopAt


def gated(gate, **training):
    """The small recipe with a gate, without dropout, which belongs to the network that is trained already."""
    recipe = text_runs.recipe(**training)
    still = {"between_dropout": 0.0, "output_dropout": 0.0, "weight_drop": 0.0}
    model = msgspec.structs.replace(
        recipe.model,
        encoder=config.Lookup(size=8),
        core=msgspec.structs.replace(recipe.model.core, **still),
        output=msgspec.structs.replace(recipe.model.output, gate=gate),
    )
    return msgspec.structs.replace(recipe, model=model)


@pytest.fixture(scope="module")
def first(tmp_path_factory):
    """A corpus, and a run on it without a gate."""
    folder = tmp_path_factory.mktemp("gate")
    text_runs.write_corpus(folder / "text", {"train": 60, "valid": 10, "test": 10})
    experiment = Experiment(text_runs.recipe(epochs=1), folder / "first", data=folder / "text")
    experiment.train()
    return folder


@pytest.mark.slow
def test_only_the_gate_changes_and_a_resumed_run_is_the_same(first):
    recipe = gated(config.InputGate(size=4, dropout=0.2, alone=True), epochs=2)
    out = first / "second"
    experiment = Experiment(recipe, out, data=first / "text", init=first / "first")
    start = {name: tensor.clone() for name, tensor in experiment.model.named_parameters()}
    experiment.train()
    with pytest.raises(UserError, match=r"gate\.alone trains the gate of a trained model"):
        Experiment(recipe, first / "third", data=first / "text")
    before, after = (dict(TextRun(folder).model.named_parameters()) for folder in (first / "first", out))
    assert set(after) - set(before) == {
        "output.contexts.gate.weight",
        "output.choice.gate_weight",
        "output.choice.gate_bias",
    }
    for name, tensor in after.items():
        if is_of_gate(name):
            assert not tensor.equal(start[name])
        else:
            assert tensor.equal(before[name])

    stopped = Experiment(recipe, first / "stopped", data=first / "text", init=first / "first")
    stopped.train([StopAt(9)])
    Experiment(recipe, first / "stopped", data=first / "text", resume=True).train()
    assert text_runs.same_files(out, first / "stopped")
    saved, _ = checkpoint.load(out / "checkpoint.safetensors")
    assert {name.split("/")[0] for name in saved} >= {"model", "optimiser"}
    assert len([name for name in saved if name.startswith("model/")]) == len(after)


def test_a_network_of_other_sizes_is_refused_with_a_gate_too(first):
    recipe = gated(config.InputGate(size=4))
    recipe = msgspec.structs.replace(
        recipe, model=msgspec.structs.replace(recipe.model, core=config.Stack(sizes=(9, 8)))
    )
    with pytest.raises(UserError, match=r"its network differs: core\.layers\.0\.weight_ih is"):
        Experiment(recipe, first / "fourth", data=first / "text", init=first / "first")


def test_a_gate_trained_with_the_network_trains_everything(first):
    experiment = Experiment(gated(config.InputGate(on="level"), epochs=1), first / "fifth", data=first / "text")
    start = {name: tensor.clone() for name, tensor in experiment.model.named_parameters()}
    experiment.train()
    trained = dict(experiment.model.named_parameters())
    assert not any(torch.equal(trained[name], tensor) for name, tensor in start.items())
