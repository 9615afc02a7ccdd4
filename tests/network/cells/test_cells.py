"""Cells against NumPy transcriptions, against each other, against torch's own, and fast against plain."""

import numpy as np
import pytest
import torch

from elman import config
from elman.network.cells.cell import Weights, unroll
from elman.network.cells.unitary import permutation
from reference import cells as reference
from support import networks

step, step_peephole = config.LSTM().step, config.LSTM(peepholes=True).step
step_without_forget_gate = config.LSTM(forget_gate=False).step
step_reset_after, step_reset_before = config.GRU().step, config.GRU(reset="before").step


def gates(weights, size=4):
    """The stacked arrays as one `reference.Gate` for each block, in order."""
    parts = weights.weight_ih, weights.weight_hh, weights.bias_ih, weights.bias_hh
    arrays = [None if part is None else part.detach().numpy() for part in parts]
    count = len(arrays[0]) // size
    blocks = [[np.zeros(size)] * count if array is None else np.split(array, count) for array in arrays]
    return [reference.Gate(*parts) for parts in zip(*blocks, strict=True)]


def test_the_last_rung_of_the_ladder_is_the_lstm():
    """By the step and over a window, with the same arrays."""
    ladder, lstm = config.Ladder(rung="output"), config.LSTM()
    w, state = networks.weights(lstm), networks.state(lstm)
    assert {name: each.shape for name, each in networks.weights(ladder).tensors().items()} == {
        name: each.shape for name, each in w.tensors().items()
    }
    xs = torch.randn(5, 2, 3, dtype=torch.float64)
    expected, last = unroll(lstm.step, w, xs, state)
    for found, after in (ladder.scan(w, xs, state), unroll(ladder.step, w, xs, state)):
        torch.testing.assert_close(found, expected)
        torch.testing.assert_close(tuple(after), tuple(last))


def peephole(weights):
    return weights.peephole.detach().numpy()


def array(part):
    return part.detach().numpy()


def highway(weights, depth, blocks, x, s):
    """`reference.highway` of stacked arrays."""
    bias, d = (
        (0 * array(weights.weight_ih[:, 0]) if weights.bias_ih is None else array(weights.bias_ih)),
        (0 * array(weights.weight_hh[:, 0]) if weights.bias_hh is None else array(weights.bias_hh)),
    )
    recurrent = list(zip(np.split(array(weights.weight_hh), depth * blocks), np.split(d, depth * blocks), strict=True))
    levels = [recurrent[level * blocks : (level + 1) * blocks] for level in range(depth)]
    return (reference.highway(np.split(array(weights.weight_ih), blocks), np.split(bias, blocks), levels, x, s),)


def mogrifier(weights, rank, lstm, x, h, c):
    names = ["q1", "r2", "q3", "r4", "q5"][: 4 if rank else 5]
    ends = ("_left", "_right") if rank else ("",)
    factors = [[array(getattr(weights, name + end)) for end in ends] for name in names]
    matrices = [one[0] @ one[1] if rank else one[0] for one in factors]
    return lstm(*gates(weights), *reference.mogrify(matrices, x, h), c)


def learned_continuous(weights, x, h):
    """Time constants whose dt / tau begins as the record says, in log-odds, and is shifted by the learned numbers."""
    share = 1 / np.geomspace(1.5, 5.0, 4)
    tau = 1 + np.exp(-(np.log(share / (1 - share)) + array(weights.tau_shift)))
    return reference.continuous(*gates(weights), tau, x, h, lambda a: np.log1p(np.exp(a)))


def unitary(weights, x, h):
    theta, v, b = array(weights.theta), array(weights.reflections), array(weights.threshold)
    bias = sum((array(part) for part in (weights.bias_ih, weights.bias_hh) if part is not None), np.zeros(4))
    return reference.unitary(
        array(weights.weight_ih), bias, theta, v[0] + 1j * v[1], v[2] + 1j * v[3], b, permutation(2), x, h
    )


