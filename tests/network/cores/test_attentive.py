"""Scores, contexts and the attention layer by the papers' equations; padding has no weight."""

import numpy as np
import pytest
import torch
from torch.nn import init

from elman.network.cells.gru import GRU
from elman.network.cores.attentive import Additive, AttentiveCore, Dot, General, attend, fed_size
from elman.network.cores.layer import Layer
from elman.network.cores.stack import StackCore
from reference import attention as paper
from reference.cells import Gate, gru_reset_before

D, M, A = 4, 4, 3


def drawn(module):
    for parameter in module.parameters():
        init.normal_(parameter)
    return module.double()


def numpy(tensor):
    return tensor.detach().numpy()


def scores_of(kind, h, memory):
    match kind:
        case Dot():
            return paper.dot(h, memory)
        case General():
            return paper.general(h, memory, numpy(kind.memory.weight))
        case Additive():
            return paper.additive(h, memory, numpy(kind.query.weight), numpy(kind.memory.weight), numpy(kind.vector))


KINDS = {"dot": Dot, "general": lambda: General(D, M), "additive": lambda: Additive(D, M, 5)}


@pytest.mark.parametrize("name", KINDS)
def test_scores_and_contexts_are_those_of_the_papers(name):
    kind = drawn(KINDS[name]())
    memory, queries = torch.randn(2, 6, M, dtype=torch.float64), torch.randn(2, 3, D, dtype=torch.float64)
    contexts, weights = attend(kind.scores(queries, kind.keys(memory)), memory, torch.ones(2, 6, dtype=torch.bool))
    for b in range(2):
        for t in range(3):
            of_paper, by_paper = paper.context(
                scores_of(kind, numpy(queries[b, t]), numpy(memory[b])), numpy(memory[b])
            )
            np.testing.assert_allclose(numpy(contexts[b, t]), of_paper, rtol=1e-12, atol=1e-14)
            np.testing.assert_allclose(numpy(weights[b, t]), by_paper, rtol=1e-12)


def test_padding_has_no_weight_and_no_gradient():
    scores = torch.randn(2, 3, 5, requires_grad=True)
    memory = torch.randn(2, 5, M, requires_grad=True)
    mask = torch.tensor([[True, True, False, False, False], [True] * 5])
    contexts, weights = attend(scores, memory, mask)
    assert weights[0, :, 2:].eq(0).all()
    torch.testing.assert_close(weights.sum(-1), torch.ones(2, 3))
    contexts.square().sum().backward()
    assert scores.grad[0, :, 2:].eq(0).all()
    assert memory.grad[0, 2:].eq(0).all()


def test_nothing_is_looked_at_where_there_is_nothing():
    contexts, weights = attend(torch.randn(2, 3, 4), torch.randn(2, 4, M), torch.zeros(2, 4, dtype=torch.bool))
    assert contexts.eq(0).all()
    assert weights.eq(0).all()


def core_of(feed, kind):
    layer = Layer(GRU(reset="before"), 2 + fed_size(feed, M, A), D, biases=1)
    return drawn(AttentiveCore(StackCore([layer]), kind, M, A, feed=feed)).eval()


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("feed", ["nothing", "output", "context"])
def test_a_decoder_by_its_equations(feed, name):
    """One layer of GRU, step by step in NumPy: what is fed, what is looked at, what comes out."""
    core = core_of(feed, KINDS[name]())
    memory = torch.randn(5, 1, M, dtype=torch.float64)
    xs = torch.randn(4, 1, 2, dtype=torch.float64)
    mask = torch.ones(5, 1, dtype=torch.bool)
    trace, _ = core(xs, core.prepare(memory, mask, core.stack.begin(1)))
    (layer,) = core.stack.layers
    w, u, b, w_c = map(numpy, (layer.weight_ih, layer.weight_hh, layer.bias_ih, core.combine.weight))
    parts = zip(*(np.split(part, 3) for part in (w, u, b)), strict=True)
    gates = [Gate(*part, np.zeros(D)) for part in parts]
    rows, h, fed = numpy(memory[:, 0]), np.zeros(D), np.zeros(A)
    for t in range(4):
        before = h
        if feed == "context":
            fed, _ = paper.context(scores_of(core.attention, before, rows), rows)
        x = numpy(xs[t, 0]) if feed == "nothing" else np.concatenate([numpy(xs[t, 0]), fed])
        h = gru_reset_before(*gates, x, before)
        looked = before if feed == "context" else h
        c, weights = paper.context(scores_of(core.attention, looked, rows), rows)
        output = paper.attention_layer(c, h, w_c)
        if feed == "output":
            fed = output
        np.testing.assert_allclose(numpy(trace.levels[1][t, 0]), h, rtol=1e-9)
        np.testing.assert_allclose(numpy(trace.top[t, 0]), output, rtol=1e-9)
        np.testing.assert_allclose(numpy(trace.attention[t, 0]), weights, rtol=1e-9)


