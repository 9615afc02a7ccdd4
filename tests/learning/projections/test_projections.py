"""Projections of one matrix: feasible, idempotent, nearest, and not to be fooled."""

import math

import numpy as np
import pytest
import torch

from elman.learning.projections import ritz, spectral
from elman.learning.projections.projector import ByEigh, BySVD, ByTruncation, ToOrthogonal, ToSpectralNorm, top_triplets
from elman.learning.projections.subspace import BySubspace
from reference import constraint as reference
from support.singular_values import sigma_1

PROJECTORS = {
    "svd": BySVD,
    "eigh": ByEigh,
    "subspace": BySubspace,
    "truncated": lambda limit: ByTruncation(limit, limit),
}
SHAPES = [(40, 40), (40, 25), (25, 40)]


def with_values(values, rows=None):
    """A matrix of random singular vectors with these singular values."""
    n = len(values)
    left, right = (torch.linalg.qr(torch.randn(size, n))[0] for size in (rows or n, n))
    return (left * torch.as_tensor(values)) @ right.t()


def projected(matrix, limit):
    matrix = matrix.clone()
    BySVD(limit).project_(matrix)
    return matrix


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", PROJECTORS)
def test_feasible_idempotent_and_equal_to_the_svd(name, shape):
    torch.manual_seed(0)
    matrix = torch.randn(shape) / 3
    before = matrix.clone()
    projector = PROJECTORS[name](1.2)
    assert projector.computed == 0
    projector.project_(matrix)
    assert sigma_1(before) > 1.5
    assert sigma_1(matrix) <= 1.2 + 1e-5
    u, values, vh = np.linalg.svd(before.double().numpy(), full_matrices=False)
    torch.testing.assert_close(matrix.double().numpy(), (u * values.clip(max=1.2)) @ vh, atol=1e-5, rtol=0)
    once = matrix.clone()
    projector.project_(matrix)
    torch.testing.assert_close(matrix, once, atol=1e-6, rtol=0)


@pytest.mark.parametrize("name", PROJECTORS)
def test_feasible_matrices_stay_as_they_are(name):
    torch.manual_seed(1)
    matrix = with_values(np.linspace(0.1, 1.1, 30, dtype=np.float32))
    before = matrix.clone()
    PROJECTORS[name](1.2).project_(matrix)
    assert torch.equal(matrix, before)


def test_nearest_of_many_feasible_matrices():
    """Thesis, Lemma 3.5; also in the trace norm (3.18-3.24)."""
    torch.manual_seed(2)
    matrix = torch.randn(12, 12, dtype=torch.float64)
    nearest = projected(matrix, 1.0)
    others = torch.randn(2000, 12, 12, dtype=torch.float64) * torch.rand(2000, 1, 1, dtype=torch.float64)
    u, values, vh = torch.linalg.svd(nearest + others)
    others = (u * values.clamp(max=1.0).unsqueeze(1)) @ vh
    assert ((others - matrix).flatten(1).norm(dim=1) >= (nearest - matrix).norm() - 1e-9).all()
    nuclear = torch.linalg.matrix_norm(others - matrix, "nuc")
    assert (nuclear >= torch.linalg.matrix_norm(nearest - matrix, "nuc") - 1e-9).all()


def test_views_of_stacked_weights_are_changed_in_place():
    torch.manual_seed(3)
    stacked = torch.randn(60, 20)
    before = stacked.clone()
    BySubspace(1.0).project_(stacked[40:])
    assert torch.equal(stacked[:40], before[:40])
    assert sigma_1(stacked[40:]) <= 1 + 1e-5


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e4])
def test_a_proved_norm_holds_and_is_near(scale):
    torch.manual_seed(4)
    for shape in ((50, 30), (30, 50), (200, 200), (5, 3)):
        matrix = scale * torch.randn(shape)
        exact = sigma_1(matrix)
        assert exact <= spectral.proved_norm(matrix, 10 * exact) <= 1.1 * exact
        assert spectral.proved_norm(matrix, 1.001 * exact) == pytest.approx(1.001 * exact, rel=1e-4)
        assert spectral.proved_norm(matrix, 0.99 * exact) == math.inf


