"""Thin products, triplets and proved norms against plain linear algebra."""

import math

import pytest
import torch

from elman.kernels import spectral

DTYPES = (torch.float32, torch.float64)


def sigma_1(matrix):
    return torch.linalg.matrix_norm(matrix.double(), 2).item()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("columns", [0, 1, 5])
def test_thin_products_are_products_whatever_the_strides(dtype, columns):
    torch.manual_seed(0)
    stacked = torch.randn(60, 26, dtype=dtype)
    thin = torch.randn(7, 26, dtype=dtype).t()[:, :columns]
    for matrix in (stacked, stacked[20:40], stacked[:, 1:14], stacked[::2], stacked[:20, :20].t(), stacked[:0]):
        for k in (thin[: matrix.shape[1]], thin[: matrix.shape[1]].contiguous()):
            torch.testing.assert_close(spectral.thin_product(matrix, k), matrix @ k)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(9, 9), (12, 5), (5, 12)])
def test_both_ways_to_all_triplets_agree(dtype, shape):
    torch.manual_seed(1)
    matrix = spectral.tall(torch.randn(shape, dtype=dtype))
    for found in (spectral.exact_triplets(matrix), spectral.svd_triplets(matrix)):
        torch.testing.assert_close(found.values, torch.linalg.svdvals(matrix))
        torch.testing.assert_close((found.left * found.values) @ found.right.t(), matrix)


def test_triplets_of_a_matrix_whose_squares_overflow():
    torch.manual_seed(2)
    matrix = 1e25 * torch.randn(6, 6)
    torch.testing.assert_close(spectral.exact_triplets(matrix).values, torch.linalg.svdvals(matrix))


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


def test_the_norm_of_nothing():
    assert spectral.proved_norm(torch.zeros(4, 4), 1.0) == pytest.approx(1.0, rel=1e-4)
    assert spectral.proved_norm(torch.zeros(4, 4), 0.0) == math.inf