def products(weight, bias, size=4):
    """The product of each block of rows, as functions of a row of the batch."""
    weight = array(weight)
    bias = np.zeros(len(weight)) if bias is None else array(bias)
    pairs = zip(np.split(weight, len(weight) // size), np.split(bias, len(weight) // size), strict=True)
    return [lambda v, W=W, b=b: v @ W.T + b for W, b in pairs]


def chaos_free(weights, x, h):
    of_x, of_h = products(weights.weight_ih, weights.bias_ih), products(weights.weight_hh, weights.bias_hh)
    return (reference.chaos_free(*of_x, *of_h, x, h),)


def mut(number, weights, x, h):
    """In the order of the input's gates, r z, z n and r z n, and of the state's, r n and r z n."""
    of_x = products(weights.weight_ih, weights.bias_ih)
    if number == 1:
        of_x.reverse()
    added = () if number == 3 else (x @ array(weights.skip).T if hasattr(weights, "skip") else x,)
    transcription = {1: reference.mut1, 2: reference.mut2, 3: reference.mut3}[number]
    return (transcription(*of_x, *products(weights.weight_hh, weights.bias_hh), x, *added, h),)


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
    "lstm-nig": lambda w, x, h, c: reference.lstm_nig(*gates(w), *peephole(w), x, h, c),
    "lstm-nfg": lambda w, x, h, c: reference.lstm_nfg(*gates(w), *peephole(w), x, h, c),
    "lstm-nog": lambda w, x, h, c: reference.lstm_nog(*gates(w), *peephole(w), x, h, c),
    "lstm-niaf": lambda w, x, h, c: reference.lstm_niaf(*gates(w), *peephole(w), x, h, c),
    "lstm-noaf": lambda w, x, h, c: reference.lstm_noaf(*gates(w), *peephole(w), x, h, c),
    "lstm-cifg": lambda w, x, h, c: reference.lstm_cifg(*gates(w), *peephole(w), x, h, c),
    "lstm-fgr": lambda w, *given: reference.lstm_fgr(*gates(w), *peephole(w), array(w.weight_gates), *given),
    "chaos-free": lambda w, x, h: chaos_free(w, x, h),
    "mut1": lambda w, x, h: mut(1, w, x, h),
    "mut2": lambda w, x, h: mut(2, w, x, h),
    "mut3": lambda w, x, h: mut(3, w, x, h),
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
    outputs, after = cell.scan(w, xs, state)
    expected = tuple(part.detach().numpy() for part in state)
    for x, output in zip(xs.numpy(), outputs.detach().numpy(), strict=True):
        expected = TRANSCRIPTIONS[name](w, x, *expected)
        np.testing.assert_allclose(output, expected[0], rtol=1e-10)
    for part, value in zip(after, expected, strict=True):
        np.testing.assert_allclose(part.detach().numpy(), value, rtol=1e-10)


def test_the_chaos_free_network_forgets_without_input():
    """Section 2: with x = 0 every unit falls to 0, whatever the weights."""
    cell = config.ChaosFree()
    w, state = networks.weights(cell, biases=0), networks.state(cell)
    outputs, _ = cell.scan(w, torch.zeros(500, 2, 3, dtype=torch.float64), state)
    assert (outputs[1:].abs() <= outputs[:-1].abs()).all()
    assert outputs[-1].abs().max() < 0.1


@pytest.mark.parametrize("number", [1, 2])
def test_an_input_as_wide_as_the_state_is_added_as_it_is(number):
    """As the paper has it, without a product of its own."""
    cell = config.MUT(number=number)
    w, x, (h,) = networks.weights(cell, inputs=4), torch.randn(2, 4, dtype=torch.float64), networks.state(cell)
    expected = mut(number, w, x.numpy(), array(h))[0]
    np.testing.assert_allclose(array(cell.step(w, x, (h,))[0]), expected, rtol=1e-10)
    assert not hasattr(w, "skip")


@pytest.mark.parametrize("name", networks.CELLS)
def test_fast_sequence_is_the_loop(name):
    for biases in (0, 1, 2):
        assert_loop(name, biases)


def assert_loop(name, biases):
    cell = networks.CELLS[name]
    w = networks.weights(cell, biases=biases)
    xs, state = torch.randn(5, 3, 3, dtype=torch.float64, requires_grad=True), networks.state(cell, rows=3)
    inputs = [xs, *state, *w.tensors().values()]
    pull = torch.randn(5, 3, 4, dtype=torch.float64)

    def results(run):
        outputs, after = run(w, xs, state)
        scalar = (pull * outputs).sum() + sum(part.square().sum() for part in after)
        gradients = torch.autograd.grad(scalar, inputs, allow_unused=True, materialize_grads=True)
        return [outputs, *after, *gradients]

    fast, plain = results(cell.scan), results(lambda *given: unroll(cell.step, *given))
    for one, other in zip(fast, plain, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-11)


@pytest.mark.parametrize(("name", "module"), [("lstm", torch.nn.LSTM), ("gru-after", torch.nn.GRU)])
def test_gates_are_ordered_as_in_torch(name, module):
    """So that weights can be taken from and given to other programs."""
    cell, theirs = networks.CELLS[name], module(3, 4).double()
    w = Weights(theirs.weight_ih_l0, theirs.weight_hh_l0, theirs.bias_ih_l0, theirs.bias_hh_l0)
    xs, state = torch.randn(5, 2, 3, dtype=torch.float64), networks.state(cell)
    given = tuple(part[None] for part in state)
    expected, _ = theirs(xs, given if len(given) == 2 else given[0])
    torch.testing.assert_close(cell.scan(w, xs, state)[0], expected)


def gru_inputs(biases=2):
    w = networks.weights(networks.CELLS["gru-before"], biases=biases)
    return w, torch.randn(2, 3, dtype=torch.float64), networks.state(networks.CELLS["gru-before"])


def test_the_survey_exchanges_z_and_its_complement():
    w, x, (h,) = gru_inputs()
    expected = reference.gru_survey(*gates(w), x.numpy(), h.detach().numpy())
    negated = {name: part.detach().clone() for name, part in w.tensors().items()}
    for part in negated.values():
        part[4:8] *= -1
    (ours,) = step_reset_before(Weights(**negated), x, (h,))
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
            w.bias_ih[:4] = 100.0
        else:
            w.weight_hh[8:] = w.weight_hh[8:].diag().diag()
            w.bias_hh[8:] = 0.0
    torch.testing.assert_close(step_reset_before(w, x, state), step_reset_after(w, x, state))


@pytest.mark.parametrize("name", networks.CELLS)
def test_the_gradients_are_those_of_the_equations(name):
    """By finite differences, through three steps, to the weights, the inputs and the state."""
    cell = networks.CELLS[name]
    w = networks.weights(cell, inputs=2, size=4)
    xs, state = torch.randn(3, 2, 2, dtype=torch.float64, requires_grad=True), networks.state(cell, size=4, inputs=2)
    names = list(w.tensors())

    def through(xs, *given):
        arrays = dict(zip(names, given, strict=False))
        outputs, after = cell.scan(w.replaced(**arrays), xs, given[len(names) :])
        return tuple(part for part in (outputs, *after) if part.requires_grad)

    assert torch.autograd.gradcheck(through, (xs, *w.tensors().values(), *state), fast_mode=True)


def test_rungs_lead_to_the_lstm():
    """An output gate that is open, and an input gate that is open, make a rung of the one below."""
    w, x = networks.weights(networks.CELLS["lstm"]), torch.randn(2, 3, dtype=torch.float64)
    state = networks.state(networks.CELLS["lstm"])
    with torch.no_grad():
        w.bias_ih[12:] = 100.0
    without = Weights(**{name: part[:12] for name, part in w.tensors().items()})
    torch.testing.assert_close(networks.CELLS["rung-input"].step(without, x, state), step(w, x, state))
    with torch.no_grad():
        without.bias_ih[:4] = 100.0
    least = Weights(**{name: part[4:] for name, part in without.tensors().items()})
    torch.testing.assert_close(
        networks.CELLS["rung-forget"].step(least, x, state), networks.CELLS["rung-input"].step(without, x, state)
    )


def test_a_mogrifier_of_no_rounds_is_the_lstm():
    w, x = networks.weights(networks.CELLS["lstm"]), torch.randn(2, 3, dtype=torch.float64)
    state = networks.state(networks.CELLS["lstm"])
    torch.testing.assert_close(config.Mogrifier(rounds=0).step(w, x, state), step(w, x, state))


def test_lstm_forms_agree_where_they_must():
    """Peepholes of zero are none; a forget gate held open is none."""
    w = networks.weights(networks.CELLS["lstm-peephole"])
    x, state = torch.randn(2, 3, dtype=torch.float64), networks.state(networks.CELLS["lstm"])
    assert not torch.allclose(step_peephole(w, x, state)[1], step(w, x, state)[1])
    torch.testing.assert_close(
        step_peephole(w.replaced(peephole=torch.zeros(3, 4).double()), x, state), step(w, x, state)
    )
    keep = torch.cat([torch.arange(4), torch.arange(8, 16)])
    without = Weights(w.weight_ih[keep], w.weight_hh[keep], w.bias_ih[keep], w.bias_hh[keep])
    with torch.no_grad():
        w.bias_ih[4:8] = 100.0
    torch.testing.assert_close(step_without_forget_gate(without, x, state), step(w, x, state))
