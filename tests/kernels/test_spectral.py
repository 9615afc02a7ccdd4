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


def some_basis(rows, columns, dtype=torch.float32):
    return torch.linalg.qr(torch.randn(rows, columns, dtype=dtype))[0]


@pytest.mark.parametrize("noise", [0.0, 1e-3, 0.1])
def test_what_a_basis_leaves_out_is_bounded(noise):
    torch.manual_seed(4)
    matrix = torch.randn(650, 4) @ torch.randn(4, 500) / 600 + noise * torch.randn(650, 500) / 600
    for basis in (some_basis(500, 16), torch.linalg.svd(matrix)[2][:4].t()):
        left = matrix.double() - matrix.double() @ basis.double() @ basis.double().t()
        outside = spectral.norm_outside(matrix, matrix.norm().item(), basis)[0]
        assert left.norm() <= outside <= 1.01 * left.norm() + 5e-3 * matrix.norm()


def test_power_steps_find_the_largest_values_from_below():
    torch.manual_seed(6)
    matrix = (some_basis(40, 20, torch.float64) * torch.linspace(4, 1, 20)) @ some_basis(20, 20, torch.float64).t()
    values, block = spectral.power(spectral.gram(matrix), torch.randn(20, 8, dtype=torch.float64))
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
        torch.testing.assert_close(spectral.deflated_(spectral.gram(matrix), columns), expected)


@pytest.mark.parametrize("columns", [1, 5, 12])
def test_the_schur_complement_proves_what_is_so_and_nothing_else(columns):
    """mu is proved when it is over ||W||^2 as far as r, a bound of the rest, lets anyone know."""
    torch.manual_seed(8)
    for _ in range(50):
        matrix = torch.randn(20, 15, dtype=torch.float64)
        basis = some_basis(15, columns, torch.float64)
        tail = sigma_1(matrix - matrix @ basis @ basis.t())
        exact = sigma_1(matrix) ** 2
        proved = [
            mu
            for mu in torch.linspace(1.0001 * tail**2, 2 * exact, 200).tolist()
            if spectral.schur(spectral.space_of(matrix, basis), mu - tail**2)[0][0] <= mu
        ]
        assert exact <= min(proved)
        # The least mu of the two by two matrix of norms is as much as can be known without looking further.
        inside, rest = matrix @ basis, matrix - matrix @ basis @ basis.t()
        inside, coupling = sigma_1(inside) ** 2, sigma_1(inside.t() @ rest)
        worst = torch.tensor([[inside, coupling], [coupling, tail**2]])
        assert min(proved) <= torch.linalg.eigvalsh(worst)[-1].item() + 2 * exact / 200


def test_an_extended_basis_is_orthonormal_and_holds_what_was_added():
    torch.manual_seed(5)
    basis, more = torch.linalg.qr(torch.randn(40, 6)).Q, torch.randn(40, 3)
    for added in (more, basis @ torch.randn(6, 3) + 1e-3 * more):
        both = spectral.extended(basis, added)
        torch.testing.assert_close(both.t() @ both, torch.eye(9), atol=1e-5, rtol=0)
        torch.testing.assert_close(both @ (both.t() @ added), added, atol=1e-4, rtol=0)
        assert torch.equal(both[:, :6], basis)


def test_a_grown_space_is_that_of_both():
    torch.manual_seed(9)
    matrix, basis, more = torch.randn(40, 30), some_basis(30, 6), torch.randn(30, 3)
    grown = spectral.space_of(matrix, basis).grown(matrix, more)
    torch.testing.assert_close(grown.right @ (grown.right.t() @ more), more, atol=1e-5, rtol=0)
    for part, expected in zip(grown, spectral.space_of(matrix, grown.right), strict=True):
        torch.testing.assert_close(part, expected, atol=1e-4, rtol=0)


def test_ritz_values_are_singular_values_where_the_space_holds_their_vectors():
    torch.manual_seed(10)
    matrix = torch.randn(40, 30, dtype=torch.float64)
    u, exact, vh = torch.linalg.svd(matrix, full_matrices=False)
    rotation = some_basis(4, 4, torch.float64)
    values, space = spectral.ritz(spectral.space_of(matrix, vh[:4].t() @ rotation))
    torch.testing.assert_close(values, exact[:4])
    assert space.coupling(values).abs().max() < 1e-10
    found = space.triplets(values)
    torch.testing.assert_close((found.left * found.values) @ found.right.t(), (u[:, :4] * exact[:4]) @ vh[:4])


def test_the_norm_of_nothing():
    assert spectral.proved_norm(torch.zeros(4, 4), 1.0) == pytest.approx(1.0, rel=1e-4)
    assert spectral.proved_norm(torch.zeros(4, 4), 0.0) == math.inf
