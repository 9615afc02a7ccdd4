"""However a sequence is cut into windows, the output is the same; gradients stop at `detach`."""

from itertools import pairwise

import numpy as np
import pytest
import torch

from elman.data.batches import Batch
from elman.learning.bptt import bptt
from elman.network.cells.cell import unroll
from elman.network.state import detach, leaves, restart, select
from elman.objective.loss import Objective
from reference import cells as reference
from support import networks

STEPS = 9


def pieces(cuts):
    edges = [0, *sorted(cuts), STEPS]
    return [slice(low, high) for low, high in pairwise(edges)]


@pytest.mark.parametrize("name", networks.CORES)
def test_splits_into_windows_give_the_same_output(name):
    core = networks.CORES[name]().eval()
    x = torch.randn(STEPS, 2, 3, dtype=torch.float64)
    whole, end = core(x, core.begin(2))
    for cuts in (range(1, STEPS), [4], [1, 3, 7]):
        state, outputs = core.begin(2), []
        for piece in pieces(cuts):
            trace, state = core(x[piece], state)
            outputs.append(trace)
        for kind in ("levels", "raw"):
            joined = [torch.cat(parts) for parts in zip(*(getattr(trace, kind) for trace in outputs), strict=True)]
            torch.testing.assert_close(joined, list(getattr(whole, kind)))
        torch.testing.assert_close(list(leaves(state)), list(leaves(end)))


@pytest.mark.parametrize("name", networks.CORES)
def test_the_future_and_the_other_rows_do_not_matter(name):
    core = networks.CORES[name]().eval()
    x = torch.randn(STEPS, 3, 3, dtype=torch.float64)
    changed = x.clone()
    changed[5:] = 7.0
    changed[:, 2] = -7.0
    one, other = (core(given, core.begin(3))[0].top for given in (x, changed))
    torch.testing.assert_close(one[:5, :2], other[:5, :2])
    assert not torch.allclose(one[5:, :2], other[5:, :2])


def test_dims_are_the_widths_of_the_levels():
    for name, build in networks.CORES.items():
        core = build()
        trace, _ = core(torch.randn(2, 2, 3, dtype=torch.float64), core.begin(2))
        assert core.dims == tuple(level.shape[-1] for level in trace.levels), name
        assert core.dims == tuple(level.shape[-1] for level in trace.raw), name


@pytest.mark.parametrize("name", networks.CELLS)
def test_a_stack_feeds_each_layer_with_the_one_below(name):
    core = networks.stack(name).eval()
    x = torch.randn(4, 2, 3, dtype=torch.float64)
    trace, _ = core(x, core.begin(2))
    below = x
    for level, layer in zip(trace.levels[1:], core.layers, strict=True):
        below, _ = unroll(layer.cell.step, layer.weights(), below, layer.begin(2))
        torch.testing.assert_close(level, below)


def test_feed_forward_window_is_bengios():
    core = networks.CORES["window-4-direct"]().eval()
    x = torch.randn(STEPS, 2, 3, dtype=torch.float64)
    trace, _ = core(x, core.begin(2))
    padded = np.concatenate([np.zeros((3, 2, 3)), x.numpy()])
    W, d = (parameter.detach().numpy() for parameter in (core.hidden.weight, core.hidden.bias))
    for t in range(STEPS):
        words = padded[t : t + 4]
        h = reference.window(W, d, words)
        np.testing.assert_allclose(trace.top[t].detach().numpy(), np.concatenate([h, *words], axis=-1))


NO_GRADIENT = {"window-1", "jordan-target", "reservoir", "reservoir-leaky"}


@pytest.mark.parametrize("name", [name for name in networks.CORES if name not in NO_GRADIENT])
def test_detach_cuts_the_gradient_and_keeps_the_value(name):
    core = networks.CORES[name]().eval()
    x, later = (torch.randn(4, 20, 3, dtype=torch.float64, requires_grad=True) for _ in range(2))
    _, state = core(x, core.begin(20))
    through, cut = (core(later, given)[0].top.square().sum() for given in (state, detach(state)))
    torch.testing.assert_close(through, cut)
    assert torch.autograd.grad(through, x)[0].abs().sum() > 0
    assert torch.autograd.grad(cut, x, allow_unused=True, materialize_grads=True)[0].abs().sum() == 0


def test_bptt_gives_back_a_state_without_history():
    model = networks.model()
    symbols = torch.randint(7, (6, 4))
    _, state = bptt(model, Objective(), Batch(symbols[:-1], symbols[1:]), model.begin(4))
    assert not any(leaf.requires_grad for leaf in leaves(state))


@pytest.mark.parametrize("name", networks.CORES)
def test_a_fresh_row_begins_anew_and_the_others_go_on(name):
    core = networks.CORES[name]().eval()
    x = torch.randn(STEPS, 3, 3, dtype=torch.float64)
    _, state = core(x[:5], core.begin(3))
    fresh = torch.tensor([False, True, False])
    mixed, _ = core(x[5:], restart(state, fresh, core.begin(3)))
    carried, _ = core(x[5:], state)
    alone, _ = core(x[5:, 1:2], core.begin(1))
    torch.testing.assert_close(mixed.top[:, [0, 2]], carried.top[:, [0, 2]])
    torch.testing.assert_close(mixed.top[:, 1:2], alone.top)


def test_rows_may_be_reordered_between_windows():
    core = networks.stack("lstm").eval()
    x = torch.randn(STEPS, 3, 3, dtype=torch.float64)
    order = torch.tensor([2, 0, 0])
    _, state = core(x[:5], core.begin(3))
    expected, _ = core(x[5:], state)
    reordered, _ = core(x[5:, order], select(state, order))
    torch.testing.assert_close(reordered.top, expected.top[:, order])
