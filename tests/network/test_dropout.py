"""Dropout in its recurrent forms: what a mask is shared over, what is scaled, nothing in evaluation mode."""

import msgspec
import pytest
import torch

from elman import config
from elman.network import dropout
from elman.network.build import build_model
from elman.network.cells.lstm import LSTM
from elman.network.cores.core import build_core
from elman.network.cores.layer import Layer
from elman.network.encoders.encoder import build_encoder
from elman.network.output.contexts import build_contexts
from support import networks
from support.pairwise import every_value


def constant_over(x, axis):
    return bool((x == x.select(axis, 0).unsqueeze(axis)).all())


def test_locked_masks_are_constant_over_time_and_differ_over_the_batch():
    dropped = dropout.locked(torch.ones(6, 8, 50), 0.4)
    assert constant_over(dropped, 0)
    assert not constant_over(dropped, 1)
    assert not constant_over(dropped, 2)


def test_elementwise_masks_differ_everywhere():
    dropped = dropout.elementwise(torch.ones(6, 8, 50), 0.4)
    assert not any(constant_over(dropped, axis) for axis in range(3))


@pytest.mark.parametrize(
    "drop",
    [
        dropout.locked,
        dropout.elementwise,
        lambda x, p: x * dropout.word_types(len(x), p, x),
    ],
)
@pytest.mark.parametrize("rate", [0.1, 0.65])
def test_dropout_keeps_the_mean(drop, rate):
    """What is kept is scaled by 1 / (1 - rate), so that evaluation needs no change."""
    dropped = torch.stack([drop(torch.ones(40, 50), rate) for _ in range(50)])
    torch.testing.assert_close(dropped.unique(), torch.tensor([0.0, 1 / (1 - rate)]))
    assert abs(dropped.mean() - 1) < 0.15


@pytest.mark.parametrize("drop", [dropout.locked, dropout.elementwise])
def test_dropout_at_rate_zero_is_the_identity(drop):
    x = torch.randn(3, 4)
    assert drop(x, 0.0) is x


def test_word_dropout_drops_whole_types():
    encoder = build_encoder(config.Lookup(size=4, word_dropout=0.5), 30, locked=True).train()
    torch.nn.init.ones_(encoder.weight)
    words = torch.randint(30, (12, 9))
    vectors = encoder(words)
    kept = {}
    for word, vector in zip(words.flatten().tolist(), vectors.flatten(0, 1), strict=True):
        assert vector.unique().numel() == 1
        kept.setdefault(word, set()).add(vector[0].item())
    assert all(len(values) == 1 for values in kept.values())
    assert {next(iter(values)) for values in kept.values()} == {0.0, 2.0}
    assert not torch.equal(encoder(words), vectors)


def test_word_dropout_leaves_every_word_its_gradient():
    """The published code passes padding_idx = -1, by which a current torch leaves out the last word."""
    encoder = build_encoder(config.Lookup(size=4, word_dropout=0.01), 5, locked=True).train()
    torch.manual_seed(0)
    encoder(torch.arange(5).unsqueeze(1)).sum().backward()
    torch.testing.assert_close(encoder.weight.grad, torch.full((5, 4), 1 / 0.99))


@pytest.mark.parametrize("locked", [True, False])
def test_embedding_dropout_and_scale(locked):
    encoder = build_encoder(config.Lookup(size=40, dropout=0.5, scale=3.0), 5, locked=locked).train()
    torch.nn.init.ones_(encoder.weight)
    words = torch.randint(5, (6, 4))
    vectors = encoder(words)
    assert set(vectors.unique().tolist()) == {0.0, 6.0}
    assert constant_over(vectors, 0) == locked
    assert torch.equal(encoder.eval()(words), torch.full((6, 4, 40), 3.0))


def test_drop_connect_draws_one_mask_a_call():
    """With h_t = relu(U h_{t-1}) and U = I, a unit whose weight is dropped is silent at every step."""
    layer = Layer(config.Elman(nonlinearity="relu"), 1, 64, biases=0, weight_drop=0.5).train()
    torch.nn.init.zeros_(layer.weight_ih)
    torch.nn.init.eye_(layer.weight_hh)
    xs, start = torch.zeros(5, 2, 1), (torch.ones(2, 64),)
    outputs, _ = layer(xs, start)
    assert torch.equal(outputs[4] > 0, outputs[0] > 0)
    assert constant_over(outputs, 1)
    assert set(outputs[0].unique().tolist()) == {0.0, 2.0}
    assert not torch.equal(layer(xs, start)[0], outputs)
    assert torch.equal(layer.weight_hh, torch.eye(64))


