"""Products with weights of eight bits against integers written out in NumPy, and what they may be used for."""

import numpy as np
import pytest
import torch
from torch import nn

from elman.network.build import tiny_model
from elman.network.fast import int8, matmul, precision

VNNI = torch.cpu._is_vnni_supported()


def by_integers(x: np.ndarray, w: np.ndarray, levels: int) -> np.ndarray:
    rows = np.abs(w).max(axis=1, keepdims=True) / 127
    scales = np.abs(x).max(axis=1, keepdims=True) / levels
    return scales * (np.rint(x / scales).astype(int) @ np.rint(w / rows).astype(int).T) * rows.T


def drawn(rows: int, inputs: int, outputs: int) -> tuple[torch.Tensor, nn.Parameter, torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    w = torch.randn(outputs, inputs, generator=generator) * torch.linspace(0.1, 10, outputs).unsqueeze(1)
    return torch.randn(rows, inputs, generator=generator), nn.Parameter(w), torch.randn(outputs, generator=generator)


@pytest.mark.parametrize(("rows", "inputs"), [(1, 33), (1, 64), (3, 7)])
@pytest.mark.parametrize(
    "vnni",
    [pytest.param(True, marks=pytest.mark.skipif(not VNNI, reason="sums of pairs overflow on this processor")), False],
)
def test_the_product_is_that_of_rounded_integers(rows, inputs, vnni, monkeypatch):
    monkeypatch.setattr(torch.cpu, "_is_vnni_supported", lambda: vnni)
    x, w, bias = drawn(rows, inputs, 12)
    exact = by_integers(x.numpy(), w.detach().numpy(), 127 if vnni else 63)
    assert np.abs(exact - x.numpy() @ w.detach().numpy().T).max() > 1e-3
    with torch.no_grad(), precision.products_in("int8"):
        for found, without in (
            (matmul.multiply(x, w), 0),
            (matmul.multiply(x, w, bias), bias.numpy()),
            (matmul.multiply_add(x, matmul.pack(w, rows, 100), bias.expand(rows, 12)), bias.numpy()),
            (matmul.linear(x, w, bias), bias.numpy()),
        ):
            assert found.dtype == torch.float32
            np.testing.assert_allclose(found.numpy() - without, exact, rtol=1e-4, atol=1e-4)


def test_a_row_does_not_depend_on_those_beside_it():
    x, w, bias = drawn(4, 64, 12)
    x[1] *= 100
    with torch.no_grad(), precision.products_in("int8"):
        for given in (None, bias):
            alone = torch.cat([matmul.multiply(row[None], w, given) for row in x])
            assert torch.equal(matmul.multiply(x, w, given), alone)


def test_a_changed_parameter_is_rounded_again_and_zeros_stay_zero():
    x, w, _ = drawn(1, 16, 4)
    with torch.no_grad(), precision.products_in("int8"):
        before = matmul.multiply(x, w)
        kept = int8._ROUNDED[w]
        assert torch.equal(matmul.multiply(x, w), before)
        assert int8._ROUNDED[w] is kept
        w.mul_(2)
        torch.testing.assert_close(matmul.multiply(x, w), 2 * before)
        w.zero_()
        assert not matmul.multiply(x, w).any()
        assert not matmul.multiply(torch.zeros_like(x), drawn(1, 16, 4)[1]).any()


def test_views_doubles_and_other_precisions_are_not_rounded():
    x, w, _ = drawn(2, 16, 4)
    exact = x @ w.t()
    with torch.no_grad():
        torch.testing.assert_close(matmul.multiply(x, w), exact)
        with precision.products_in("int8"):
            torch.testing.assert_close(matmul.multiply(x, w[:]), exact)
            doubles = x.double(), nn.Parameter(w.double())
            torch.testing.assert_close(matmul.multiply(*doubles), doubles[0] @ doubles[1].t())
            assert not torch.allclose(matmul.multiply(x, w), exact, rtol=1e-4)


def test_a_model_in_int8_is_near_itself():
    torch.manual_seed(2)
    model = tiny_model(num_words=30, size=16).eval()
    symbols = torch.randint(30, (12, 1))
    with torch.inference_mode():
        exact, _ = model.log_probs(symbols, model.begin(1))
        with precision.products_in("int8"):
            state, steps = model.begin(1), []
            for symbol in symbols:
                log_probs, state = model.step(symbol, state)
                steps.append(log_probs)
            together, _ = model.log_probs(symbols, model.begin(1))
    for found in (torch.stack(steps), together):
        error = (found - exact).abs().max().item()
        assert 1e-6 < error < 0.05
