"""The neural Turing machine against its transcription; its addressing by value, in the limits and by differences."""

import math
import re
import tomllib
from pathlib import Path

import msgspec
import numpy as np
import pytest
import torch

from elman import config
from elman.config.parts import convert
from elman.errors import UserError
from elman.network.build import build_model
from elman.network.cores import ntm
from elman.network.cores.core import Surroundings
from elman.network.cores.ntm import EMPTY, Heads, TuringMachineCore, addressed, by_content, sharpened, shifted, written
from reference import memory as reference
from reference.cells import Gate, lstm
from support.networks import randomise

STEPS, COLUMNS, INPUTS = 5, 2, 3


class _Core(msgspec.Struct):
    core: config.OneOf[config.Core]


def array(tensor):
    return tensor.detach().numpy()


def machine(**options):
    return randomise(TuringMachineCore(config.TuringMachine(**options), Surroundings(INPUTS)))


def heads_of(o, readers, writers, width, shifts):
    """One sequence's W_o h + b_o as heads: keys, vectors to add, gates, erasures, strengths, sharpness, shifts."""
    count = readers + writers
    sizes = [count * width, writers * width, count, writers * width, count, count, count * shifts]
    parts = np.split(o, np.cumsum(sizes)[:-1])
    k, a, g, e, beta, gamma, s = (part.reshape(rows, -1) for part, rows in zip(
        parts, (count, writers, count, writers, count, count, count), strict=True
    ))  # fmt: skip
    changes = [(None, None)] * readers + list(zip(e, a, strict=True))
    return [reference.Head(k[i], beta[i, 0], g[i, 0], s[i], gamma[i, 0], *change) for i, change in enumerate(changes)]


def transcribed(core, record, xs, column):
    """The levels [h; r] of one column and the last memory and weights, step by step."""
    M = np.full((record.rows, record.width), 1e-6)
    ws = [np.eye(record.rows)[0]] * (record.read_heads + record.write_heads)
    h, c, r = np.zeros(record.size), np.zeros(record.size), np.zeros(record.read_heads * record.width)
    outputs = []
    for x in xs[:, column]:
        z = np.concatenate([x, r])
        if core.layer is not None:
            h = np.tanh(array(core.layer.weight) @ z + array(core.layer.bias))
        else:
            layer = core.recurrent
            arrays = (array(part) for part in (layer.weight_ih, layer.weight_hh, layer.bias_ih))
            blocks = zip(*(np.split(part, 4) for part in arrays), strict=True)
            h, c = lstm(*(Gate(*block, np.zeros(record.size)) for block in blocks), z, h, c)
        o = array(core.interface.weight) @ h + array(core.interface.bias)
        heads = heads_of(o, record.read_heads, record.write_heads, record.width, 2 * record.reach + 1)
        ws = [reference.weighting(M, w, head, ntm.LEAST_SQUARE) for w, head in zip(ws, heads, strict=True)]
        r = np.concatenate([reference.read(M, w) for w in ws[: record.read_heads]])
        M = reference.write(M, list(zip(ws, heads, strict=True))[record.read_heads :])
        outputs.append(np.concatenate([h, r]))
    return outputs, M, ws


@pytest.mark.parametrize(
    "options",
    [
        {"size": 4, "rows": 6, "width": 3},
        {"size": 3, "rows": 5, "width": 2, "read_heads": 2, "write_heads": 3, "reach": 2},
        {"size": 4, "rows": 4, "width": 2, "read_heads": 2, "controller": config.Perceptron(), "reach": 0},
    ],
)
def test_a_whole_sequence_is_that_of_the_paper(options):
    core, record = machine(**options).eval(), config.TuringMachine(**options)
    x = torch.randn(STEPS, COLUMNS, INPUTS, dtype=torch.float64)
    trace, (_, memory, weights, reads) = core(x, core.begin(COLUMNS))
    for column in range(COLUMNS):
        outputs, M, ws = transcribed(core, record, array(x), column)
        np.testing.assert_allclose(array(trace.top[:, column]), outputs, rtol=1e-8)
        np.testing.assert_allclose(array(memory[column]), M, rtol=1e-8)
        np.testing.assert_allclose(array(weights[column]), ws, rtol=1e-8, atol=1e-11)
        np.testing.assert_allclose(array(reads[column]), outputs[-1][record.size :], rtol=1e-8)