@pytest.mark.parametrize(
    "name",
    ["elman-relu", "lstm", "lstm-1997", "lstm-peephole", "lstm-coupled", "rung-input", "highway-3", "highway-2-carry"],
)
def test_recurrent_dropout_holds_its_mask_over_time(name):
    """Silencing the units of the mask in U's columns, scaled by what the rest gain, is the same."""
    cell = networks.CELLS[name]
    layer = Layer(cell, 3, 16, recurrent_dropout=0.5).train()
    networks.randomise(layer, 0.3)
    xs, state = torch.randn(7, 1, 3, dtype=torch.float64), networks.state(cell, 1, 16)
    torch.manual_seed(5)
    outputs, _ = layer(xs, state)
    torch.manual_seed(5)
    mask = dropout.elementwise(torch.ones(1, 16, dtype=torch.float64), 0.5)
    assert 0 < (mask == 0).sum() < 16
    with torch.no_grad():
        layer.weight_hh *= mask
    torch.testing.assert_close(outputs, layer.eval()(xs, state)[0])


@pytest.mark.parametrize("name", ["elman-relu", "lstm", "highway-3"])
def test_fresh_recurrent_masks_are_drawn_at_every_step(name):
    """Each step alone, with the units of its own mask silenced in U's columns, is the same."""
    cell = networks.CELLS[name]
    layer = networks.randomise(Layer(cell, 3, 16, recurrent_dropout=0.5, locked=False), 0.3).train()
    xs, state = torch.randn(4, 1, 3, dtype=torch.float64), networks.state(cell, 1, 16)
    torch.manual_seed(5)
    outputs, _ = layer(xs, state)
    torch.manual_seed(5)
    masks = [dropout.elementwise(torch.ones(1, 16, dtype=torch.float64), 0.5) for _ in xs]
    assert not torch.equal(masks[0], masks[1])
    weights = layer.weight_hh.detach().clone()
    for x, mask, output in zip(xs.split(1), masks, outputs, strict=True):
        layer.weight_hh.data = weights * mask
        expected, state = layer.eval()(x, state)
        torch.testing.assert_close(expected[0], output)


@pytest.mark.parametrize("connections", ["chain", "graves"])
@pytest.mark.parametrize("locked", [True, False])
def test_recurrent_masks_follow_the_masks_of_the_model(connections, locked):
    record = config.Stack(sizes=(4, 4), connections=connections, recurrent_dropout=0.5)
    assert [layer.locked for layer in build_core(record, 3, locked=locked).layers] == [locked, locked]


def test_recurrent_masks_differ_over_the_batch():
    layer = networks.randomise(Layer(LSTM(), 3, 16, recurrent_dropout=0.5)).train()
    xs, h = torch.randn(4, 1, 3).double().expand(4, 6, 3), torch.ones(6, 16).double()
    assert not constant_over(layer(xs, (h, h))[0].detach().round(decimals=9), 1)


@pytest.mark.parametrize("locked", [True, False])
def test_a_stack_drops_between_and_after_its_layers(locked):
    core = networks.stack("lstm", sizes=(40, 40), between_dropout=0.3, output_dropout=0.6, locked=locked).train()
    trace, _ = core(torch.randn(5, 4, 3, dtype=torch.float64), core.begin(4))
    for level, raw, rate in zip(trace.levels[1:], trace.raw[1:], (0.3, 0.6), strict=True):
        mask = level / raw
        values = torch.tensor([0, 1 / (1 - rate)], dtype=torch.float64)
        torch.testing.assert_close(mask.round(decimals=6).unique(), values, rtol=1e-5, atol=1e-5)
        assert abs((mask == 0).double().mean() - rate) < 0.12
        assert constant_over(mask == 0, 0) == locked
        assert not constant_over(mask == 0, 1)


