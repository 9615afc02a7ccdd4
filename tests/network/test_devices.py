"""Networks on a GPU, pretended or real: training, evaluation, generation and adaptation, in both precisions."""

import itertools
from unittest import mock

import msgspec
import numpy as np
import pytest
import torch

from elman import config
from elman.config.inference import CacheRule, Rule, Sampling
from elman.data.windows import EvaluationWindows, TrainingWindows
from elman.decoding.sampling import generate
from elman.evaluation.dynamic import DynamicModel, NeuralCache, adaptive_stream, gradient_statistics
from elman.evaluation.perplexity import evaluate
from elman.learning.update import build_update
from elman.network.build import build_model
from elman.network.device import choose_device
from elman.network.fast import policy
from elman.network.fast.precision import products_in
from elman.objective.loss import build_objective
from support import networks, text_runs
from support.gpus import GPUS
from support.pretended import CUDA

COUNTS = networks.COUNTS
WORDS = [chr(ord("a") + index) * (1 + index % 3) for index in range(len(COUNTS))]
TOKENS = np.random.default_rng(0).integers(len(COUNTS), size=24)
EMBEDDING = config.Lookup(size=4, dropout=0.1, word_dropout=0.1)
DROPOUT = {"weight_drop": 0.3, "between_dropout": 0.2, "output_dropout": 0.2}
TRAINING = {"batch_size": 3, "window": {"length": 5}, "clip": 0.5}


def recipe(core=None, encoder=EMBEDDING, training=None, **output):
    """A small network with these parts."""
    model = config.Model(
        encoder=encoder,
        core=core or config.Stack(sizes=(4, 4), **DROPOUT),
        output=config.Output(**output),
    )
    return msgspec.structs.replace(text_runs.recipe(**TRAINING | (training or {})), model=model)


def plain(**training):
    """A small Elman network without dropout, for rules that go step by step."""
    core = config.Stack(sizes=(4,), cell=config.Elman())
    return recipe(core, config.Lookup(size=4), {"penalties": {}, **training})


def constrained(**constraint):
    core = config.Stack(sizes=(4,), cell=config.GRU(reset="before"), biases=0)
    return recipe(core, training={"constraint": constraint})


KINDS = {type(record): name for name, record in reversed(networks.CELL_RECORDS.items())}
"""One variant of each cell, the first."""

CASES = {
    **{name: recipe(config.Stack(sizes=(4,), cell=networks.CELL_RECORDS[name])) for name in KINDS.values()},
    "gru-before": recipe(config.Stack(sizes=(4,), cell=config.GRU(reset="before"))),
    **{
        name: recipe(choice=networks.CHOICES[name])
        for name in ("adaptive", "tree", "rare-class", "monotone", "mixtape")
    },
    **{name: recipe(contexts=networks.CONTEXTS[name]) for name in ("mos", "doc")},
    "sigsoftmax": recipe(activation="sigsoftmax"),
    "characters": recipe(
        encoder=config.Characters(size=3, widths=(1, 2), filters=(2, 3)), contexts=networks.CONTEXTS["mos"]
    ),
    "window": recipe(config.FeedForward(width=3, size=4)),
    "jordan": recipe(config.Jordan(size=4)),
    "turing-machine": recipe(config.TuringMachine(size=4, rows=5, width=2)),
    "residual": recipe(networks.example(config.Residual)),
    "rtrl": plain(rule={"kind": "rtrl"}),
    "lookback": plain(rule={"kind": "bptt", "steps": 2}),
    "gradient norm": plain(penalties={"gradient_norm": 0.1}),
    "forcing": recipe(training={"forcing": {"schedule": "linear", "scale": 0.5}}),
    "slices": recipe(training={"slices": 2}),
    "spectral": constrained(kind="spectral"),
    "truncated": constrained(kind="spectral", method="truncated", compare_norms=True),
    "orthogonal": constrained(kind="orthogonal"),
    "spectral norm": constrained(kind="spectral-norm"),
}


def built(made, device):
    torch.manual_seed(0)
    return build_model(made.model, len(COUNTS), COUNTS, WORDS).to(device)