def test_a_norm_is_not_proved_by_a_guess_that_misses_it():
    """A spike orthogonal to every probe is invisible to the power method's beginning; the factor sees it."""
    torch.manual_seed(5)
    probes = spectral.sketch(60, spectral.PROBES, torch.ones(1))
    spike = torch.randn(60)
    spike -= probes @ torch.linalg.lstsq(probes, spike).solution
    matrix = torch.eye(60) + 8 * torch.outer(torch.randn(60), spike / spike.norm()) / 60**0.5
    exact = sigma_1(matrix)
    assert spectral.proved_norm(matrix, 0.9 * exact) == math.inf
    assert exact <= spectral.proved_norm(matrix, 2 * exact)


def wander(matrix, steps, spike_every, tracked, size=0.04):
    """Steps of low rank and noise; spikes of rank one in directions that the projector does not track."""
    n = len(matrix)
    for index in range(steps):
        step = torch.randn(n, 3) @ torch.randn(3, n) / n * size + torch.randn(n, n) / n * size
        if spike_every and index % spike_every == 0:
            v, basis = torch.randn(n), tracked()
            if basis is not None:
                basis = torch.linalg.qr(basis)[0]
                v = v - basis @ (basis.t() @ v)
            step = step + 1.5 * torch.outer(torch.randn(n) / n**0.5, v / v.norm())
        yield step


@pytest.mark.slow
@pytest.mark.parametrize("spike_every", [0, 5])
def test_subspace_is_the_nearest_point_without_computing_all(spike_every):
    torch.manual_seed(6)
    matrix = with_values(np.r_[np.full(6, 1.79), np.linspace(0.2, 1.2, 154)].astype(np.float32))
    projector = BySubspace(1.8)
    computed = []
    for step in wander(matrix, 60, spike_every, lambda: projector.reference and projector.reference.basis, size=0.1):
        matrix += step
        exact = projected(matrix, 1.8)
        projector.project_(matrix)
        computed.append(projector.computed)
        assert (matrix - exact).norm() <= 1e-3 * exact.norm()
        assert sigma_1(matrix) <= 1.8 + 1e-4
    assert sum(count == 160 for count in computed) <= 10
    assert max(computed[1:]) > 0


def test_many_equal_values_below_the_limit_are_not_followed():
    """An orthogonal matrix, as training begins with, at delta = 0.8: all its values are 0.83 of the limit."""
    torch.manual_seed(14)
    matrix = torch.linalg.qr(torch.randn(100, 100))[0].contiguous()
    projector = BySubspace(1.2)
    projector.project_(matrix)
    computed = []
    for step in wander(matrix, 30, 0, lambda: None):
        matrix += step
        projector.project_(matrix)
        computed.append(projector.computed)
    assert max(computed) < 100


def test_a_spike_beyond_the_reach_of_the_iteration_falls_back():
    """Many new directions at once, more than are looked for: nothing but all the values will do."""
    torch.manual_seed(7)
    matrix = with_values(np.linspace(0.2, 1.0, 200, dtype=np.float32))
    projector = BySubspace(1.5)
    projector.project_(matrix)
    matrix += with_values(np.r_[np.full(60, 2.0), np.zeros(140)].astype(np.float32))
    projector.project_(matrix)
    assert projector.computed == 200
    assert sigma_1(matrix) <= 1.5 + 1e-4


@pytest.mark.parametrize("level", [2.0, 1.8])
@pytest.mark.parametrize("norm", ["frobenius", "spectral"])
def test_algorithm_3_2(norm, level):
    """Weights and s of each step as in the transcription; sigma_1 below the level whichever norm is used."""
    torch.manual_seed(8)
    start = torch.linalg.qr(torch.randn(40, 40, dtype=torch.float64))[0]
    matrix = start.clone()
    projector = ByTruncation(1.8, level, norm)
    projector.project_(matrix)
    steps = [0.3 * step.double() for step in wander(matrix, 40, 4, lambda: None)]
    expected = reference.algorithm_3_2(start.numpy(), [step.numpy() for step in steps], 0.2, level=level)
    for step, (weight, count) in zip(steps, expected, strict=True):
        matrix += step
        projector.project_(matrix)
        assert sigma_1(matrix) < level + 1e-4
        if norm == "frobenius":
            assert projector.computed == count
            torch.testing.assert_close(matrix.numpy(), weight, atol=2e-4, rtol=0)