def drawn(heads=2, rows=5, width=3, shifts=3, grad=True):
    """A memory, the weights before, and what the heads receive; float64 leaves."""

    def leaf(values):
        return values.double().requires_grad_(grad)

    memory, before = (
        leaf(torch.randn(COLUMNS, rows, width)),
        leaf(torch.rand(COLUMNS, heads, rows).double().softmax(-1)),
    )
    positive = [leaf(1 + 2 * torch.rand(COLUMNS, heads, 1)) for _ in range(2)]
    key, gate = leaf(torch.randn(COLUMNS, heads, width)), leaf(torch.rand(COLUMNS, heads, 1))
    shift = leaf(torch.rand(COLUMNS, heads, shifts).softmax(-1))
    return memory, before, Heads(key, positive[0], gate, shift, positive[1])


def test_gradients_of_addressing():
    memory, before, heads = drawn()
    check = torch.autograd.gradcheck
    assert check(by_content, (memory, heads.key, heads.strength))
    assert check(shifted, (before, heads.shift))
    assert check(sharpened, (before, heads.sharpness))
    assert check(lambda memory, before, *parts: addressed(memory, before, Heads(*parts)), (memory, before, *heads))


@pytest.mark.parametrize("writers", [1, 3])
def test_gradients_of_writing(writers):
    memory, weights, _ = drawn(heads=writers)
    erase, add = (torch.rand(COLUMNS, writers, 3, dtype=torch.float64, requires_grad=True) for _ in range(2))
    assert torch.autograd.gradcheck(written, (memory, weights, erase, add))
    assert torch.autograd.gradgradcheck(written, (memory, weights, erase, add))


def test_weights_are_distributions():
    for heads in (1, 3):
        memory, before, parts = drawn(heads=heads, grad=False)
        found = addressed(memory, before, parts)
        assert (found >= 0).all()
        torch.testing.assert_close(found.sum(-1), torch.ones(COLUMNS, heads, dtype=torch.float64))


def test_a_shift_goes_round_the_memory():
    """The first of the shifts is to the row before, the last to the row after; beyond an end is the other end."""
    first, last = torch.eye(5)[[0, 4]]
    back, stay, on = torch.eye(3)
    for weights, shift, row in ((first, back, 4), (first, stay, 0), (first, on, 1), (last, on, 0), (last, back, 3)):
        assert torch.equal(shifted(weights.view(1, 1, 5), shift.view(1, 1, 3)), torch.eye(5)[row].view(1, 1, 5))
    far = torch.tensor([0.0, 0, 0, 0, 1]).view(1, 1, 5)
    assert torch.equal(shifted(first.view(1, 1, 5), far), torch.eye(5)[2].view(1, 1, 5))


def test_the_gate_chooses_between_content_and_location():
    memory, before, heads = drawn(grad=False)
    stay = torch.tensor([0.0, 1, 0], dtype=torch.float64).expand_as(heads.shift)
    plain = heads._replace(shift=stay, sharpness=torch.ones_like(heads.sharpness))
    content = by_content(memory, heads.key, heads.strength)
    for gate, wanted in ((0.0, before), (1.0, content), (0.25, 0.25 * content + 0.75 * before)):
        found = addressed(memory, before, plain._replace(gate=torch.full_like(heads.gate, gate)))
        torch.testing.assert_close(found, wanted, rtol=1e-9, atol=1e-10)


def test_a_key_finds_its_row():
    memory = torch.randn(1, 6, 4)
    found = by_content(memory, 0.5 * memory[:, [4]], torch.full((1, 1, 1), 200.0))
    assert found[0, 0].argmax() == 4
    assert found[0, 0, 4] > 0.99


def test_every_head_erases_before_any_adds():
    memory, here = torch.full((1, 3, 2), 0.5), torch.eye(3)[[1, 1]].unsqueeze(0)
    erase, add = torch.tensor([[[1.0, 1.0], [0, 0]]]), torch.tensor([[[0.0, 0.25], [-1, 0]]])
    found = written(memory, here, erase, add)
    assert torch.equal(found[0], torch.tensor([[0.5, 0.5], [-1.0, 0.25], [0.5, 0.5]]))
    alone = written(memory, here[:, :1], erase[:, :1], add[:, :1])
    assert torch.equal(alone[0], torch.tensor([[0.5, 0.5], [0.0, 0.25], [0.5, 0.5]]))


