"""The diagonal and linear cells against NumPy transcriptions; how they begin; what they refuse."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from elman import config
from elman.errors import UserError
from elman.network.build import build_model
from elman.network.cells import rg_lru
from elman.network.cells.cell import unroll
from elman.network.cells.lru import _lambda as eigenvalues
from elman.network.cores.layer import Layer
from reference import recurrences as reference
from support import networks
from support.pairwise import every_pair

INPUTS, SIZE, STEPS = 3, 4, 6


def arrays(w):
    """The arrays by their names, and `b`, zeros where there is no bias."""
    named = SimpleNamespace(**{name: part.detach().numpy() for name, part in w.tensors().items()})
    named.b = np.zeros(len(w.weight_ih)) if w.bias_ih is None else w.bias_ih.detach().numpy()
    return named


def min_gru(w, record, x, h):
    (W_z, W_h), (b_z, b_h) = (np.split(part, 2) for part in (arrays(w).weight_ih, arrays(w).b))
    return reference.min_gru(W_z, b_z, W_h, b_h, x, h)


def min_lstm(w, record, x, h):
    gates = zip(*(np.split(part, 3) for part in (arrays(w).weight_ih, arrays(w).b)), strict=True)
    return reference.min_lstm(*(part for gate in gates for part in gate), x, h)


def qrnn(w, record, x, _, c, x_before=None):
    a = arrays(w)
    W, b = a.weight_ih, a.b
    now, before = np.split(W, 3), np.split(a.weight_before if record.window == 2 else 0 * W, 3)
    found = reference.qrnn(now, before, np.split(b, 3), x, x if x_before is None else x_before, c)
    return found if x_before is None else (*found, x)


def sru(w, record, x, _, c):
    a = arrays(w)
    W, b, (v_f, v_r) = a.weight_ih, a.b, a.v
    skip = x @ a.skip.T if hasattr(a, "skip") else x
    return reference.sru(*np.split(W, 3), *np.split(b, 3), v_f, v_r, skip, record.highway_bias, x, c)


def lru(w, record, x, _, re, im):
    a = arrays(w)
    D, b, (nu, theta, gamma), b_re, b_im, c_re, c_im = a.weight_ih, a.b, a.eigenvalues, a.B_re, a.B_im, a.C_re, a.C_im
    h, s = reference.lru(nu, theta, gamma, b_re + 1j * b_im, c_re + 1j * c_im, D, b, x, re + 1j * im)
    return h, s.real, s.imag


def griffin(w, record, x, _, s, begun, before):
    a = arrays(w)
    (W_u, W_g), (b_u, b_g), (W_r, W_i), (b_r, b_i) = (
        np.split(a.weight_ih, 2),
        np.split(a.b, 2),
        a.gate_weight,
        a.gate_bias,
    )
    lam, kernel, bias, out, out_bias = a.Lambda, a.conv_weight, a.conv_bias, a.out_weight, a.out_bias
    window = np.concatenate([before, (x @ W_u.T + b_u)[:, None]], axis=1)
    u = reference.convolution(kernel, window.transpose(1, 0, 2)) + bias
    first = not begun.any()
    s = reference.rg_lru(W_r, b_r, W_i, b_i, lam, u, s, first)
    return (reference.gelu(x @ W_g.T + b_g) * s) @ out.T + out_bias, s, np.ones_like(begun), window[:, 1:]


TRANSCRIPTIONS = {
    "min-gru": min_gru,
    "min-lstm": min_lstm,
    "qrnn-1": qrnn,
    "qrnn-2": qrnn,
    "sru": sru,
    "lru": lru,
    "lru-3": lru,
    "rg-lru": griffin,
}


@every_pair(inputs=[INPUTS, SIZE], biases=[0, 1], name=TRANSCRIPTIONS)
def test_step_and_sequence_are_the_papers_equations(name, biases, inputs):
    """From the first state, and again from the one that was reached."""
    cell, record = networks.CELLS[name], networks.CELL_RECORDS[name]
    w = networks.weights(cell, inputs=inputs, biases=biases)
    state = tuple(torch.zeros(2, *shape, dtype=torch.float64) for shape in cell.shapes(inputs, SIZE))
    expected = tuple(part.numpy() for part in state)
    for _ in range(2):
        xs = torch.randn(STEPS, 2, inputs, dtype=torch.float64)
        found = [(cell.scan(w, xs, state)), unroll(cell.step, w, xs, state)]
        outputs = []
        for x in xs.numpy():
            expected = TRANSCRIPTIONS[name](w, record, x, *expected)
            outputs.append(expected[0])
        for ours, after in found:
            np.testing.assert_allclose(ours.detach().numpy(), outputs, rtol=1e-10, atol=1e-12)
            for part, value in zip(after, expected, strict=True):
                np.testing.assert_allclose(part.detach().numpy(), value, rtol=1e-10, atol=1e-12)
        state = tuple(part.detach() for part in found[0][1])


def test_gates_that_are_closed_in_floating_point_share_what_they_should():
    """With f = i = 0 in float32 the shares are still those of their ratio."""
    sums = torch.tensor([[-200.0, -201.0, 3.0]])
    a, b = config.MinLSTM().factors(sums)
    assert a.item() == pytest.approx(math.e / (1 + math.e), rel=1e-5)
    assert b.item() == pytest.approx(3.5 / (1 + math.e), rel=1e-5)


def initialised(record, size, inputs=5):
    torch.manual_seed(0)
    layer = Layer(record, inputs, size)
    layer.initialise(config.Initialisation())
    return layer


def test_eigenvalues_begin_between_the_radii():
    """Uniformly over the ring: the mean of |lambda|^2 is that of the squared radii."""
    layer = initialised(config.LRU(radius=(0.6, 0.9), phase=0.5), 4000)
    l_re, l_im = eigenvalues(layer.weights())
    modulus, phase = torch.hypot(l_re, l_im).detach(), torch.atan2(l_im, l_re).detach()
    assert modulus.min() + 1e-6 >= 0.6
    assert modulus.max() <= 0.9 + 1e-6
    assert modulus.square().mean().item() == pytest.approx((0.36 + 0.81) / 2, rel=0.01)
    assert phase.min() >= 0
    assert phase.max().item() == pytest.approx(0.5, abs=0.01)
    gamma = layer.eigenvalues[2].exp().detach()
    torch.testing.assert_close(gamma, (1 - modulus.square()).sqrt(), rtol=1e-4, atol=1e-5)


@pytest.mark.slow
def test_the_whole_disc_begins_finite():
    layer = initialised(config.LRU(), 5000)
    assert layer.eigenvalues.isfinite().all()
    xs = torch.randn(3, 2, 5)
    assert layer(xs, layer.begin(2))[0].isfinite().all()


def test_the_gate_of_griffin_begins_between_its_bounds():
    layer = initialised(config.RGLRU(heads=2), 3000)
    kept = (-8 * torch.nn.functional.softplus(layer.Lambda)).exp().detach()
    assert kept.min() + 1e-5 >= 0.9
    assert kept.max() <= 0.999 + 1e-5
    assert kept.mean().item() == pytest.approx(0.9495, abs=0.002)


def test_the_root_has_a_bounded_slope():
    x = torch.tensor([0.0, 1e-9, 2.4e-7, 2.6e-7, 0.25, 1.0], dtype=torch.float64, requires_grad=True)
    y = rg_lru.bounded_root(x)
    torch.testing.assert_close(y, x.sqrt())
    (slope,) = torch.autograd.grad(y.sum(), x)
    torch.testing.assert_close(slope[:3], torch.full((3,), 1000.0).double())
    torch.testing.assert_close(slope[3:], 0.5 / x.detach()[3:].sqrt())


def test_the_first_input_of_a_sequence_enters_whole():
    """And only the first one, also where rows of a batch begin at different times."""
    cell = networks.CELLS["rg-lru"]
    w = networks.weights(cell)
    fresh = tuple(torch.zeros(1, *shape, dtype=torch.float64) for shape in cell.shapes(INPUTS, SIZE))
    reached = networks.state(cell, rows=1)
    both = tuple(torch.cat(pair) for pair in zip(fresh, reached, strict=True))
    xs = torch.randn(4, 2, INPUTS, dtype=torch.float64)
    together = cell.scan(w, xs, both)[0]
    torch.testing.assert_close(together[:, :1], cell.scan(w, xs[:, :1], fresh)[0])
    torch.testing.assert_close(together[:, 1:], cell.scan(w, xs[:, 1:], reached)[0])


@pytest.mark.parametrize(
    ("stack", "told"),
    [
        ({"cell": config.RGLRU(heads=3), "sizes": (4,)}, "heads = 3 does not divide a layer of 4"),
        ({"cell": config.MinGRU(), "sizes": (4,), "weight_drop": 0.5}, "the cell min-gru has none; set it to 0$"),
        (
            {"cell": config.QRNN(), "sizes": (4,), "recurrent_dropout": 0.5},
            "the cell qrnn has none; set it to 0, or use",
        ),
        ({"cell": config.SRU(), "sizes": (4,), "gate_masks": True}, "the cell sru has in another form"),
    ],
)
def test_what_a_cell_cannot_do_is_one_line(stack, told):
    with pytest.raises(UserError, match=told):
        build_model(config.Model(encoder=config.Lookup(size=3), core=config.Stack(**stack)), 7)


def test_radii_that_are_not_in_order_are_one_line():
    with pytest.raises(ValueError, match="the smaller one first"):
        config.LRU(radius=(0.9, 0.5))


def test_what_is_offered_instead_of_recurrent_dropout_is_accepted():
    for name in (name for name, cell in networks.CELLS.items() if cell.masks is None):
        require_offer(name)


def require_offer(name):
    def built(**settings):
        stack = config.Stack(cell=networks.CELL_RECORDS[name], sizes=(4,), biases=1, **settings)
        return build_model(config.Model(encoder=config.Lookup(size=4), core=stack), 7)

    with pytest.raises(UserError, match="recurrent_dropout") as caught:
        built(recurrent_dropout=0.5)
    other = "weight_drop" if "use model.core.weight_drop" in str(caught.value) else "input_dropout"
    assert f"use model.core.{other}" in str(caught.value)
    built(**{other: 0.5})


def test_layers_without_recurrent_weights_have_none():
    layer = Layer(config.MinGRU(), 3, 4)
    assert layer.weight_hh is None
    assert {name for name, _ in layer.named_parameters()} == {"weight_ih", "bias_ih"}
    assert Layer(config.MinGRU(), 3, 4, biases=0).bias_ih is None