@pytest.mark.parametrize(("norm", "other"), [("frobenius", "spectral"), ("spectral", "frobenius")])
def test_both_norms_keep_bounds_of_their_own(norm, other):
    """S by the other norm is what the algorithm with that norm computes in the same steps, also after a restart."""
    torch.manual_seed(9)
    start = torch.linalg.qr(torch.randn(60, 60))[0].contiguous()
    steps = list(wander(start.clone(), 40, 3, lambda: None))
    both, alone = ByTruncation(1.8, 2.0, norm, compare=True), ByTruncation(1.8, 2.0, other)
    matrix, separate = start.clone(), start.clone()
    totals = {"s": 0, "s_other": 0}
    for number, step in enumerate([torch.zeros_like(start), *steps]):
        matrix += step
        separate += step
        both.project_(matrix)
        alone.project_(separate)
        counts = both.counts()
        assert counts["s_other"] == alone.computed
        torch.testing.assert_close(both.other.bounds, alone.bounds)
        totals = {name: totals[name] + counts[name] for name in totals}
        if number == 20:
            kept = both.tensors()
            both = ByTruncation(1.8, 2.0, norm, compare=True)
            both.restore(kept, "cpu")
    assert (totals["s_other"] < totals["s"]) is (norm == "frobenius")


def test_top_triplets_of_a_large_matrix_without_all_of_them():
    torch.manual_seed(10)
    matrix = with_values(np.r_[3.0, 2.5, 2.2, np.linspace(0.1, 1.5, 297)].astype(np.float32))
    top = top_triplets(matrix, 3, None)
    torch.testing.assert_close(top.values, torch.tensor([3.0, 2.5, 2.2]), atol=1e-4, rtol=0)
    torch.testing.assert_close(matrix @ top.right, top.left * top.values, atol=1e-3, rtol=0)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("far", [False, True])
def test_orthogonal_is_the_polar_factor(shape, far):
    torch.manual_seed(11)
    matrix = 1.5 * torch.linalg.qr(torch.randn(40, 40))[0][: shape[0], : shape[1]].contiguous()
    matrix = torch.randn(shape) if far else matrix + 0.01 * torch.randn(shape)
    u, _, vh = torch.linalg.svd(matrix, full_matrices=False)
    projector = ToOrthogonal(1.5)
    projector.project_(matrix)
    torch.testing.assert_close(matrix, 1.5 * u @ vh, atol=2e-5, rtol=0)
    assert projector.counts() == {"s": min(shape) if far else 0}


def test_spectral_norm_follows_small_steps():
    torch.manual_seed(12)
    matrix = torch.randn(50, 50) / 7
    projector = ToSpectralNorm(1.5)
    for _ in range(30):
        direction = matrix + 0.01 * torch.randn(50, 50) / 7
        matrix.copy_(direction)
        projector.project_(matrix)
        assert sigma_1(matrix) == pytest.approx(1.5, rel=0.02)
        torch.testing.assert_close(matrix / matrix.norm(), direction / direction.norm())
    assert projector.computed < 50
    other = torch.randn(20, 30)
    projector.project_(other)
    assert projector.computed == 20, "a matrix of another width has all values again"
    assert sigma_1(other) == pytest.approx(1.5)
    small = torch.eye(5)
    ToSpectralNorm(3.0, always=False).project_(small)
    assert torch.equal(small, torch.eye(5))


@pytest.mark.parametrize("name", [*PROJECTORS, "spectral-norm"])
@pytest.mark.parametrize("limit", [1e-15, 1.0, 1e15])
def test_limits_and_steps_whose_squares_float32_does_not_hold(name, limit):
    torch.manual_seed(14)
    matrix = limit * torch.randn(8, 5)
    projector = {**PROJECTORS, "spectral-norm": ToSpectralNorm}[name](limit)
    projector.project_(matrix)
    for size in (1.0, 1e10, 1e22):
        matrix += size * limit * torch.randn(8, 5)
        projector.project_(matrix)
        assert sigma_1(matrix) == pytest.approx(limit, rel=0.05 if name == "spectral-norm" else 1e-4)


