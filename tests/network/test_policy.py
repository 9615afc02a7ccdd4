"""Which form computes what: by shape, type, precision and processor alone."""

import pytest
import torch

from elman.network.cells.cell import Weights, unroll
from elman.network.cells.lstm import LSTM
from elman.network.fast import lstm, policy
from elman.network.fast.precision import products_in

WINDOW = 35


@pytest.fixture
def with_bf16(monkeypatch):
    """A processor that multiplies in bf16."""
    monkeypatch.setattr(policy, "_has_bf16", lambda: True)
    monkeypatch.setattr(policy, "uses_onednn", lambda _: True)


CHOICES = [
    # kind, H, B, T, exact, the type of the library's LSTM or None
    ("float32", 64, 20, WINDOW, False, torch.float32),
    ("float32", 1099, 1, WINDOW, False, torch.float32),
    ("float32", 1100, 20, WINDOW, False, None),
    ("float32", 64, 20, 3, False, None),
    ("bf16", 64, 20, WINDOW, False, torch.bfloat16),
    ("bf16", 511, 4, WINDOW, False, torch.bfloat16),
    ("bf16", 64, 3, WINDOW, False, torch.float32),
    ("bf16", 512, 64, WINDOW, False, None),
    ("bf16", 299, 20, WINDOW, True, torch.float32),
    ("bf16", 300, 20, WINDOW, True, None),
    ("int8", 64, 20, WINDOW, False, None),
]


@pytest.mark.parametrize(("kind", "size", "rows", "steps", "exact", "wanted"), CHOICES)
def test_the_library_computes_what_it_is_fastest_at(kind, size, rows, steps, exact, wanted, with_bf16):
    with products_in(kind):
        assert policy.library_lstm(torch.zeros(steps, rows, 2), size, exact=exact) == wanted


def test_a_processor_without_bf16_is_given_none(monkeypatch, with_bf16):
    monkeypatch.setattr(policy, "_has_bf16", lambda: False)
    with products_in("bf16"):
        assert policy.library_lstm(torch.zeros(WINDOW, 20, 2), 64) == torch.float32


@pytest.mark.parametrize("steps", [1, 5, 64])
def test_parts_in_the_cache_are_all_of_a_window(steps, monkeypatch):
    monkeypatch.setattr(policy, "CACHED", 100)
    windows = torch.arange(steps * 3 * 2 * 10.0).view(steps, 3, 2, 10)
    parts = policy.in_cache(windows)
    assert torch.equal(torch.cat(parts), windows)
    assert {len(part) for part in parts[:-1]} <= {3}


def relative(found, exact):
    return ((found.double() - exact).norm() / exact.norm()).item()


@pytest.mark.skipif(not policy._has_bf16(), reason="a processor without bf16")
@pytest.mark.parametrize(("size", "rows"), [(64, 20), (256, 8)])
def test_gradients_of_the_library_in_bf16_are_exact_to_a_hundredth(size, rows):
    torch.manual_seed(1)
    shapes = (4 * size, size), (4 * size, size), (4 * size,), (4 * size,)
    arrays = [((torch.rand(shape) * 2 - 1) * size**-0.5).requires_grad_() for shape in shapes]
    xs, pull, zero = torch.randn(WINDOW, rows, size), torch.randn(WINDOW, rows, size), torch.zeros(rows, size)
    exact = [part.detach().double().requires_grad_() for part in arrays]
    wanted, _ = unroll(LSTM().step, Weights(*exact), xs.double(), (zero.double(), zero.double()))
    with products_in("bf16"):
        assert policy.library_lstm(xs, size) == torch.bfloat16
        found, state = lstm.scan(Weights(*arrays), xs, (zero, zero))
    assert {part.dtype for part in (found, *state)} == {torch.float32}
    assert 1e-4 < relative(found, wanted) < 0.01
    gradients = torch.autograd.grad(found, arrays, pull)
    for one, other in zip(gradients, torch.autograd.grad(wanted, exact, pull.double()), strict=True):
        assert 1e-4 < relative(one, other) < 0.01


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("chosen", ["float32", "bf16"])
def test_on_cuda_float32_is_computed_in_bf16_where_products_are(dtype, chosen):
    with products_in(chosen):
        wanted = torch.bfloat16 if (dtype, chosen) == (torch.float32, "bf16") else dtype
        assert policy._type_on_cuda(torch.zeros(1, dtype=dtype)) is wanted
