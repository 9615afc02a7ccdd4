"""Measures of claims on mixtures: how evenly components are used, and how much gradient reaches each layer."""

import math

import pytest
import torch

from elman import config
from elman.data.windows import TrainingWindows
from elman.network.build import build_model
from elman.study.claims.mixtures import LayerGradients, evenness, layer_norms
from elman.study.runs import Machine, train
from elman.study.store import Store
from support import text_runs


def test_layer_norms_are_those_of_plain_back_propagation():
    """Of the mean loss of two windows, the second of which continues from the first without a gradient."""
    torch.manual_seed(3)
    model = build_model(text_runs.recipe().model, 7)
    windows = TrainingWindows(torch.randint(7, (60,)).numpy(), 3, 5)
    batches = [windows.batch(span) for span in list(windows.spans(0))[:2]]
    found = layer_norms(model, batches)
    model.eval()
    model.zero_grad()
    state = model.begin(3)
    for batch in batches:
        log_probs, after = model.log_probs(batch.inputs, state)
        (-log_probs.gather(-1, batch.targets.unsqueeze(-1)).mean()).backward()
        state = [tuple(part.detach() for part in each) if isinstance(each, tuple) else each.detach() for each in after]
    wanted = [
        math.sqrt(sum(float(parameter.grad.square().sum()) for parameter in layer.parameters()))
        for layer in model.core.layers
    ]
    assert found == pytest.approx(wanted, rel=1e-4)


def test_gradients_are_measured_before_and_after_steps(corpus, tmp_path):
    recipe = tmp_path / "tiny.toml"
    recipe.write_text(config.dump_recipe(text_runs.recipe()))
    heads = "model.output.activation=softmax"
    found = LayerGradients(heads, str(recipe), settings=(), steps=4, every=2, windows=2)(1, str(corpus))
    again = LayerGradients(heads, str(recipe), settings=(), steps=0, windows=2)(1, str(corpus))
    ratios = found.curves["lowest / top"]
    assert len(ratios) == 3
    assert len(set(ratios)) == 3
    assert ratios[0] == found.figures["beginning"] == again.figures["beginning"]
    assert found.figures["mean"] == pytest.approx(math.prod(ratios) ** (1 / 3))
    norms = found.curves["gradient norm"]
    assert ratios[0] == norms[0] / norms[-1]


@pytest.mark.slow
def test_the_weights_of_components_of_lower_layers(corpus, tmp_path):
    """The last layer's weights and those below it make 1, and equal weights have no variation."""
    mixture = 'model.output.contexts={kind = "mixture", size = 8, heads = {2 = 2, 1 = 1}}'
    (tmp_path / "tiny.toml").write_text(config.dump_recipe(text_runs.recipe(epochs=1)))
    run = Store(tmp_path / "out", str(corpus)).place("one", config.load_recipe(tmp_path / "tiny.toml", [mixture]))
    train(run, Machine(threads=1))
    found = evenness(run.folder, tokens=50)
    assert found.figures["even share"] == pytest.approx(1 / 3)
    assert found.curves["weight"] == pytest.approx([found.figures["lower layers"], 1 - found.figures["lower layers"]])
    assert 0 < found.figures["variation"] < 2
    assert found.figures["test perplexity"] > 1