def train(made, device):
    """A model after two steps, and the NLL of the text by its average."""
    model = built(made, device)
    update = build_update(made, model)
    windows = TrainingWindows(TOKENS, TRAINING["batch_size"], 5)
    update.begin_averaging(made.training)
    for step, span in enumerate(windows.spans(0)[:2]):
        update.gradient(windows.batch(span).to(model.device), step=step)
        update.clip()
        update.apply(0.1)
    with update.averaged(), products_in(update.precision):
        return model, evaluate(model, EvaluationWindows(TOKENS, 0, streams=2, length=9)).nll


def generate_and_adapt(model):
    sampling, generator = Sampling(top_k=9, top_p=0.9, forbidden=(3,)), torch.Generator(model.device).manual_seed(1)
    drawn = generate(model.eval(), [1, 2], model.begin(1), sampling, generator)
    statistics = gradient_statistics(model, TrainingWindows(TOKENS, 3, 5))
    text = EvaluationWindows(TOKENS[:10], 0, length=5)
    adapted = adaptive_stream(
        DynamicModel(model, Rule(), statistics).read, model, text, NeuralCache(CacheRule(window=20))
    )
    return [symbol for symbol, _ in itertools.islice(drawn, 3)], torch.cat([one.cpu() for one, _ in adapted])


@pytest.mark.slow
@pytest.mark.parametrize("gpu", GPUS)
@pytest.mark.parametrize("case", CASES)
def test_every_tensor_is_on_the_device(case, gpu):
    with GPUS[gpu]():
        model, nll = train(CASES[case], CUDA)
        _, adapted = generate_and_adapt(model)
        assert all(tensor.device == CUDA for tensor in (*model.parameters(), *model.buffers()))
    assert np.isfinite(nll)
    assert adapted.isfinite().all()


QUIET = {
    name: networks.CELL_RECORDS[name]
    for name in ("elman-tanh", "lstm", "gru-after", "gru-before", "min-gru", "lru", "mlstm", "rwkv7")
}
OUTPUTS = {"mos": {"contexts": networks.CONTEXTS["mos"]}, "adaptive": {"choice": networks.CHOICES["adaptive"]}}


def without_dropout(name):
    core = config.Stack(sizes=(8, 4), cell=QUIET.get(name, config.LSTM()))
    return recipe(core, config.Lookup(size=4), **OUTPUTS.get(name, {}))


def loss_and_gradient(made, device, precision):
    """The loss of a window, and its gradient by all weights in one vector on the CPU."""
    model, objective = built(made, device), build_objective(made.training)
    windows = TrainingWindows(TOKENS, TRAINING["batch_size"], 5)
    batch = windows.batch(windows.spans(0)[0]).to(model.device)
    with products_in(precision):
        loss, _ = objective(model.train(), batch, model.begin(3))
        loss.objective.backward()
    flat = torch.cat([parameter.grad.flatten() for parameter in model.parameters()])
    return loss.objective.detach().cpu(), flat.cpu()


@pytest.mark.parametrize("gpu", GPUS)
@pytest.mark.parametrize("name", [*QUIET, *OUTPUTS])
def test_what_is_chosen_on_the_device_computes_the_same(name, gpu):
    """The forms and types that are chosen on a GPU, by value: float32 closely, bf16 within its rounding."""
    made = without_dropout(name)
    loss, gradient = loss_and_gradient(made, "cpu", "float32")
    with GPUS[gpu](), mock.patch.multiple(policy, LEAST_MULTIPLY_ADDS=1, LEAST_ROWS=1):
        choose_device(CUDA)
        close = loss_and_gradient(made, CUDA, "float32")
        rounded = loss_and_gradient(made, CUDA, "bf16")
    torch.testing.assert_close(close, (loss, gradient))
    assert all(part.dtype == torch.float32 for part in rounded)
    assert rounded[0].item() == pytest.approx(loss.item(), rel=1e-2)
    assert not torch.equal(rounded[1], gradient)
    assert torch.cosine_similarity(rounded[1], gradient, dim=0) > 0.999
