"""What the kernels of flash-linear-attention would be given: formulas with their signatures stand in for them."""

import os
import runpy
import sys

import pytest
import torch

from elman.errors import UserError
from elman.network.cells import fla
from elman.network.cells.cell import unroll
from support import networks

INPUTS, SIZE, STEPS = 3, 4, 7


def recurrence(q, k, v, decay, a, b, scale, initial_state, output_final_state):
    """S_t = diag(decay_t) S_{t-1} + b_t (a_t' S_{t-1}) + k_t v_t'; arrays [B, T, heads, _]."""
    assert output_final_state
    assert all(part.is_contiguous() for part in (q, k, v, decay, a, b, initial_state))
    assert q.shape == k.shape == a.shape == b.shape
    state, outputs = initial_state, []
    for t in range(q.shape[1]):
        seen = torch.einsum("bhk,bhkv->bhv", a[:, t], state)
        state = decay[:, t].exp().unsqueeze(-1) * state + torch.einsum("bhk,bhv->bhkv", b[:, t], seen)
        state = state + torch.einsum("bhk,bhv->bhkv", k[:, t], v[:, t])
        outputs.append(scale * torch.einsum("bhk,bhkv->bhv", q[:, t], state))
    return torch.stack(outputs, dim=1), state


def dplr(q, k, v, a, b, gk, **how):
    assert gk.shape == k.shape
    return recurrence(q, k, v, gk, a, b, **how)


def gla(q, k, v, g, **how):
    assert g.shape == k.shape
    return recurrence(q, k, v, g, *torch.zeros_like(k).expand(2, *k.shape).contiguous(), **how)


def simple_gla(q, k, v, g, **how):
    assert g.shape == k.shape[:3]
    return gla(q, k, v, g.unsqueeze(-1).expand_as(k).contiguous(), **how)


@pytest.fixture
def called(monkeypatch):
    """The names of the kernels that were called, in order; they compute everything."""
    names = []

    def spied(name, formula):
        return lambda *arrays, **how: names.append(name) or formula(*arrays, **how)

    monkeypatch.setattr(fla, "applies", lambda _: True)
    for name, formula in {"chunk_dplr_delta_rule": dplr, "chunk_gla": gla, "chunk_simple_gla": simple_gla}.items():
        monkeypatch.setattr(fla, name, spied(name, formula), raising=False)
    return names


KERNELS = {
    "mlstm": "chunk_simple_gla",
    "mamba2": "chunk_simple_gla",
    "deltanet": "chunk_dplr_delta_rule",
    "deltanet-negative": "chunk_dplr_delta_rule",
    "rwkv7": "chunk_dplr_delta_rule",
}


@pytest.mark.parametrize("name", KERNELS)
def test_cells_with_matrices_are_the_loop(name, called):
    cell = networks.CELLS[name]
    w, state = networks.weights(cell), networks.state(cell)
    xs = torch.randn(STEPS, 2, INPUTS, dtype=torch.float64, requires_grad=True)
    pull = torch.randn(STEPS, 2, SIZE, dtype=torch.float64)

    def results(run):
        outputs, after = run(w, xs, state)
        loss = (pull * outputs).sum() + sum(part.sin().sum() for part in after)
        return [outputs, *after, *torch.autograd.grad(loss, [xs, w.input])]

    found = results(cell.sequence)
    assert called == [KERNELS[name]]
    for one, other in zip(found, results(lambda *given: unroll(cell.step, *given)), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-10)


def test_decays_per_row_without_a_rank_one_part(called):
    q, k, v = torch.randn(3, STEPS, 2, 2, 4, dtype=torch.float64)
    log_w, state = -torch.rand(STEPS, 2, 2, 4, dtype=torch.float64), torch.randn(2, 2, 4, 4, dtype=torch.float64)
    found, after = fla.by_kernels(q, k, v, log_w, state, None)
    arrays = (part.transpose(0, 1).contiguous() for part in (q, k, v, log_w))
    wanted, wanted_after = gla(*arrays, scale=1.0, initial_state=state, output_final_state=True)
    torch.testing.assert_close(found, wanted.transpose(0, 1))
    torch.testing.assert_close(after, wanted_after)
    assert called == ["chunk_gla"]


def test_kernels_are_taken_on_a_gpu_where_they_are_asked_for(monkeypatch):
    on_cpu, on_gpu = torch.zeros(1), type("OnGPU", (), {"is_cuda": True})()
    assert [fla.applies(one) for one in (on_cpu, on_gpu)] == [False, False]
    monkeypatch.setattr(fla, "ASKED", True)
    assert [fla.applies(one) for one in (on_cpu, on_gpu)] == [False, True]


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setattr(os, "environ", {"ELMAN_FLA": "1"})
    monkeypatch.setitem(sys.modules, "fla", None)
    with pytest.raises(UserError, match=r"pip install 'elman\[fla\]'"):
        runpy.run_path(fla.__file__)
