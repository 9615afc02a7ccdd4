"""An exported step is its model: every core, cell, choice and context traced by torch, as a program of its own."""

from itertools import cycle

import numpy as np
import pytest
import torch

from elman import config
from elman.errors import UserError
from elman.export.folder import read_program, write_program
from elman.export.onnx import OnnxStep, write_int8, write_step
from elman.export.step import Comparison, Packed, Step, TorchStep, compare, perplexity_of, plain
from elman.network.build import build_model
from elman.network.cells.cell import unroll
from elman.network.state import leaves
from support import networks

WORDS = len(networks.COUNTS)
TOKENS = np.random.default_rng(0).integers(0, WORDS, 12)

RECORDS = {f"cell {name}": config.Stack(sizes=(4,), cell=cell) for name, cell in networks.CELL_RECORDS.items()}
RECORDS |= {
    "cell rwkv7": config.Stack(sizes=(4,), cell=config.RWKV7(heads=1, rank=3)),  # a norm of two numbers is a sign
    "two sizes": config.Stack(sizes=(6, 4), cell=config.LSTM()),
    "graves": config.Stack(sizes=(5, 5), cell=config.LSTM(), connections="graves"),
    "melis": config.Stack(sizes=(5, 5), cell=config.LSTM(input_gate="capped"), connections="melis"),
    "jordan": config.Jordan(size=4),
    "jordan-target": config.Jordan(size=4, feedback="target", decay=0.7),
    "reservoir": config.Reservoir(size=12, leak=0.3, density=0.5),
    "window": config.FeedForward(width=3, size=4),
    "ntm": config.TuringMachine(size=4, rows=5, width=2),
    "residual": config.Residual(size=6, cell=config.RGLRU(heads=2)),
    "residual-convolution": config.Residual(size=6, cell=config.MLSTM(heads=2, convolution=3), convolution=3),
    "residual-layer-norm": config.Residual(size=6, cell=config.MinGRU(), norm="layer", feed_forward="mlp"),
}


def model_of(core, contexts="single", choice="flat", activation="softmax"):
    recipe = config.Model(
        encoder=config.Lookup(size=4),
        core=core,
        output=config.Output(
            contexts=networks.CONTEXTS[contexts], choice=networks.CHOICES[choice], activation=activation
        ),
    )
    torch.manual_seed(1)
    return networks.randomise(build_model(recipe, WORDS, networks.COUNTS)).float().eval()


def through_program(model, tmp_path):
    """The comparison of a model with its stored program, which reads three sequences at once, too."""
    step = Step(model)
    write_program(step, tmp_path / "model.pt2")
    stored = read_program(tmp_path / "model.pt2", step)
    rows, state = TOKENS[:3].astype(np.int64), stored.begin(3)
    expected = model.step(torch.from_numpy(rows), model.begin(3))[0].detach().numpy()
    np.testing.assert_allclose(stored(rows, *state)[0], expected, rtol=1e-4, atol=1e-4)
    return compare(model, stored, TOKENS, 0)


CELLS = [name for name in RECORDS if name.startswith("cell ")]
"""Each cell is traced with one of the choices; there are more cells than choices."""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "choice"),
    [*zip(CELLS, cycle(networks.CHOICES)), *((name, "flat") for name in RECORDS if name not in CELLS)],
)
def test_every_core_and_every_choice_is_traced(name, choice, tmp_path):
    assert len(CELLS) >= len(networks.CHOICES)
    found = through_program(model_of(RECORDS[name], choice=choice), tmp_path)
    assert found.tokens == len(TOKENS)
    assert found.difference < 1e-4


@pytest.mark.slow
def test_the_parts_of_tied_word_vectors_are_written_in_eight_bits(tmp_path):
    step = Step(model := model_of(config.Stack(sizes=(4,)), choice="adaptive-tied"))
    write_step(step, step.beginning, tmp_path / "model.onnx", {})
    write_int8(tmp_path / "model.onnx", tmp_path / "model.int8.onnx")
    assert compare(model, OnnxStep(tmp_path / "model.onnx", step), TOKENS, 0).difference < 1e-4
    assert 1e-5 < compare(model, OnnxStep(tmp_path / "model.int8.onnx", step), TOKENS, 0).difference < 0.1


