"""Networks on a GPU that is pretended: a step of training, evaluation, generation and adaptation with every part."""

import itertools

import msgspec
import numpy as np
import pytest
import torch

from elman import config
from elman.config.inference import CacheRule, Rule, Sampling
from elman.data.windows import EvaluationWindows, TrainingWindows
from elman.decoding.sampling import generate
from elman.evaluation.cache import NeuralCache
from elman.evaluation.dynamic import DynamicModel, adaptive_stream, gradient_statistics
from elman.evaluation.perplexity import evaluate
from elman.learning.update import build_update
from elman.network import matmul
from elman.network.build import build_model
from elman.network.precision import products_in
from support import networks, text_runs
from support.pretended import CUDA, DeviceMismatch, Pretended

COUNTS = networks.COUNTS
TOKENS = np.random.default_rng(0).integers(len(COUNTS), size=60)
DROPOUT = {"weight_drop": 0.3, "between_dropout": 0.2, "output_dropout": 0.2}

def recipe(core=None, output=None, encoder=None, **training):
    """A recipe of a small network with these parts."""
    model = config.Model(
        encoder=encoder or config.Lookup(size=4, dropout=0.1, word_dropout=0.1),
        core=core or config.Stack(sizes=(5, 4), **DROPOUT),
        output=output or config.Output(),
    )
    rules = {"batch_size": 3, "window": {"length": 6}, "clip": 0.5, "clip_by": "global", **training}
    return msgspec.structs.replace(text_runs.recipe(**rules), model=model)

def stack(cell):
    return recipe(config.Stack(sizes=(4, 4), cell=cell))


CASES = {
    **{f"cell {name}": stack(cell) for name, cell in networks.CELL_RECORDS.items()},
    **{f"choice {name}": recipe(output=config.Output(choice=choice)) for name, choice in networks.CHOICES.items()},
    **{f"contexts {name}": recipe(output=config.Output(contexts=contexts)) for name, contexts in networks.CONTEXTS.items()},
}

def steps(made, precision="float32"):
    """Train, evaluate, generate and adapt; the NLL of the evaluation on this device and on the CPU."""
    model = build_model(made.model, len(COUNTS), COUNTS).to(CUDA)
    update = build_update(made, model)
    windows = TrainingWindows(TOKENS, 3, 6)
    for step, span in enumerate(windows.spans(0)[:2]):
        update.gradient(windows.batch(span).to(model.device), step=step)
        update.clip()
        update.apply(0.1)
    if update.average is None:
        update.begin_averaging(made.training)
    held = EvaluationWindows(TOKENS, 0, streams=2, length=10)
    with update.averaged():
        found = evaluate(model, held).nll
    sampling, generator = Sampling(top_k=9, top_p=0.9, forbidden=(3,)), torch.Generator(model.device).manual_seed(1)
    list(itertools.islice(generate(model.eval(), [1, 2], model.begin(1), sampling, generator), 3))
    statistics = gradient_statistics(model, windows)
    dynamic = DynamicModel(model, Rule(), statistics)
    one = EvaluationWindows(TOKENS[:20], 0, length=5)
    list(adaptive_stream(dynamic.read, model, one, NeuralCache(CacheRule())))
    model.cpu()
    return found


@pytest.mark.parametrize("case", CASES)
def test_steps(case):
    with Pretended():
        steps(CASES[case])