@pytest.mark.parametrize("name", ["subspace", "truncated", "spectral-norm"])
def test_restored_projectors_go_on_bit_for_bit(name):
    torch.manual_seed(13)
    make = {**PROJECTORS, "spectral-norm": ToSpectralNorm}[name]
    matrix = with_values(np.linspace(0.1, 1.3, 120, dtype=np.float32))
    one = make(1.2)
    for step in wander(matrix, 5, 0, lambda: None):
        matrix += step
        one.project_(matrix)
    other, copy = make(1.2), matrix.clone()
    other.restore({key: tensor.clone().contiguous() for key, tensor in one.tensors().items()}, torch.device("cpu"))
    for step in wander(matrix, 5, 2, lambda: None):
        matrix += step
        copy += step
        one.project_(matrix)
        other.project_(copy)
        assert torch.equal(matrix, copy)


@pytest.mark.parametrize("anew", [False, True])
def test_the_bounds_of_the_reference_hold(anew):
    """r_0 bounds W outside the directions followed, after all values are computed and after a new proof."""
    torch.manual_seed(3)
    values = torch.cat([torch.tensor([1.6, 1.4, 1.2, 1.0]), torch.linspace(0.7, 0.1, 36)])
    matrix, projector = with_values(values), BySubspace(1.2)
    projector.project_(matrix)
    if anew:
        matrix.add_(0.05 * torch.randn(40, 40))
        assert projector._project_anew(spectral.tall(matrix), projector.reference)
    kept, basis = projector.reference.matrix.double(), projector.reference.basis.double()
    norm, outside = projector.reference.figures[:2].tolist()
    exact = sigma_1(kept - kept @ basis @ basis.t())
    assert exact <= outside <= 1.1 * exact
    assert sigma_1(kept) <= norm <= 1.2 * (1 + 1e-4)
    if not anew:
        assert basis.shape[1] == 4
        assert outside == pytest.approx(0.7, rel=1e-3)


def test_a_new_r_0_allows_for_what_was_subtracted(monkeypatch):
    """Whatever is subtracted once r_0 is proved, even if it makes the rest larger, the bound holds afterwards."""
    torch.manual_seed(4)
    values = torch.cat([torch.tensor([1.6, 1.4, 1.2, 1.0]), torch.linspace(0.7, 0.1, 36)])
    matrix, projector = with_values(values), BySubspace(1.2)
    projector.project_(matrix)
    matrix.add_(0.05 * torch.randn(40, 40))

    def enlarge(tall, space, tail):
        left, size, right = torch.linalg.svd(tall)
        at = int((size > projector.near).sum())  # the largest value outside the directions near the limit
        done = ritz.Feasible(-0.2 * left[:, at : at + 1], right[at : at + 1].t(), 1)
        tall.addmm_(done.left, done.right.t(), alpha=-1)
        return done

    monkeypatch.setattr(projector, "_make_feasible_", enlarge)
    assert projector._project_anew(spectral.tall(matrix), projector.reference)
    kept, basis = projector.reference.matrix.double(), projector.reference.basis.double()
    exact = sigma_1(kept - kept @ basis @ basis.t())
    assert exact <= projector.reference.figures[1].item() <= 1.2 * exact


@pytest.mark.parametrize("limit", [0.25, 8.0])
def test_what_is_followed_scales_with_the_limit(limit):
    """To the last bit, for powers of two."""
    one, scaled = BySubspace(1.0), BySubspace(limit)
    assert scaled.followed == one.followed._replace(small=limit * one.followed.small, large=limit * one.followed.large)
    torch.manual_seed(21)
    matrix = torch.randn(80, 60) / 8
    for _ in range(4):
        matrix += 0.002 * torch.randn(80, 60)
        ours, theirs = matrix.clone(), limit * matrix
        one.project_(ours)
        scaled.project_(theirs)
        torch.testing.assert_close(theirs, limit * ours, rtol=1e-6, atol=limit * 1e-6)
        assert one.computed == scaled.computed
        assert one.reference.basis.shape == scaled.reference.basis.shape
        assert one.reference.moved.shape == scaled.reference.moved.shape


def test_what_is_nearly_orthogonal_is_made_so():
    """Of 400 columns the rest of the Gram matrix is above the rounding, 2e-5, and far below a wrong angle."""
    torch.manual_seed(22)
    matrix = torch.linalg.qr(torch.randn(400, 400, dtype=torch.float64))[0] * (1 + 2.5e-6)
    identity = torch.eye(400, dtype=torch.float64)
    assert 9e-5 < (matrix.t() @ matrix - identity).norm() < 1.1e-4
    ToOrthogonal().project_(matrix)
    assert (matrix.t() @ matrix - identity).norm() < 2e-5
