"""What the kernels of flash-linear-attention are given, by formulas with their signatures; the kernels, on a GPU."""

import os
import runpy
import subprocess
import sys
from importlib.util import find_spec

import pytest
import torch

from elman.errors import UserError
from elman.network.cells.cell import unroll
from elman.network.fast import chunked
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

    monkeypatch.setattr(chunked, "by_triton", lambda _: True)
    for name, formula in {"chunk_dplr_delta_rule": dplr, "chunk_gla": gla, "chunk_simple_gla": simple_gla}.items():
        monkeypatch.setattr(chunked, name, spied(name, formula), raising=False)
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
        return [outputs, *after, *torch.autograd.grad(loss, [xs, w.weight_ih])]

    found = results(cell.scan)
    assert called == [KERNELS[name]]
    for one, other in zip(found, results(lambda *given: unroll(cell.step, *given)), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-10)


def test_decays_per_row_without_a_rank_one_part(called):
    q, k, v = torch.randn(3, STEPS, 2, 2, 4, dtype=torch.float64)
    log_w, state = -torch.rand(STEPS, 2, 2, 4, dtype=torch.float64), torch.randn(2, 2, 4, 4, dtype=torch.float64)
    found, after = chunked._by_kernels(q, k, v, log_w, state, None)
    arrays = (part.transpose(0, 1).contiguous() for part in (q, k, v, log_w))
    wanted, wanted_after = gla(*arrays, scale=1.0, initial_state=state, output_final_state=True)
    torch.testing.assert_close(found, wanted.transpose(0, 1))
    torch.testing.assert_close(after, wanted_after)
    assert called == ["chunk_gla"]


def test_kernels_are_taken_on_a_gpu_where_they_are_asked_for(monkeypatch):
    on_cpu, on_gpu = torch.zeros(1), type("OnGPU", (), {"is_cuda": True})()
    assert [chunked.by_triton(one) for one in (on_cpu, on_gpu)] == [False, False]
    monkeypatch.setattr(chunked, "ASKED", True)
    assert [chunked.by_triton(one) for one in (on_cpu, on_gpu)] == [False, True]


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setattr(os, "environ", {"ELMAN_FLA": "1"})
    monkeypatch.setitem(sys.modules, "fla", None)
    with pytest.raises(UserError, match=r"pip install 'elman\[fla\]'"):
        runpy.run_path(chunked.__file__)


ON_A_GPU = """
import torch
from elman.network.fast import chunked
from elman.network.fast import chunked

torch.set_default_device("cuda")
torch.manual_seed(0)
steps, columns, heads, rows, width = 100, 3, 2, 32, 64


def relative(one, other):
    return ((one - other).norm() / other.norm()).item()


for rank, decays in ((0, 1), (0, rows), (1, 1), (1, rows)):
    q, k, a, b = torch.randn(4, steps, columns, heads, rows)
    v, pull = torch.randn(2, steps, columns, heads, width)
    log_w, state = -0.6 * torch.rand(steps, columns, heads, decays), torch.randn(columns, heads, rows, width)
    a = torch.nn.functional.normalize(a, dim=-1)
    b = -a * torch.rand(steps, columns, heads, 1)
    leaves = [one.requires_grad_() for one in (q, k, v, log_w, state, *((a, b) if rank else ()))]

    def results():
        y, after = chunked.scan(*leaves[:5], tuple(leaves[5:]) or None)
        return [y, after, *torch.autograd.grad((pull * y).sum() + after.sin().sum(), leaves)]

    assert chunked.by_triton(q)
    found, chunked.ASKED = results(), False
    wanted, chunked.ASKED = results(), True
    errors = [relative(one, other) for one, other in zip(found, wanted, strict=True)]
    print(rank, decays, *(f"{error:.1e}" for error in errors), flush=True)
    assert max(errors) < 0.02, errors
"""


@pytest.mark.skipif(not (torch.cuda.is_available() and find_spec("fla")), reason="needs a GPU of CUDA and fla-core")
def test_the_kernels_are_the_chunks_within_their_products(monkeypatch):
    """In a process of its own, since the kernels are imported where they are asked for; by products of tensor cores."""
    monkeypatch.setenv("ELMAN_FLA", "1")
    subprocess.run([sys.executable, "-W", "ignore", "-c", ON_A_GPU], check=True, timeout=300)
