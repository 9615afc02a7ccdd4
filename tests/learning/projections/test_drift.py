"""What is known of a change: its main directions, and a bound of the rest that nothing escapes."""

import pytest
import torch

from elman.learning.projections.subspace import Followed, drift_of
from support.singular_values import sigma_1, some_basis

FOLLOWED = Followed(most=8, probes=2, small=0.01, large=0.2)


def outside(change, basis):
    return sigma_1(change - change @ basis @ basis.t())


@pytest.mark.parametrize("values", [torch.ones(30), torch.logspace(0, -3, 30), torch.tensor([3.0, 1, 1] + 27 * [0.01])])
def test_the_bound_holds_and_grows_tighter_with_the_steps(values):
    torch.manual_seed(1)
    change = (some_basis(40, 30) * values) @ some_basis(30, 30).t()
    known, begun = some_basis(30, 3), torch.zeros(30, 0)
    bounds = []
    for _ in range(6):
        found = drift_of(change, change.norm().item(), known, begun, FOLLOWED)
        inside = found.inside
        torch.testing.assert_close(inside.t() @ inside, torch.eye(inside.shape[1]), atol=1e-5, rtol=0)
        torch.testing.assert_close(inside[:, :3], known)
        assert outside(change, inside) <= found.outside * (1 + 1e-4)
        assert found.outside <= change.norm() * (1 + 1e-4)
        begun = found.moved
        bounds.append(found.outside)
    assert bounds[-1] <= bounds[0] * (1 + 1e-4)


def test_large_directions_are_part_of_the_space_and_small_ones_sharpen_the_bound_alone():
    torch.manual_seed(2)
    values = torch.tensor([5.0, 2.0, 0.1, 0.09] + 26 * [1e-3])
    right = some_basis(30, 30)
    change = (some_basis(40, 30) * values) @ right.t()
    known, begun = torch.zeros(30, 0), torch.zeros(30, 0)
    for _ in range(5):
        found = drift_of(change, change.norm().item(), known, begun, FOLLOWED)
        begun = found.moved
    assert found.inside.shape[1] == 2
    torch.testing.assert_close(found.inside @ (found.inside.t() @ right[:, :2]), right[:, :2], atol=1e-3, rtol=0)
    assert found.moved.shape[1] == 4
    assert found.outside == pytest.approx(0.1, rel=0.02)


def test_a_change_of_nothing():
    found = drift_of(torch.zeros(20, 16), 0.0, torch.eye(16)[:, :2], torch.zeros(16, 0), FOLLOWED)
    assert found.outside == 0
    assert found.inside.shape == (16, 2)


def test_many_directions_are_sought_at_first_and_few_beside_those_that_are_followed():
    torch.manual_seed(3)
    change, known = torch.randn(40, 30), some_basis(30, 3)
    begun, counts = torch.zeros(30, 0), []
    for _ in range(4):
        found = drift_of(change, change.norm().item(), known, begun, FOLLOWED._replace(small=0.0, large=1e9))
        begun = found.moved
        assert found.inside.shape[1] == 3
        counts.append(begun.shape[1])
    assert counts == [4, 6, 8, 8]  # an eighth of the columns and one; two more; at most eight