def test_the_symbols_alone_go_through_the_fused_path_and_the_loop_alike():
    """A core that feeds nothing, sent through the loop with its own weights: values and gradients agree."""
    core = core_of("nothing", General(D, M))
    looped = core_of("output", General(D, M))
    with torch.no_grad():
        (mine,), (its,) = core.stack.layers, looped.stack.layers
        its.weight_ih.zero_()
        its.weight_ih[:, :2] = mine.weight_ih
        for name in ("weight_hh", "bias_ih"):
            getattr(its, name).copy_(getattr(mine, name))
        looped.attention.load_state_dict(core.attention.state_dict())
        looped.combine.load_state_dict(core.combine.state_dict())
    memory, xs = torch.randn(5, 3, M, dtype=torch.float64), torch.randn(4, 3, 2, dtype=torch.float64)
    mask = torch.ones(5, 3, dtype=torch.bool)
    for one in (core, looped):
        trace, _ = one(xs, one.prepare(memory, mask, one.stack.begin(3)))
        trace.top.square().sum().backward()
        one.seen = trace.top
    torch.testing.assert_close(core.seen, looped.seen)
    torch.testing.assert_close(looped.stack.layers[0].weight_ih.grad[:, :2], core.stack.layers[0].weight_ih.grad)
    torch.testing.assert_close(looped.combine.weight.grad, core.combine.weight.grad)
    torch.testing.assert_close(looped.attention.memory.weight.grad, core.attention.memory.weight.grad)


@pytest.mark.parametrize("feed", ["output", "context"])
def test_dropout_of_a_decoder_is_between_the_layers_before_the_output_and_on_what_is_fed(feed, monkeypatch):
    """Step by step with given masks: the second layer, the attention layer and the next step read masked values."""
    cells = [Layer(GRU(reset="before"), inputs, D, biases=1) for inputs in (2 + fed_size(feed, M, A), D)]
    core = drawn(AttentiveCore(StackCore(cells), Dot(), M, A, feed=feed))
    masks = [2.0 * torch.randint(2, (4, 1, size)).double() for size in (D, D, A)]
    monkeypatch.setattr(core.stack, "masks", lambda x: masks[:2])
    monkeypatch.setattr(core.output_dropout, "mask", lambda x, size: masks[2])
    memory, xs = torch.randn(5, 1, M, dtype=torch.float64), torch.randn(4, 1, 2, dtype=torch.float64)
    trace, _ = core(xs, core.prepare(memory, torch.ones(5, 1, dtype=torch.bool), core.stack.begin(1)))
    states, fed = [torch.zeros(1, D, dtype=torch.float64)] * 2, torch.zeros(1, A, dtype=torch.float64)

    def look(query):
        return attend((query @ memory[:, 0].t()).unsqueeze(1), memory.transpose(0, 1), torch.ones(1, 5).bool())[0][:, 0]

    for t in range(4):
        context = look(states[1])
        below = torch.cat([xs[t], context if feed == "context" else fed], 1)
        for index, layer in enumerate(core.stack.layers):
            (states[index],) = layer.cell.step(layer.weights(), below, (states[index],))
            below = states[index] * masks[index][t]
        context = context if feed == "context" else look(below)
        output = (torch.cat([context, below], 1) @ core.combine.weight.t()).tanh()
        fed = output * masks[2][t]
        for level, value in zip(trace.raw[1:], (*states, output), strict=True):
            torch.testing.assert_close(level[t], value)
        for level, value in zip(trace.levels[2:], (below, fed), strict=True):
            torch.testing.assert_close(level[t], value)
