"""The Mogrifier over a sequence against the plain loop, where `test_cells.py` does not reach: products of oneDNN."""

import pytest
import torch

from elman import config
from elman.network.cells.cell import unroll
from elman.network.fast import policy
from elman.network.fast.precision import products_in
from support import networks

FORMS = {
    "no rounds": config.Mogrifier(rounds=0),
    "one round": config.Mogrifier(rounds=1),
    "two rounds": config.Mogrifier(rounds=2),
    "five rounds of rank 3": config.Mogrifier(rounds=5, rank=3),
    "four rounds, capped": config.Mogrifier(rounds=4, input_gate="capped"),
}


def problem(name, dtype=torch.float32, shape=(7, 6, 5, 8)):
    """The cell, its weights, inputs [T, B, I] and state, as leaves."""
    cell, (steps, rows, inputs, size) = FORMS[name], shape

    def leaf(tensor):
        return tensor.detach().to(dtype).requires_grad_()

    weights = networks.weights(cell, inputs, size)
    moved = {name: leaf(part) for name, part in weights.tensors().items()}
    state = tuple(leaf(part) for part in networks.state(cell, rows, size))
    return cell, weights.replaced(**moved), leaf(torch.randn(steps, rows, inputs)), state


def gradients(run, weights, xs, state):
    outputs, after = run(weights, xs, state)
    pull = torch.linspace(-1, 1, outputs.numel(), dtype=outputs.dtype).view_as(outputs)
    leaves = (*weights.tensors().values(), xs, *state)
    used = (pull * outputs).sum() + sum(part.square().sum() for part in after)
    return [outputs, *after, *torch.autograd.grad(used, leaves)]


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("exact", [False, True])
def test_products_of_onednn_give_the_loop(name, exact, monkeypatch):
    monkeypatch.setattr(policy, "LEAST_ONEDNN", 0)
    cell, weights, xs, state = problem(name)
    weights = weights.replaced(exact=exact)
    found = gradients(cell.scan, weights, xs, state)
    expected = gradients(lambda *given: unroll(cell.step, *given), weights, xs, state)
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", FORMS)
def test_without_gradients_the_values_are_the_same(name):
    cell, weights, xs, state = problem(name, torch.float64)
    outputs, after = cell.scan(weights, xs, state)
    kept = [part.clone() for part in state]
    with torch.no_grad():
        found, last = cell.scan(weights, xs, state)
    for one, other in zip((found, *last, *state), (outputs, *after, *kept), strict=True):
        assert torch.equal(one, other)


def test_any_split_into_windows_gives_the_same_outputs():
    cell, weights, xs, state = problem("five rounds of rank 3", torch.float64)
    whole, _ = cell.scan(weights, xs, state)
    pieces = []
    for window in xs.split([1, 4, 2]):
        outputs, state = cell.scan(weights, window, state)
        pieces.append(outputs)
    torch.testing.assert_close(torch.cat(pieces), whole)


def test_backward_may_be_called_twice():
    cell, weights, xs, state = problem("four rounds, capped")
    loss = cell.scan(weights, xs, state)[0].square().sum()
    wanted = (*weights.tensors().values(), xs)
    first = torch.autograd.grad(loss, wanted, retain_graph=True)
    for one, other in zip(first, torch.autograd.grad(loss, wanted), strict=True):
        assert torch.equal(one, other)


@pytest.mark.parametrize("name", ["two rounds", "five rounds of rank 3"])
def test_in_bf16_the_products_of_inputs_stay_exact_in_a_first_layer(name, monkeypatch):
    """Rounding the product with the state leaves an error; with W_h = 0 and maps of 0 none is left."""
    monkeypatch.setattr(policy, "LEAST_MULTIPLY_ADDS", 0)
    monkeypatch.setattr(policy, "LEAST_ROWS", 0)
    cell, weights, xs, state = problem(name)

    def difference(weights):
        with torch.no_grad():
            expected, _ = unroll(cell.step, weights, xs, state)
            with products_in("bf16"):
                return (cell.scan(weights, xs, state)[0] - expected).abs().max().item()

    assert 1e-4 < difference(weights.replaced(exact=True)) < 0.05
    none = weights.replaced(
        **{name: 0 * part for name, part in weights.tensors().items() if name[0] in "qr" or name == "weight_hh"}
    )
    assert difference(none.replaced(exact=True)) < 1e-5
    assert difference(none) > 1e-4
