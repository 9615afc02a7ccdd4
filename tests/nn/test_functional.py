"""The equations as functions: beside torch's own, and beside their printed forms."""

import numpy as np
import pytest
import torch

from elman import nn as enn
from elman.network.output.activation import ACTIVATIONS
from elman.nn import functional as F
from reference import outputs as reference


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


def test_sparsemax_is_the_nearest_point_of_the_simplex():
    z = 2 * double(5, 4, 7)
    expected = [[reference.sparsemax(row)[0] for row in block] for block in z.numpy()]
    found = F.sparsemax(z)
    np.testing.assert_allclose(found, expected, atol=1e-14)
    assert (found == 0).any()
    assert (found.sum(-1) - 1).abs().max() < 1e-12
    others = torch.distributions.Dirichlet(torch.ones(7, dtype=torch.float64)).sample((500, 5, 4))
    assert ((z - found).norm(dim=-1) <= (z - others).norm(dim=-1)).all()
    assert torch.autograd.gradcheck(F.sparsemax, z.requires_grad_())
    far = torch.tensor([3e7, 3e7, 0.0])
    assert F.sparsemax(far).tolist() == [0.5, 0.5, 0]


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_losses_of_classes_are_as_printed(reduction):
    z, target = 2 * double(6, 3, 5), torch.randint(5, (6, 3))
    rows = list(zip(z.reshape(-1, 5).numpy(), target.flatten().tolist(), strict=True))
    for loss, of in (
        (F.sparsemax_loss, reference.sparsemax_loss),
        (F.one_vs_each_loss, lambda z, y: -np.log(reference.one_vs_each(z, y))),
    ):
        each = np.reshape([of(*row) for row in rows], (6, 3))
        expected = {"mean": each.mean(), "sum": each.sum(), "none": each}[reduction]
        np.testing.assert_allclose(loss(z, target, reduction=reduction), expected, atol=1e-13)
        assert torch.autograd.gradcheck(lambda z, loss=loss: loss(z, target, reduction=reduction), z.requires_grad_())
        z = z.detach()
        for wrong in ({"target": target - 5}, {"target": target.double()}, {"target": target, "reduction": "most"}):
            with pytest.raises(ValueError, match=r"every target|type torch\.int64|choose"):
                loss(z, **wrong)


def test_what_the_papers_say_of_these_losses():
    """One-vs-each bounds the softmax's nll; sparsemax's loss has the gradient p - e_y, and no more at a margin of 1."""
    z, target = double(50, 6).requires_grad_(), torch.randint(6, (50,))
    nll = torch.nn.functional.cross_entropy(z, target, reduction="none")
    assert (F.one_vs_each_loss(z, target, reduction="none") > nll).all()
    (gradient,) = torch.autograd.grad(F.sparsemax_loss(z, target, reduction="sum"), z)
    torch.testing.assert_close(gradient, F.sparsemax(z) - torch.nn.functional.one_hot(target, 6))
    apart = torch.tensor([[1e4 + 1, 1e4, -1e4]], requires_grad=True)
    assert F.sparsemax_loss(apart, torch.tensor([0])) == 0
    assert F.one_vs_each_loss(torch.tensor([[2e4, 0.0, -1e4]]), torch.tensor([0])) == 0
    assert F.one_vs_each_loss(apart, torch.tensor([2])).isfinite()


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


def test_sparsemax_of_what_is_no_number():
    for bad in (torch.nan, torch.inf):
        found = F.sparsemax(torch.tensor([[1.0, bad, 2.0], [0.0, 1.0, 9.0]]))
        assert found[0].isnan().all()
        assert found[1].tolist() == [0, 0, 1]


@pytest.mark.parametrize(
    ("wrong", "line"),
    [
        ({"reduction": "average"}, 'choose "mean", "sum" or "none"'),
        ({"position_weight": torch.ones(1)}, r"\[N, K, 4\], \[N, K\], \[N\] and \[N\] are read"),
        ({"target": torch.zeros(1, dtype=torch.long)}, "are read"),
        ({"log_prior": None}, "are read"),
        ({"contexts": torch.randn(6, 4)}, "are read"),
    ],
)
def test_a_mixture_that_cannot_be_read(wrong, line):
    given = {"contexts": torch.randn(6, 3, 4), "log_prior": torch.randn(6, 3).log_softmax(-1)}
    given |= {"weight": torch.randn(9, 4), "bias": None, "target": torch.randint(9, (6,))}
    with pytest.raises(ValueError, match=line):
        F.mixture_nll(**given | wrong)


def test_no_positions_have_no_mean():
    arrays = torch.randn(0, 4), torch.randn(9, 4, requires_grad=True), None, torch.zeros(0, dtype=torch.long)
    loss = F.softmax_nll(*arrays)
    assert loss.isnan()
    loss.backward()
    assert not arrays[1].grad.any()
    assert F.softmax_nll(*arrays, reduction="sum") == 0


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_functions_in_16_bits(dtype):
    """Beside the same numbers in float32; a mean over more positions than 65504, the greatest number."""
    torch.manual_seed(0)
    h, weight, target = torch.randn(70_000, 4).to(dtype), torch.randn(9, 4).to(dtype), torch.randint(9, (70_000,))
    found = F.softmax_nll(h, weight.requires_grad_(), None, target)
    assert found.dtype == dtype
    torch.testing.assert_close(found.float(), F.softmax_nll(h.float(), weight.float(), None, target), rtol=4e-3, atol=0)
    found.backward()
    assert weight.grad.any()
    x, state = torch.randn(3, 2, 4).to(dtype), torch.randn(2, 5).to(dtype)
    for name, gates in (("lstm", 4), ("gru", 3), ("elman", 1)):
        weights = [torch.randn(gates * 5, width).to(dtype) for width in (4, 5)]
        outputs, _ = getattr(F, name)(x, (state, state) if name == "lstm" else state, weights)
        wide = [one.float() for one in weights]
        known, _ = getattr(F, name)(x.float(), (state.float(),) * 2 if name == "lstm" else state.float(), wide)
        assert outputs.dtype == dtype
        torch.testing.assert_close(outputs.float(), known, rtol=4e-3, atol=4e-3)


@pytest.mark.parametrize("name", ["lstm", "gru", "elman"])
def test_recurrences_that_cannot_be_computed(name):
    gates = {"lstm": 4, "gru": 3, "elman": 1}[name]
    weights = [torch.randn(gates * 5, 4), torch.randn(gates * 5, 5)]
    for x, h in (((3, 2, 3), (2, 5)), ((3, 2, 4), (1, 5)), ((3, 2, 4), (2, 4)), ((0, 2, 4), (2, 5)), ((3, 4), (5,))):
        state = torch.zeros(h)
        with pytest.raises(ValueError, match="x and the state have shapes"):
            getattr(F, name)(torch.randn(x), (state, state) if name == "lstm" else state, weights)
    if name != "lstm":
        key = {"gru": "reset", "elman": "nonlinearity"}[name]
        with pytest.raises(ValueError, match="Invalid enum value 'never'"):
            getattr(F, name)(torch.randn(3, 2, 4), torch.zeros(2, 5), weights, **{key: "never"})