def test_no_power_of_a_weight_is_lost():
    """Of 128 equal weights to the power of 100 none is a number of float32, but the result is."""
    weights = torch.full((1, 1, 128), 1 / 128, requires_grad=True)
    found = sharpened(weights, torch.full((1, 1, 1), 100.0))
    torch.testing.assert_close(found, weights)
    found[0, 0, 0].backward()
    assert weights.grad.isfinite().all()
    twice = sharpened(torch.tensor([[[0.75, 0.25, 0.0]]]), torch.full((1, 1, 1), 2.0))
    torch.testing.assert_close(twice, torch.tensor([[[0.9, 0.1, 0.0]]]))


@pytest.mark.parametrize("value", [0.0, EMPTY])
def test_gradients_of_an_empty_memory_are_bounded(value):
    """By beta / sqrt(eps) for each number, although the cosine of a vector of zeros has no limit."""
    memory = torch.full((1, 8, 4), value, requires_grad=True)
    found = by_content(memory, torch.randn(1, 1, 4), torch.full((1, 1, 1), 3.0))
    torch.testing.assert_close(found, torch.full_like(found, 1 / 8), atol=1e-3, rtol=0)
    found[0, 0, 0].backward()
    assert memory.grad.abs().max() <= 3 / math.sqrt(ntm.LEAST_SQUARE)
    assert memory.grad.isfinite().all()


def test_it_begins_with_a_constant_memory_and_its_heads_at_row_0():
    core = machine(size=3, rows=4, width=2, read_heads=2)
    controller, memory, weights, reads = core.begin(3)
    assert EMPTY == 1e-6
    assert torch.equal(memory, torch.full((3, 4, 2), 1e-6, dtype=torch.float64))
    assert torch.equal(weights, torch.eye(4, dtype=torch.float64)[0].expand(3, 3, 4))
    assert torch.equal(reads, torch.zeros(3, 4, dtype=torch.float64))
    assert [leaf.shape for leaf in controller] == [(3, 3), (3, 3)]
    assert machine(size=3, rows=4, width=2, controller=config.Perceptron()).begin(3)[0] == ()


@pytest.mark.parametrize(
    ("encoder", "choice"),
    [
        (config.Lookup(size=3), config.Flat()),
        (config.Frames(size=3), config.Bernoulli()),
        (config.Values(), config.Gaussian()),
    ],
)
def test_it_is_a_core_of_models_of_text_music_and_series(encoder, choice):
    record = config.TuringMachine(size=4, rows=5, width=2, output_dropout=0.5)
    model = build_model(config.Model(encoder=encoder, core=record, output=config.Output(choice=choice)), 6).train()
    steps = torch.randint(2, (7, 3) if isinstance(encoder, config.Lookup) else (7, 3, 6))
    steps = steps if isinstance(encoder, config.Lookup) else steps.float()
    log_prob, _ = model.log_prob(steps[:-1], steps[1:], model.begin(3))
    log_prob.sum().backward()
    assert log_prob.isfinite().all()
    assert all(parameter.grad is not None for parameter in model.parameters())
    trace, _ = model.trace(steps, model.begin(3))
    assert (trace.top == 0).any()
    assert not (trace.raw[-1] == 0).any()


def test_the_memory_stays_within_its_bound():
    core = machine(size=3, rows=4, width=2, write_heads=2).eval()
    with torch.no_grad():
        for parameter in core.parameters():
            parameter.mul_(20)
    _, (_, memory, _, _) = core(torch.randn(30, 4, INPUTS, dtype=torch.float64), core.begin(4))
    assert memory.isfinite().all()
    assert memory.abs().max() <= EMPTY + 2 * 30


def test_the_documented_records_can_be_read():
    page = (Path(__file__).parents[3] / "docs" / "cells.md").read_text(encoding="utf-8")
    shown = re.findall(r"^    (core = \{ kind = \"ntm\".*\})$", page, re.MULTILINE)
    records = [convert(tomllib.loads(line), _Core).core for line in shown]
    assert [record.controller for record in records] == [config.LSTM(), config.GRU(), config.Perceptron()]


def test_a_shift_wider_than_the_memory_is_refused():
    machine(size=3, rows=3, width=2)
    with pytest.raises(UserError, match=r"model.core.reach = 1: shifts from -1 to 1 need 3 rows or more"):
        machine(size=3, rows=2, width=2)
