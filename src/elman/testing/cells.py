"""What every cell and every output activation must fulfil."""

import math
from functools import partial

import torch
from torch import Tensor

from elman.network.cells.cell import Cell, LayerState, unroll
from elman.network.cores.layer import Layer
from elman.network.output.activation import Activation

ROWS, STEPS, INPUTS, UNITS = 2, 5, 3, 4


def check_cell(cell: Cell, *, units: int = UNITS, seed: int = 0) -> None:
    """A cell in float64: shapes, state, causality, rows apart, fast form, gradients, with 0, 1 and 2 biases.

    The step must not change its arguments, and must be differentiable once, wherever the random draw puts it. A state
    of one or two tensors [B, H] is drawn at random; another one is reached from the first state by a few
    steps, since its tensors may depend on each other.
    """
    for biases in (0, 1, 2):
        torch.manual_seed(seed)
        layer = Layer(cell, INPUTS, units, biases=biases).double().eval()
        with torch.no_grad():
            for parameter in layer.parameters():
                parameter.normal_(0, 0.7)
        xs = torch.randn(STEPS, ROWS, INPUTS, dtype=torch.float64)
        state = tuple(torch.randn(ROWS, *shape, dtype=torch.float64) for shape in layer.shapes)
        if len(state) > 2:
            with torch.no_grad():
                state = unroll(cell.step, layer.weights(), torch.randn_like(xs), layer.begin(ROWS))[1]
        _check_shapes(layer, cell, xs, state, units)
        _check_windows(layer, xs, state)
        _check_causes(layer, xs, state)
        _check_scan(layer, cell, xs, state)
        _check_gradients(layer, cell, xs[:2], state)


def _run(layer: Layer, xs: Tensor, state: LayerState) -> tuple[Tensor, LayerState]:
    before = [xs.clone(), *(part.clone() for part in state)]
    outputs, after = layer(xs, state)
    for old, new in zip(before, (xs, *state), strict=True):
        assert torch.equal(old, new), "a cell must not change its inputs or the state that it is given"
    return outputs, after


def _check_shapes(layer: Layer, cell: Cell, xs: Tensor, state: LayerState, units: int) -> None:
    begun = layer.begin(ROWS)
    outputs, after = _run(layer, xs, state)
    assert outputs.shape == (STEPS, ROWS, units), "outputs are [T, B, H]"
    shapes = cell.shapes(INPUTS, units)
    assert len(begun) == len(shapes), "a cell has as many tensors of state as its `shapes`"
    assert len(after) == len(shapes), "a step returns as many tensors of state as it reads"
    assert shapes[0] == (units,), "the first tensor of the state is [B, H]"
    assert [part.shape for part in begun] == [(ROWS, *shape) for shape in shapes], "a state begins with its shapes"
    assert [part.shape for part in after] == [(ROWS, *shape) for shape in shapes], (
        "every tensor of the state has the shape that `shapes` gives"
    )
    assert bool(torch.isfinite(outputs).all()), "outputs are finite"
    assert torch.equal(outputs[-1], after[0]), "the first tensor of the state is the output"


def _check_windows(layer: Layer, xs: Tensor, state: LayerState) -> None:
    whole, after = _run(layer, xs, state)
    first, between = _run(layer, xs[:2], state)
    second, end = _run(layer, xs[2:], between)
    torch.testing.assert_close(
        torch.cat([first, second]), whole, msg=lambda told: f"windows give what the whole sequence gives: {told}"
    )
    for ours, theirs in zip(end, after, strict=True):
        torch.testing.assert_close(ours, theirs)


def _check_causes(layer: Layer, xs: Tensor, state: LayerState) -> None:
    whole, _ = _run(layer, xs, state)
    later = xs.clone()
    later[3:] += 1.0
    torch.testing.assert_close(
        _run(layer, later, state)[0][:3], whole[:3], msg=lambda told: f"an output depends on no later input: {told}"
    )
    alone, _ = _run(layer, xs[:, :1], tuple(part[:1] for part in state))
    torch.testing.assert_close(alone, whole[:, :1], msg=lambda told: f"sequences do not depend on each other: {told}")
    assert not torch.equal(_run(layer, xs + 1.0, state)[0], whole), "outputs depend on the inputs"


def _check_scan(layer: Layer, cell: Cell, xs: Tensor, state: LayerState) -> None:
    parameters = list(layer.parameters())
    given = [xs.clone().requires_grad_(), *(part.clone().requires_grad_() for part in state)]
    results = []
    for fast in (True, False):
        weights = layer.weights()
        outputs, after = (cell.scan if fast else partial(unroll, cell.step))(weights, given[0], tuple(given[1:]))
        loss = (outputs * torch.linspace(-1, 1, outputs.numel(), dtype=outputs.dtype).view_as(outputs)).sum()
        loss = loss + sum(part.sin().sum() for part in after)
        gradients = torch.autograd.grad(loss, [*parameters, *given], allow_unused=True)
        results.append([outputs, *after, *(one for one in gradients if one is not None)])
    for ours, plain in zip(*results, strict=True):
        torch.testing.assert_close(ours, plain, msg=lambda told: f"the scan is the loop over the step: {told}")


def _check_gradients(layer: Layer, cell: Cell, xs: Tensor, state: LayerState) -> None:
    given = tuple(part.clone().requires_grad_() for part in (xs, *state))

    def through(*arguments: Tensor) -> tuple[Tensor, ...]:
        outputs, after = unroll(cell.step, layer.weights(), arguments[0], arguments[1:])
        return tuple(part for part in (outputs, *after) if part.requires_grad)

    checked = torch.autograd.gradcheck(through, given, check_undefined_grad=False, fast_mode=True)
    assert checked, "gradients belong to the step"


def check_activation(activation: Activation) -> None:
    """Log g in float64 over [-30, 30]: finite, `overwriting` the same, `slope` its derivative, `monotone` as said."""
    z = torch.linspace(-30, 30, 1201, dtype=torch.float64, requires_grad=True)
    value = activation.log_g(z)
    assert value.shape == z.shape, "log g is elementwise"
    assert bool(torch.isfinite(value).all()), "log g is finite: no probability is zero"
    torch.testing.assert_close(activation.overwriting(z.detach().clone()), value.detach())
    (slope,) = torch.autograd.grad(value.sum(), z)
    told = activation.slope(z.detach().clone()) if callable(activation.slope) else torch.ones_like(slope)
    inner = slice(1, -1)  # at the ends of a piecewise function the slope may have two values
    differs = (told[inner] - slope[inner]).abs() > 1e-6 * (1 + slope[inner].abs())
    assert int(differs.sum()) <= 2, "slope is d log g / d z"
    rises = bool((value[1:] >= value[:-1] - 1e-12).all())
    assert rises or not activation.monotone, "log g falls somewhere, and is said to be monotone"
    assert math.isclose(float(value.detach().log_softmax(0).exp().sum()), 1.0, rel_tol=1e-9)
