"""Thin products, triplets and bases against plain linear algebra."""

import pytest
import torch

from elman.learning.projections import spectral

DTYPES = (torch.float32, torch.float64)


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


def test_triplets_of_a_matrix_whose_squares_overflow_or_vanish():
    torch.manual_seed(2)
    for size in (1e-25, 1e18, 1e25):
        matrix = size * torch.randn(6, 6)
        wanted = torch.linalg.svdvals(matrix)
        torch.testing.assert_close(spectral.exact_triplets(matrix).values / size, wanted / size)


def test_an_extended_basis_is_orthonormal_and_holds_what_was_added():
    torch.manual_seed(5)
    basis, more = torch.linalg.qr(torch.randn(40, 6)).Q, torch.randn(40, 3)
    for added in (more, basis @ torch.randn(6, 3) + 1e-3 * more):
        both = spectral.extended(basis, added)
        torch.testing.assert_close(both.t() @ both, torch.eye(9), atol=1e-5, rtol=0)
        torch.testing.assert_close(both @ (both.t() @ added), added, atol=1e-4, rtol=0)
        assert torch.equal(both[:, :6], basis)


def test_only_matrices_whose_products_float32_cannot_hold_are_scaled():
    matrix = torch.tensor([[3.0, 1.0], [0.5, 2.0], [0.0, 1.0]])
    assert spectral.scaled(matrix) == (matrix, 1.0)
    for factor in (2.0**40, 2.0**-40):
        even, unit = spectral.scaled(matrix * factor)
        assert torch.equal(even * unit, matrix * factor)
        assert 0.5 <= even.abs().max() < 1.0
