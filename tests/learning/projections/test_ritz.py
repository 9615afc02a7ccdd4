"""A matrix in a space of few directions against plain linear algebra."""

import pytest
import torch

from elman.learning.projections import ritz
from support.singular_values import sigma_1, some_basis


@pytest.mark.slow
@pytest.mark.parametrize("columns", [1, 5, 12])
def test_the_schur_complement_proves_what_is_so_and_nothing_else(columns):
    """mu is proved when it is over ||W||^2 as far as r, a bound of the rest, lets anyone know."""
    torch.manual_seed(8)
    for _ in range(15):
        matrix = torch.randn(20, 15, dtype=torch.float64)
        basis = some_basis(15, columns, torch.float64)
        tail = sigma_1(matrix - matrix @ basis @ basis.t())
        exact = sigma_1(matrix) ** 2
        proved = [
            mu
            for mu in torch.linspace(1.0001 * tail**2, 2 * exact, 200).tolist()
            if ritz.schur(ritz.space_of(matrix, basis), mu - tail**2)[0][0] <= mu
        ]
        assert exact <= min(proved)
        # The least mu of the two by two matrix of norms is as much as can be known without looking further.
        inside, rest = matrix @ basis, matrix - matrix @ basis @ basis.t()
        inside, coupling = sigma_1(inside) ** 2, sigma_1(inside.t() @ rest)
        worst = torch.tensor([[inside, coupling], [coupling, tail**2]])
        assert min(proved) <= torch.linalg.eigvalsh(worst)[-1].item() + 2 * exact / 200


def test_a_grown_space_is_that_of_both():
    torch.manual_seed(9)
    matrix, basis, more = torch.randn(40, 30), some_basis(30, 6), torch.randn(30, 3)
    grown = ritz.space_of(matrix, basis).grown(matrix, more)
    torch.testing.assert_close(grown.right @ (grown.right.t() @ more), more, atol=1e-5, rtol=0)
    for part, expected in zip(grown, ritz.space_of(matrix, grown.right), strict=True):
        torch.testing.assert_close(part, expected, atol=1e-4, rtol=0)


def test_ritz_values_are_singular_values_where_the_space_holds_their_vectors():
    torch.manual_seed(10)
    matrix = torch.randn(40, 30, dtype=torch.float64)
    u, exact, vh = torch.linalg.svd(matrix, full_matrices=False)
    rotation = some_basis(4, 4, torch.float64)
    values, space = ritz.ritz(ritz.space_of(matrix, vh[:4].t() @ rotation))
    torch.testing.assert_close(values, exact[:4])
    assert space.coupling(values).abs().max() < 1e-10
    found = space.triplets(values)
    torch.testing.assert_close((found.left * found.values) @ found.right.t(), (u[:, :4] * exact[:4]) @ vh[:4])


@pytest.mark.parametrize(("lag", "near"), [(10.0, 0.5), (0.03, 0.03)])
def test_what_is_made_feasible_is_so_and_near_the_nearest(lag, near):
    """The space holds the top directions but for an error; rounds make it smaller, and feasible it is at once."""
    torch.manual_seed(11)
    matrix = (some_basis(60, 40, torch.float64) * torch.linspace(3, 0.1, 40)) @ some_basis(40, 40, torch.float64).t()
    u, values, vh = torch.linalg.svd(matrix, full_matrices=False)
    nearest = (u * values.clamp(max=2.5)) @ vh
    basis = torch.linalg.qr(vh[:10].t() + 0.02 * torch.randn(40, 10, dtype=torch.float64)).Q
    tail = sigma_1(matrix - matrix @ basis @ basis.t())
    before = matrix.clone()
    done = ritz.make_feasible_(matrix, ritz.space_of(matrix, basis), 2.5, tail, (lag, 6))
    assert sigma_1(matrix) <= 2.5 + 1e-9
    torch.testing.assert_close(before - done.left @ done.right.t(), matrix)
    over = done.right.shape[1]
    torch.testing.assert_close(done.right.t() @ done.right, torch.eye(over, dtype=torch.float64))
    assert over >= int((values > 2.5).sum())
    assert done.computed >= 10
    assert (matrix - nearest).norm() <= near * (before - nearest).norm()


def test_what_is_feasible_is_left_alone_to_the_last_bit():
    torch.manual_seed(12)
    matrix = torch.randn(30, 20)
    before, basis = matrix.clone(), some_basis(20, 5)
    norm = 1.1 * sigma_1(matrix)
    tail = sigma_1(matrix - matrix @ basis @ basis.t())
    done = ritz.make_feasible_(matrix, ritz.space_of(matrix, basis), 2 * norm, tail, (1e-5, 3))
    assert done.left.shape == (30, 0)
    nothing = ritz.make_feasible_(matrix, ritz.space_of(matrix, basis[:, :0]), 2 * norm, norm, (1e-5, 3))
    assert nothing.computed == 0
    assert torch.equal(matrix, before)


def test_a_space_that_does_not_come_near_is_refused():
    torch.manual_seed(13)
    matrix = torch.randn(30, 20, dtype=torch.float64)
    before = matrix.clone()
    space = ritz.space_of(matrix, some_basis(20, 5, torch.float64))
    norm = 0.9 * sigma_1(matrix)
    assert ritz.make_feasible_(matrix, space, norm, 0.99 * norm, (1e-6, 2)) is None
    assert torch.equal(matrix, before)


def test_a_value_that_hides_the_others_is_refused():
    matrix = torch.eye(12)
    matrix[0, 0] = 100.0
    assert ritz.make_feasible_(matrix, ritz.space_of(matrix, torch.eye(12)[:, :3]), 1.5, 1.0, (1e-5, 3)) is None
    assert matrix[0, 0] == 100


@pytest.mark.parametrize(("largest", "done"), [(7.5, True), (8.5, False)])
def test_a_value_too_far_above_the_norm_hides_the_others(largest, done):
    torch.manual_seed(13)
    values = torch.cat(
        [torch.tensor([largest], dtype=torch.float64), torch.linspace(0.9, 0.1, 19, dtype=torch.float64)]
    )
    matrix = (some_basis(30, 20, torch.float64) * values) @ some_basis(20, 20, torch.float64).t()
    before, basis = matrix.clone(), torch.linalg.svd(matrix)[2][:3].t()
    found = ritz.make_feasible_(matrix, ritz.space_of(matrix, basis), 1.0, float(values[3]) + 1e-9, (1e-5, 3))
    assert (found is not None) == done
    assert torch.equal(matrix, before) != done
    assert sigma_1(matrix) == pytest.approx(1.0 if done else largest)