@pytest.mark.parametrize("shared", [True, False])
def test_context_dropout_is_locked_and_shared_or_not(shared):
    """The DOC code holds one mask for all components, the MoS code one for each."""
    record = config.Mixture(heads={0: 2, 1: 2}, size=40, linear=True, dropout=0.5, shared_mask=shared)
    layer = build_contexts(config.Output(contexts=record), (3, 5)).train()
    for projection in layer.projections.values():
        torch.nn.init.zeros_(projection.weight)
        torch.nn.init.ones_(projection.bias)
    core = networks.stack("lstm", sizes=(5,)).float()
    trace, _ = core(torch.randn(6, 4, 3), core.begin(4))
    vectors = layer(trace).vectors
    assert set(vectors.unique().tolist()) == {0.0, 2.0}
    assert constant_over(vectors, 0)
    assert not constant_over(vectors, 1)
    assert constant_over(vectors, 2) == shared


def test_window_core_drops_its_output():
    core = networks.randomise(
        build_core(config.FeedForward(width=2, size=60, output_dropout=0.5), 3, locked=False)
    ).train()
    trace, _ = core(torch.randn(5, 2, 3, dtype=torch.float64), core.begin(2))
    assert abs((trace.top == 0).double().mean() - 0.5) < 0.1


RATES = {
    "stack": config.Stack(sizes=(5, 4), weight_drop=0.5, between_dropout=0.5, output_dropout=0.5),
    "masked": config.Stack(sizes=(5, 4), recurrent_dropout=0.5, between_dropout=0.5),
    "window": config.FeedForward(width=3, size=4, output_dropout=0.5),
    "graves": config.Stack(sizes=(3, 4), connections="graves", between_dropout=0.5, output_dropout=0.5),
    "melis": config.Stack(sizes=(4, 4), connections="melis", recurrent_dropout=0.5, output_dropout=0.5),
    "highway": config.Stack(sizes=(5, 4), cell=config.Highway(depth=2), weight_drop=0.5, recurrent_dropout=0.5),
    "mogrifier": config.Stack(sizes=(5, 4), cell=config.Mogrifier(), weight_drop=0.5, recurrent_dropout=0.5),
    "jordan": config.Jordan(size=4, output_dropout=0.5),
    "jordan-target": config.Jordan(size=4, feedback="target", output_dropout=0.5),
    "reservoir": config.Reservoir(size=8, density=0.5, output_dropout=0.5),
}
PLAIN = {
    "stack": config.Stack(sizes=(5, 4)),
    "masked": config.Stack(sizes=(5, 4)),
    "window": config.FeedForward(width=3, size=4),
    "graves": config.Stack(sizes=(3, 4), connections="graves"),
    "melis": config.Stack(sizes=(4, 4), connections="melis"),
    "highway": config.Stack(sizes=(5, 4), cell=config.Highway(depth=2)),
    "mogrifier": config.Stack(sizes=(5, 4), cell=config.Mogrifier()),
    "jordan": config.Jordan(size=4),
    "jordan-target": config.Jordan(size=4, feedback="target"),
    "reservoir": config.Reservoir(size=8, density=0.5),
}


@every_value(masks=["locked", "fresh"], kind=RATES)
def test_nothing_is_dropped_in_evaluation_mode(kind, masks):
    mixture = config.Mixture(heads={0: 1, 1: 2}, size=4)
    dropping = config.Model(
        encoder=config.Lookup(size=4, dropout=0.5, word_dropout=0.5),
        core=RATES[kind],
        output=config.Output(contexts=msgspec.structs.replace(mixture, dropout=0.5)),
        masks=masks,
    )
    output = config.Output(contexts=mixture)
    plain = config.Model(encoder=config.Lookup(size=4), core=PLAIN[kind], output=output)
    model, twin = build_model(dropping, 7), build_model(plain, 7)
    twin.load_state_dict(model.state_dict())
    inputs, targets = torch.randint(7, (6, 3)), torch.randint(7, (6, 3))
    expected, _ = twin.train().log_prob(inputs, targets, twin.begin(3))
    for _ in range(2):
        dropped, _ = model.train().log_prob(inputs, targets, model.begin(3))
        assert not torch.allclose(dropped, expected)
        torch.testing.assert_close(model.eval().log_prob(inputs, targets, model.begin(3))[0], expected)
