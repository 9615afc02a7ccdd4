"""Residual blocks against a NumPy transcription, around every cell, and what they drop."""

import numpy as np
import pytest
import torch

from elman import config
from elman.network.cores.core import build_core
from reference import residual as reference
from reference.recurrences import convolution
from support import networks
from support.pairwise import every_pair, every_value

STEPS, ROWS = 5, 2


def core(inputs=3, **keys):
    record = config.Residual(**{"size": 4, "depth": 2, **keys})
    return networks.randomise(build_core(record, inputs, locked=True)).eval()


def array(parameter):
    return parameter.detach().numpy()


def normalised(norm, x):
    parts = [array(parameter) for parameter in norm.parameters()]
    return (reference.rms_norm if len(parts) == 1 else reference.layer_norm)(x, *parts)


@every_pair(inputs=[3, 4], feed_forward=["none", "mlp", "glu"], norm=["rms", "layer"], reach=[None, 3])
def test_blocks_are_those_of_the_equations(norm, feed_forward, inputs, reach):
    """With the cell's own outputs, which its transcription covers."""
    made = core(inputs, norm=norm, feed_forward=feed_forward, expansion=1.5, convolution=reach)
    x = torch.randn(STEPS, ROWS, inputs, dtype=torch.float64)
    trace, after = made(x, made.begin(ROWS))
    stream, levels = x.numpy() if inputs == 4 else x.numpy() @ array(made.into).T, []
    for index, layer in enumerate(made.layers):
        read = normalised(made.norms[index], stream)
        if reach is not None:
            kernel, bias = (array(part) for part in made.convolutions[index].parameters())
            window = np.concatenate([np.zeros((reach - 1, ROWS, 4)), read])
            read = np.array([convolution(kernel, window[t : t + reach]) for t in range(STEPS)]) + bias
            np.testing.assert_allclose(array(after[index][-1]), window[STEPS:].transpose(1, 0, 2), rtol=1e-10)
        outputs, state = layer(torch.from_numpy(read), layer.begin(ROWS))
        stream = stream + array(outputs)
        for ours, expected in zip(after[index], state, strict=reach is None):
            torch.testing.assert_close(ours, expected, rtol=1e-10, atol=1e-12)
        if feed_forward != "none":
            feed = made.feeds[index]
            assert feed.out.shape == (4, 6)
            formula = reference.gated if feed_forward == "glu" else reference.feed_forward
            stream = stream + formula(array(feed.into), array(feed.out), normalised(made.feed_norms[index], stream))
        levels.append(stream)
    levels[-1] = normalised(made.last_norm, stream)
    for ours, expected in zip(trace.levels[1:], levels, strict=True):
        np.testing.assert_allclose(array(ours), expected, rtol=1e-10, atol=1e-12)
    assert made.dims == (inputs, 4, 4)


@every_value(name=networks.CELL_RECORDS, reach=[None, 3])
def test_any_cell_is_carried_over_windows(name, reach):
    made = core(cell=networks.CELL_RECORDS[name], convolution=reach)
    x = torch.randn(STEPS, ROWS, 3, dtype=torch.float64)
    whole, end = made(x, made.begin(ROWS))
    first, between = made(x[:2], made.begin(ROWS))
    second, after = made(x[2:], between)
    torch.testing.assert_close(torch.cat([first.top, second.top]), whole.top)
    torch.testing.assert_close(after, end)


@pytest.mark.parametrize("reach", [None, 3])
def test_gradients_reach_every_parameter(reach):
    made = core(cell=config.LRU(), convolution=reach)
    made(torch.randn(STEPS, ROWS, 3, dtype=torch.float64), made.begin(ROWS))[0].top.square().sum().backward()
    assert all(parameter.grad.abs().sum() > 0 for parameter in made.parameters())


def test_it_begins_as_the_rules_say():
    made = build_core(config.Residual(size=400, depth=1, norm="layer"), 30, locked=True)
    made.initialise(config.Initialisation(input=config.Normal()))
    feed = made.feeds[0]
    for matrix, fan in ((made.into, 30), (feed.into, 400), (feed.out, 1200)):
        assert matrix.std().item() == pytest.approx(fan**-0.5, rel=0.03)
    assert all(norm.weight.eq(1).all() and norm.bias.eq(0).all() for norm in (*made.norms, made.last_norm))


def test_a_convolution_begins_with_the_variance_of_its_inputs_and_names_its_largest_outputs():
    made = build_core(config.Residual(size=400, depth=1, convolution=4), 30, locked=True)
    made.initialise(config.Initialisation())
    (each,) = made.convolutions
    assert each.kernel.std().item() == pytest.approx(0.5, rel=0.05)
    assert each.bias.eq(0).all()
    with torch.no_grad():
        each.bias.normal_()
    signs = torch.cat([each.kernel.sign(), each.bias.sign().unsqueeze(1)], 1)
    inputs = (torch.rand(400) * signs[:, :4].t() * signs[:, 4]).unsqueeze(1)
    outputs, _ = each.double()(inputs.double(), each.begin(1))
    torch.testing.assert_close(outputs[-1, 0].abs(), each.largest(inputs[0, 0].double().abs()))


def test_dropout_masks_what_the_halves_add_and_the_output():
    made = core(4, dropout=0.999, output_dropout=0.0).train()
    x = torch.randn(STEPS, ROWS, 4, dtype=torch.float64)
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.mul_(1e-3)
        made.last_norm.weight.fill_(1.0)
    expected = reference.rms_norm(x.numpy(), np.ones(4))
    close = np.isclose(array(made(x, made.begin(ROWS))[0].top), expected, rtol=1e-3).all(-1)
    assert close.mean() > 0.9
    dropped = core(4, output_dropout=0.5).train()
    trace, _ = dropped(x, dropped.begin(ROWS))
    assert 0 < (trace.top == 0).float().mean() < 1
    assert not (trace.raw[-1] == 0).any()
