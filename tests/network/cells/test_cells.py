"""Cells against NumPy transcriptions, against each other, against torch's own, and fast against plain."""

import numpy as np
import pytest
import torch

from elman import config
from elman.network.cells.build import build_cell
from elman.network.cells.cell import Weights, unroll
from elman.network.cells.gru import step_reset_after, step_reset_before
from elman.network.cells.lstm import step, step_peephole, step_without_forget_gate
from elman.network.cells.unitary import permutation
from reference import cells as reference
from support import networks


def gates(weights, size=4):
    """The stacked arrays as one `reference.Gate` for each block, in order."""
    arrays = [None if part is None else part.detach().numpy() for part in weights[:4]]
    count = len(arrays[0]) // size
    blocks = [[np.zeros(size)] * count if array is None else np.split(array, count) for array in arrays]
    return [reference.Gate(*parts) for parts in zip(*blocks, strict=True)]


def peephole(weights):
    return weights.peephole.detach().numpy()


def array(part):
    return part.detach().numpy()


def highway(weights, depth, blocks, x, s):
    """`reference.highway` of stacked arrays."""
    bias, d = (
        (0 * array(weights.input[:, 0]) if weights.input_bias is None else array(weights.input_bias)),
        (0 * array(weights.hidden[:, 0]) if weights.hidden_bias is None else array(weights.hidden_bias)),
    )
    recurrent = list(zip(np.split(array(weights.hidden), depth * blocks), np.split(d, depth * blocks), strict=True))
    levels = [recurrent[level * blocks : (level + 1) * blocks] for level in range(depth)]
    return (reference.highway(np.split(array(weights.input), blocks), np.split(bias, blocks), levels, x, s),)


def mogrifier(weights, rank, lstm, x, h, c):
    matrices = [array(matrix) for matrix in weights.extra]
    if rank:
        matrices = [left @ right for left, right in zip(matrices[::2], matrices[1::2], strict=True)]
    return lstm(*gates(weights), *reference.mogrify(matrices, x, h), c)


def learned_continuous(weights, x, h):
    """Time constants whose dt / tau begins as the record says, in log-odds, and is shifted by the learned numbers."""
    share = 1 / np.geomspace(1.5, 5.0, 4)
    tau = 1 + np.exp(-(np.log(share / (1 - share)) + array(weights.extra[0])[0]))
    return reference.continuous(*gates(weights), tau, x, h, lambda a: np.log1p(np.exp(a)))


def unitary(weights, x, h):
    theta, v, b = (part.detach().numpy() for part in weights.hidden.split((3, 4, 1)))
    bias = sum((array(part) for part in (weights.input_bias, weights.hidden_bias) if part is not None), np.zeros(4))
    return reference.unitary(
        array(weights.input), bias, theta, v[0] + 1j * v[1], v[2] + 1j * v[3], b[0], permutation(2), x, h
    )


TRANSCRIPTIONS = {
    "elman-tanh": lambda w, x, h: (reference.elman(*gates(w), x, h),),
    "elman-sigmoid": lambda w, x, h: (reference.elman(*gates(w), x, h, reference.sigm),),
    "elman-relu": lambda w, x, h: (reference.elman(*gates(w), x, h, lambda a: np.maximum(a, 0)),),
    "elman-softplus": lambda w, x, h: (reference.elman(*gates(w), x, h, lambda a: np.log1p(np.exp(a))),),
    "continuous": lambda w, x, h: (reference.continuous(*gates(w), np.geomspace(2.0, 9.0, 4), x, h),),
    "continuous-learned": lambda w, x, h: (learned_continuous(w, x, h),),
    "unitary": lambda w, x, h: (unitary(w, x, h),),
    "lstm": lambda w, x, h, c: reference.lstm(*gates(w), x, h, c),
    "lstm-1997": lambda w, x, h, c: reference.lstm_1997(*gates(w), x, h, c),
    "lstm-peephole": lambda w, x, h, c: reference.peephole_lstm(*gates(w), *peephole(w), x, h, c),
    "gru-before": lambda w, x, h: (reference.gru_reset_before(*gates(w), x, h),),
    "gru-after": lambda w, x, h: (reference.gru_reset_after(*gates(w), x, h),),
    "lstm-coupled": lambda w, x, h, c: reference.coupled_lstm(*gates(w), x, h, c),
    "lstm-capped": lambda w, x, h, c: reference.capped_lstm(*gates(w), x, h, c),
    "rung-forget": lambda w, x, y, c: reference.rung_forget(*gates(w), x, y, c),
    "rung-input": lambda w, x, y, c: reference.rung_input(*gates(w), x, y, c),
    "highway-1": lambda w, x, s: highway(w, 1, 2, x, s),
    "highway-3": lambda w, x, s: highway(w, 3, 2, x, s),
    "highway-2-carry": lambda w, x, s: highway(w, 2, 3, x, s),
    "mogrifier-5": lambda w, x, h, c: mogrifier(w, None, reference.lstm, x, h, c),
    "mogrifier-4-low-rank": lambda w, x, h, c: mogrifier(w, 2, reference.capped_lstm, x, h, c),
}


