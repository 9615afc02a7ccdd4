"""Bounds of norms: that they hold, how near they are, and what rounding does to them."""

import math

import pytest
import torch

from elman.learning.projections import spectral
from elman.learning.projections.spectral import gram
from support.singular_values import sigma_1, some_basis

DTYPES = (torch.float32, torch.float64)


def least_proved(matrix):
    """The least c, as a share of sigma_1, of which a Cholesky factor is found: 1 but for rounding."""
    exact = sigma_1(matrix)
    low, high = 0.999, 1.001
    for _ in range(16):
        middle = (low + high) / 2
        # The guess of the power method lies above `at_most` here, so that c = at_most is what is tried.
        proved = spectral.proved_norm(matrix, middle * exact) < math.inf
        low, high = (low, middle) if proved else (middle, high)
    return high


@pytest.mark.parametrize("dtype", DTYPES)
def test_rounding_never_proves_a_bound_that_its_room_does_not_cover(dtype):
    """Products that all round the same way, equal values, opposite signs, values of every size."""
    torch.manual_seed(3)
    size = 96
    left, right = (torch.linalg.qr(torch.randn(size, size, dtype=dtype))[0] for _ in range(2))
    matrices = [
        torch.full((size, size), (1 + 2**-12 + 2**-23) / size, dtype=dtype),
        torch.rand(size, size, dtype=dtype),
        torch.randn(size, size, dtype=dtype).sign(),
        1.8 * left,
        left + 3 * torch.outer(right[0], left[1]),
        (left * torch.logspace(0, -6, size, dtype=dtype)) @ right,
    ]
    for matrix in matrices:
        assert least_proved(matrix) >= 1 - (spectral.ROUNDING - 1) / (5 if dtype == torch.float32 else 1000)


@pytest.mark.parametrize("noise", [0.0, 1e-3, 0.1])
def test_what_a_basis_leaves_out_is_bounded(noise):
    torch.manual_seed(4)
    matrix = torch.randn(650, 4) @ torch.randn(4, 500) / 600 + noise * torch.randn(650, 500) / 600
    for basis in (some_basis(500, 16), torch.linalg.svd(matrix)[2][:4].t()):
        left = matrix.double() - matrix.double() @ basis.double() @ basis.double().t()
        outside, sizes = spectral.norm_outside(matrix.norm().item(), matrix @ basis)
        assert left.norm() <= outside <= 1.01 * left.norm() + 5e-3 * matrix.norm()
        torch.testing.assert_close(sizes, (matrix @ basis).norm(dim=0))


def test_power_steps_find_the_largest_values_from_below():
    torch.manual_seed(6)
    matrix = (some_basis(40, 20, torch.float64) * torch.linspace(4, 1, 20)) @ some_basis(20, 20, torch.float64).t()
    values, block = spectral.power(gram(matrix), torch.randn(20, 8, dtype=torch.float64))
    exact = torch.linalg.svdvals(matrix)[:8]
    assert (values <= exact + 1e-12).all()
    torch.testing.assert_close(values[:2], exact[:2], rtol=0.02, atol=0)
    torch.testing.assert_close((matrix @ block).norm(dim=0), values)


def test_a_deflated_square_is_that_of_the_rest():
    torch.manual_seed(7)
    matrix, block = torch.randn(30, 20, dtype=torch.float64), some_basis(20, 3, torch.float64)
    rest = matrix - matrix @ block @ block.t()
    for columns in (block, block[:, :0]):
        expected = rest.t() @ rest if columns.shape[1] else matrix.t() @ matrix
        torch.testing.assert_close(spectral.deflated_(gram(matrix), columns), expected)


def test_the_norm_of_nothing():
    assert spectral.proved_norm(torch.zeros(4, 4), 1.0) == pytest.approx(1.0, rel=1e-4)
    assert spectral.proved_norm(torch.zeros(4, 4), 0.0) == math.inf


@pytest.mark.parametrize(
    ("likely", "at_most", "found"),
    [(2.0, 4.0, 2.0), (1.5, 4.0, 6.0**0.5), (1.0, 2.0, 2.0), (1.5, 1.7, math.inf), (5.0, 4.0, 4.0)],
)
def test_the_first_of_three_guesses_above_the_norm_is_proved_with_room_for_rounding(likely, at_most, found):
    """Sigma_1 is 1.9; tried are the guess, its geometric mean with the largest useful bound, and that bound."""
    squared = torch.diag(torch.tensor([1.9, 1.0, 0.1], dtype=torch.float64).square())
    assert spectral.proved(squared, likely, at_most) == pytest.approx(found * spectral.ROUNDING, rel=1e-12)


def test_the_norm_outside_by_hand():
    """||A||_F = 5: the sum of squares may lack a part of 1e-5, which is also the least that is left outside."""
    outside, sizes = spectral.norm_outside(5.0, torch.tensor([[3.0, 0.0], [0.0, 2.0]], dtype=torch.float64))
    assert outside == pytest.approx((25 * (1 + 1e-5) - 13) ** 0.5, rel=1e-12)
    assert sizes.tolist() == [3.0, 2.0]
    nothing, _ = spectral.norm_outside(5.0, torch.tensor([[3.0, 0.0], [0.0, 4.1]], dtype=torch.float64))
    assert nothing == pytest.approx((25 * 1e-5) ** 0.5, rel=1e-4)
