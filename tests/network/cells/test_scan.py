"""Every form of the linear recurrence against the loop that is written out, in values and all gradients."""

import numpy as np
import pytest
import torch

from elman.network.fast import diagonal

FORMS = {"scan": diagonal.scan, "loop": diagonal.loop, "doubling": diagonal.doubling}
STEPS = [1, 2, 3, 7, 16, 33]


def problem(steps, dtype):
    a, b = torch.rand(2, steps, 3, 4, dtype=torch.float64)
    start = torch.randn(3, 4, dtype=torch.float64)
    if dtype == torch.complex128:
        turn = torch.rand(2, steps, 3, 4, dtype=torch.float64) * 6
        a, b = torch.polar(a, turn[0]), torch.polar(b, turn[1])
        start = torch.polar(torch.rand(3, 4, dtype=torch.float64), start)
    else:
        a, b = 2 * a - 1, b - 0.5  # negative factors too
    return [part.clone().requires_grad_() for part in (a, b, start)]


def results(form, given):
    states = form(*given)
    pull = torch.linspace(-1, 1, states.numel(), dtype=torch.float64).view(states.shape)
    loss = (pull * states).real.sum() if states.is_complex() else (pull * states).sum()
    loss = loss + (states.abs() ** 2).sum()
    return [states, *torch.autograd.grad(loss, given)]


@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128], ids=str)
@pytest.mark.parametrize("steps", STEPS)
def test_every_form_is_the_loop_in_values_and_gradients(steps, dtype):
    given = problem(steps, dtype)
    expected = results(diagonal.plain, given)
    for form in FORMS.values():
        torch.testing.assert_close(results(form, given), expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("wanted", [(0,), (1,), (2,), (0, 2), (1, 2)])
def test_a_gradient_does_not_depend_on_which_others_are_wanted(form, wanted):
    given = problem(7, torch.float64)
    _, *together = results(form, given)
    leaves = [part.detach().requires_grad_(place in wanted) for place, part in enumerate(given)]
    states = form(*leaves)
    pull = torch.linspace(-1, 1, states.numel(), dtype=torch.float64).view(states.shape)
    loss = (pull * states).sum() + states.square().sum()
    found = torch.autograd.grad(loss, [leaves[place] for place in wanted])
    torch.testing.assert_close(found, tuple(together[place] for place in wanted))


def test_the_loop_itself_is_the_recurrence():
    a, b, start = (part.detach().numpy() for part in problem(5, torch.float64))
    h = start
    for t, found in enumerate(diagonal.plain(*map(torch.from_numpy, (a, b, start))).numpy()):
        h = a[t] * h + b[t]
        np.testing.assert_array_equal(found, h)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128], ids=str)
def test_its_gradients_are_those_of_finite_differences(dtype):
    for form in FORMS.values():
        assert torch.autograd.gradcheck(form, problem(4, dtype))


def test_long_products_neither_overflow_nor_lose_the_present():
    """With |a| = 1e-3 a product of 200 factors is 0, and its reciprocal is not a number."""
    a, b = torch.full((200, 1, 1), 1e-3), torch.ones(200, 1, 1)
    for form in FORMS.values():
        torch.testing.assert_close(form(a, b, torch.ones(1, 1))[-1].item(), 1 / (1 - 1e-3))


def test_a_second_derivative_of_the_loop_is_refused():
    given = problem(3, torch.float64)
    with pytest.raises(RuntimeError, match="first derivatives only"):
        torch.autograd.grad(diagonal.loop(*given).sum(), given, create_graph=True)


def test_factors_of_lower_precision_are_computed_in_that_of_the_state():
    a, b, start = (part.detach().float() for part in problem(6, torch.float64))
    found = diagonal.scan(a.bfloat16(), b.bfloat16(), start)
    assert found.dtype == torch.float32
    torch.testing.assert_close(found, diagonal.plain(a, b, start), rtol=0.05, atol=0.05)