@pytest.mark.parametrize("name", TRANSCRIPTIONS)
def test_sequence_is_the_papers_equations(name):
    for biases in (0, 1, 2):
        assert_equations(name, biases)


def assert_equations(name, biases):
    cell = networks.CELLS[name]
    w = networks.weights(cell, biases=biases)
    xs, state = torch.randn(6, 2, 3, dtype=torch.float64), networks.state(cell)
    run = cell.sequence or (lambda *given: unroll(cell.step, *given))
    outputs, after = run(w, xs, state)
    expected = tuple(part.detach().numpy() for part in state)
    for x, output in zip(xs.numpy(), outputs.detach().numpy(), strict=True):
        expected = TRANSCRIPTIONS[name](w, x, *expected)
        np.testing.assert_allclose(output, expected[0], rtol=1e-10)
    for part, value in zip(after, expected, strict=True):
        np.testing.assert_allclose(part.detach().numpy(), value, rtol=1e-10)


@pytest.mark.parametrize("name", [name for name, cell in networks.CELLS.items() if cell.sequence])
def test_fast_sequence_is_the_loop(name):
    for biases in (0, 1, 2):
        assert_loop(name, biases)


def assert_loop(name, biases):
    cell = networks.CELLS[name]
    w = networks.weights(cell, biases=biases)
    xs, state = torch.randn(5, 3, 3, dtype=torch.float64, requires_grad=True), networks.state(cell, rows=3)
    inputs = [xs, *state, *(part for part in w if isinstance(part, torch.Tensor)), *(w.extra or ())]
    pull = torch.randn(5, 3, 4, dtype=torch.float64)

    def results(run):
        outputs, after = run(w, xs, state)
        scalar = (pull * outputs).sum() + sum(part.square().sum() for part in after)
        gradients = torch.autograd.grad(scalar, inputs, allow_unused=True, materialize_grads=True)
        return [outputs, *after, *gradients]

    fast, plain = results(cell.sequence), results(lambda *given: unroll(cell.step, *given))
    for one, other in zip(fast, plain, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-11)


@pytest.mark.parametrize(("name", "module"), [("lstm", torch.nn.LSTM), ("gru-after", torch.nn.GRU)])
def test_gates_are_ordered_as_in_torch(name, module):
    """So that weights can be taken from and given to other programs."""
    cell, theirs = networks.CELLS[name], module(3, 4).double()
    w = Weights(theirs.weight_ih_l0, theirs.weight_hh_l0, theirs.bias_ih_l0, theirs.bias_hh_l0)
    xs, state = torch.randn(5, 2, 3, dtype=torch.float64), networks.state(cell)
    given = tuple(part[None] for part in state)
    expected, _ = theirs(xs, given if cell.slots == 2 else given[0])
    torch.testing.assert_close(cell.sequence(w, xs, state)[0], expected)


def gru_inputs(biases=2):
    w = networks.weights(networks.CELLS["gru-before"], biases=biases)
    return w, torch.randn(2, 3, dtype=torch.float64), networks.state(networks.CELLS["gru-before"])


