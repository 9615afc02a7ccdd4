"""The equations as functions: beside torch's own, and beside their printed forms."""

import pytest
import torch

from elman import nn as enn
from elman.network.output.activation import ACTIVATIONS
from elman.nn import functional as F


def double(*shape):
    return torch.randn(*shape, dtype=torch.float64)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("name", ["lstm", "gru", "elman"])
def test_recurrences_are_torchs(name, bias):
    torch.manual_seed(0)
    kind = {"lstm": torch.nn.LSTM, "gru": torch.nn.GRU, "elman": torch.nn.RNN}[name]
    known = kind(3, 5, bias=bias, dtype=torch.float64)
    weights = [*known.parameters()]
    x, h, c = double(7, 4, 3).requires_grad_(), double(4, 5), double(4, 5)
    state = (h, c) if name == "lstm" else h
    outputs, after = getattr(F, name)(x, state, weights)
    given = (h[None], c[None]) if name == "lstm" else h[None]
    expected, last = known(x, given)
    torch.testing.assert_close(outputs, expected)
    kept = tuple(part[0] for part in last) if name == "lstm" else last[0]
    torch.testing.assert_close(after, kept)
    ours, theirs = (torch.autograd.grad(one.square().sum(), [x, *weights]) for one in (outputs, expected))
    torch.testing.assert_close(ours, theirs)


def test_a_gru_as_in_the_paper_and_other_nonlinearities():
    """Written out for one step."""
    torch.manual_seed(0)
    x, h, w, u, b = double(1, 2, 3), double(2, 4), double(12, 3), double(12, 4), double(12)
    outputs, _ = F.gru(x, h, (w, u, b), reset="before")
    (w_r, w_z, w_n), (u_r, u_z, u_n), (b_r, b_z, b_n) = w.chunk(3), u.chunk(3), b.chunk(3)
    r = torch.sigmoid(x[0] @ w_r.t() + h @ u_r.t() + b_r)
    z = torch.sigmoid(x[0] @ w_z.t() + h @ u_z.t() + b_z)
    n = torch.tanh(x[0] @ w_n.t() + (r * h) @ u_n.t() + b_n)
    torch.testing.assert_close(outputs[0], z * h + (1 - z) * n)
    outputs, last = F.elman(x, h, (w[:4], u[:4]), nonlinearity="sigmoid")
    torch.testing.assert_close(outputs[0], torch.sigmoid(x[0] @ w[:4].t() + h @ u[:4].t()))
    assert torch.equal(outputs[0], last)


def test_sigsoftmax_is_as_printed():
    z = double(3, 4, 9)
    g = z.exp() * z.sigmoid()
    torch.testing.assert_close(F.sigsoftmax(z), g / g.sum(-1, keepdim=True))
    torch.testing.assert_close(F.log_sigsoftmax(z).exp(), F.sigsoftmax(z))
    assert F.log_sigsoftmax(torch.tensor([-1e4, 0.0, 1e4])).isfinite().all()
    assert torch.autograd.gradcheck(F.sigsoftmax, z.requires_grad_())


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_the_mixture_is_as_printed(activation, reduction):
    torch.manual_seed(0)
    contexts, scores, weight, bias = double(6, 3, 4), double(6, 3), double(9, 4), double(9)
    target, w = torch.randint(9, (6,)), torch.rand(6, dtype=torch.float64)
    inputs = [one.requires_grad_() for one in (contexts, scores, weight, bias, w)]

    def loss(contexts, scores, weight, bias, w, *, plain=False):
        if not plain:
            keys = {"activation": activation, "reduction": reduction, "position_weight": w}
            return F.mixture_nll(contexts, scores.log_softmax(-1), weight, bias, target, **keys)
        p = F.log_activated(contexts @ weight.t() + bias, activation).exp()
        mixed = (scores.softmax(-1).unsqueeze(-1) * p).sum(1)
        each = -w * mixed[torch.arange(6), target].log()
        return {"mean": each.sum() / w.sum(), "sum": each.sum(), "none": each}[reduction]

    for given in (inputs, [*inputs[:4], w.detach()]):
        values = [loss(*given, plain=plain) for plain in (False, True)]
        torch.testing.assert_close(*values)
        totals = [(value * torch.arange(1, 1 + value.numel())).sum() for value in values]
        needed = [one for one in given if one.requires_grad]
        torch.testing.assert_close(*[torch.autograd.grad(total, needed) for total in totals])
    with pytest.raises(ValueError, match="every target is a symbol from 0 to 8"):
        F.mixture_nll(contexts, scores, weight, bias, target - 9)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_one_softmax_is_torchs_cross_entropy(reduction):
    h, weight, bias, target = double(6, 4).requires_grad_(), double(9, 4), double(9), torch.randint(9, (6,))
    found = F.softmax_nll(h, weight, bias, target, reduction=reduction)
    expected = torch.nn.functional.cross_entropy(h @ weight.t() + bias, target, reduction=reduction)
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(*(torch.autograd.grad(one.sum(), h)[0] for one in (found, expected)))
    module = enn.Softmax(4, 9, dtype=torch.float64)
    with torch.no_grad():
        module.weight.copy_(weight)
        module.bias.copy_(bias)
    torch.testing.assert_close(module.nll(h, target, reduction), expected)