@pytest.mark.slow
@pytest.mark.parametrize(("contexts", "activation"), [("mos", "sigsoftmax"), ("doc", "relu"), ("doc", "softplus")])
def test_mixtures_are_traced(contexts, activation, tmp_path):
    found = through_program(model_of(config.Stack(sizes=(5, 4)), contexts, activation=activation), tmp_path)
    assert found.difference < 1e-3


@pytest.mark.slow
def test_a_model_of_spelling_becomes_a_table(tmp_path):
    words = ["<eos>", "<unk>", "cat", "cats", "dog"]
    recipe = config.Model(
        encoder=config.Characters(size=3, widths=(1, 2), filters=(3, 4)),
        core=config.Stack(sizes=(5,)),
        output=config.Output(),
    )
    torch.manual_seed(0)
    model = build_model(recipe, len(words), [1] * 5, words).eval()
    write_program(Step(model), tmp_path / "model.pt2")
    stored = read_program(tmp_path / "model.pt2", Step(model))
    assert compare(model, stored, np.array([2, 3, 4, 1, 0]), 0).difference < 1e-5


def test_the_model_itself_stays_as_it_is():
    model = model_of(config.Stack(sizes=(5, 4), cell=config.LSTM()))
    fast = [layer.scan for layer in model.core.layers]
    copied = plain(model)
    assert [layer.scan for layer in model.core.layers] == fast
    assert all(layer.scan.func is unroll for layer in copied.core.layers)
    assert next(model.parameters()).requires_grad


def test_a_difference_is_found():
    """A step with one wrong number of state, and one that is not a number, differ from the model."""
    model = model_of(config.Stack(sizes=(5, 4)))
    step = Step(model)
    assert compare(model, TorchStep(step, step), TOKENS, 0) == Comparison(pytest.approx(0, abs=1e-5), 12)

    def forgets(symbols, *state):
        return step(symbols, *(torch.zeros_like(one) for one in state))

    def fails(symbols, *state):
        log_probs, *after = step(symbols, *state)
        return torch.full_like(log_probs, torch.nan), *after

    assert compare(model, TorchStep(forgets, step), TOKENS, 0).difference > 0.01
    assert compare(model, TorchStep(fails, step), TOKENS, 0).difference == float("inf")


def test_perplexity_is_that_of_columns():
    model = model_of(config.Stack(sizes=(5, 4)))
    step, columns = Step(model), TOKENS.reshape(4, 3)
    inputs = torch.from_numpy(np.concatenate([np.zeros((1, 3), np.int64), columns[:-1]]))
    with torch.no_grad():
        log_prob, _ = model.log_prob(inputs, torch.from_numpy(columns), model.begin(3))
    assert perplexity_of(TorchStep(step, step), columns, 0) == pytest.approx(float((-log_prob.mean()).exp()), rel=1e-5)


@pytest.mark.parametrize("core", [RECORDS["cell lstm"], RECORDS["ntm"], RECORDS["window"]])
def test_a_packed_state_begins_with_zeros(core):
    model = model_of(core)
    step = Step(model)
    packed, state = Packed(step), model.begin(2)
    h, c = torch.zeros(1, 2, packed.size), torch.zeros(1, 2, packed.size)
    assert packed.size == sum(one[0].numel() for one in leaves(state))
    for symbols in torch.from_numpy(TOKENS.reshape(-1, 2)):
        with torch.no_grad():
            expected, state = model.step(symbols, state)
            found, h, c = packed(symbols.unsqueeze(1), h, c)
        torch.testing.assert_close(found.squeeze(1), expected, rtol=1e-4, atol=1e-4)
    assert not c.any()


def test_what_cannot_be_traced_is_refused(tmp_path):
    class Branching(torch.nn.Module):
        beginning = ()

        def forward(self, symbols, *state):
            return (symbols if symbols.sum() > 1 else -symbols,)

    with pytest.raises(UserError, match="cannot be traced"):
        write_program(Branching(), tmp_path / "model.pt2")
    assert not list(tmp_path.iterdir())