def test_the_survey_exchanges_z_and_its_complement():
    w, x, (h,) = gru_inputs()
    expected = reference.gru_survey(*gates(w), x.numpy(), h.detach().numpy())
    negated = [part.detach().clone() for part in w[:4]]
    for part in negated:
        part[4:8] *= -1
    (ours,) = step_reset_before(Weights(*negated), x, (h,))
    np.testing.assert_allclose(ours.detach().numpy(), expected, rtol=1e-12)
    assert not np.allclose(step_reset_before(w, x, (h,))[0].detach().numpy(), expected)


def test_gru_variants_differ():
    w, x, state = gru_inputs(biases=0)
    assert not torch.allclose(step_reset_before(w, x, state)[0], step_reset_after(w, x, state)[0])


@pytest.mark.parametrize("agreement", ["open reset gate", "diagonal recurrence"])
def test_gru_variants_agree(agreement):
    """With r = 1 nothing is reset; a diagonal U_n without a bias of its own commutes with r."""
    w, x, state = gru_inputs()
    with torch.no_grad():
        if agreement == "open reset gate":
            w.input_bias[:4] = 100.0
        else:
            w.hidden[8:] = w.hidden[8:].diag().diag()
            w.hidden_bias[8:] = 0.0
    torch.testing.assert_close(step_reset_before(w, x, state), step_reset_after(w, x, state))


@pytest.mark.parametrize("name", networks.CELLS)
def test_the_gradients_are_those_of_the_equations(name):
    """By finite differences, through three steps, to the weights, the inputs and the state."""
    cell = networks.CELLS[name]
    w = networks.weights(cell, inputs=2, size=4)
    xs, state = torch.randn(3, 2, 2, dtype=torch.float64, requires_grad=True), networks.state(cell, size=4, inputs=2)
    flat = [part for part in (*w[:5], *(w.extra or ())) if part is not None]
    run = cell.sequence or (lambda *given: unroll(cell.step, *given))

    def through(xs, *given):
        parts = iter(given)
        arrays = [None if part is None else next(parts) for part in w[:5]]
        extra = None if w.extra is None else tuple(next(parts) for _ in w.extra)
        outputs, after = run(Weights(*arrays, extra), xs, tuple(parts))
        return tuple(part for part in (outputs, *after) if part.requires_grad)

    assert torch.autograd.gradcheck(through, (xs, *flat, *state), fast_mode=True)


def test_rungs_lead_to_the_lstm():
    """An output gate that is open, and an input gate that is open, make a rung of the one below."""
    w, x = networks.weights(networks.CELLS["lstm"]), torch.randn(2, 3, dtype=torch.float64)
    state = networks.state(networks.CELLS["lstm"])
    with torch.no_grad():
        w.input_bias[12:] = 100.0
    without = Weights(*(part[:12] for part in w[:4]))
    torch.testing.assert_close(networks.CELLS["rung-input"].step(without, x, state), step(w, x, state))
    with torch.no_grad():
        without.input_bias[:4] = 100.0
    least = Weights(*(part[4:] for part in without[:4]))
    torch.testing.assert_close(
        networks.CELLS["rung-forget"].step(least, x, state), networks.CELLS["rung-input"].step(without, x, state)
    )


def test_a_mogrifier_of_no_rounds_is_the_lstm():
    w, x = networks.weights(networks.CELLS["lstm"]), torch.randn(2, 3, dtype=torch.float64)
    state = networks.state(networks.CELLS["lstm"])
    torch.testing.assert_close(build_cell(config.Mogrifier(rounds=0)).step(w, x, state), step(w, x, state))


def test_lstm_forms_agree_where_they_must():
    """Peepholes of zero are none; a forget gate held open is none."""
    w = networks.weights(networks.CELLS["lstm-peephole"])
    x, state = torch.randn(2, 3, dtype=torch.float64), networks.state(networks.CELLS["lstm"])
    assert not torch.allclose(step_peephole(w, x, state)[1], step(w, x, state)[1])
    torch.testing.assert_close(
        step_peephole(w._replace(peephole=torch.zeros(3, 4).double()), x, state), step(w, x, state)
    )
    keep = torch.cat([torch.arange(4), torch.arange(8, 16)])
    without = Weights(w.input[keep], w.hidden[keep], w.input_bias[keep], w.hidden_bias[keep])
    with torch.no_grad():
        w.input_bias[4:8] = 100.0
    torch.testing.assert_close(step_without_forget_gate(without, x, state), step(w, x, state))
