"""Updates made to defeat a projection by one who knows all that it knows."""

import math
from itertools import islice

import pytest
import torch

from elman import config
from elman.learning.constraint import ConstrainedCore
from elman.learning.projections import spectral
from elman.learning.projections.projector import ByEigh, BySVD, ByTruncation, ToOrthogonal
from elman.learning.projections.subspace import BySubspace
from elman.network.cores.core import build_core
from support.pairwise import every_value

SIZE = 64


def noise(size=0.04):
    """A step of low rank, and of full rank."""
    return (torch.randn(SIZE, 3) @ torch.randn(3, SIZE) + torch.randn(SIZE, SIZE)) / SIZE * size


def outside(columns):
    """A unit vector orthogonal to columns."""
    basis, v = torch.linalg.qr(columns)[0], torch.randn(SIZE)
    for _ in range(2):
        v = v - basis @ (basis.t() @ v)
    return v / v.norm()


def unit():
    v = torch.randn(SIZE)
    return v / v.norm()


def watched(projector):
    """What it tracks, and the fixed directions in which it looks at a step and guesses a norm."""
    known = projector.reference
    sketches = (spectral.sketch(SIZE, count, torch.ones(1)) for count in (2, 8, 9))
    return torch.cat([known.basis, known.moved, *sketches], dim=1)[:, : SIZE - 4]


def wander(matrix, projector):
    while True:
        yield noise()


def spikes(matrix, projector):
    """Now and then a new direction that is orthogonal to all that is watched."""
    while True:
        yield 1.5 * torch.outer(unit(), outside(watched(projector)))
        for _ in range(10):
            yield noise()


def creep(matrix, projector):
    """Steps too small to be seen, a hundred in one direction outside what is watched when they begin."""
    while True:
        step = 0.02 * torch.outer(unit(), outside(watched(projector)))
        yield from (step for _ in range(100))


def climb(matrix, projector):
    """Outwards along the largest singular vectors, as a gradient would."""
    while True:
        u, _, vh = torch.linalg.svd(matrix)
        yield 0.1 * u[:, :5] @ vh[:5] + noise(0.01)


def turn(matrix, projector):
    """All vectors turn into each other, those at the limit into those that are not tracked."""
    while True:
        u, values, vh = torch.linalg.svd(matrix)
        yield (u * values) @ (0.2 * torch.roll(vh, SIZE // 2, dims=0) - 0.02 * vh) + noise(0.02)


def huge(matrix, projector):
    """Steps of any size: what an unclipped gradient does."""
    while True:
        yield 10 ** (6 * torch.rand(())) * torch.outer(unit(), unit())
        yield noise()
        yield noise()


ADVERSARIES = (wander, spikes, creep, climb, turn, huge)


@pytest.mark.slow
@every_value(delta=[0.2, 0.8, 1.4], adversary=ADVERSARIES)
def test_thousands_of_steps_never_leave_the_set(adversary, delta):
    """sigma_1 <= 2 - delta + 1e-4 after each of 5,400 steps in all at n = 64, from an orthogonal matrix."""
    torch.manual_seed(5)
    matrix = torch.linalg.qr(torch.randn(SIZE, SIZE))[0].contiguous()
    projector = BySubspace(2 - delta)
    projector.project_(matrix)
    visited = []
    for step in islice(adversary(matrix, projector), 300):
        matrix += step
        projector.project_(matrix)
        visited.append(matrix.clone())
    assert torch.linalg.svdvals(torch.stack(visited)).max() <= 2 - delta + 1e-4


PROJECTORS = {
    "svd": BySVD,
    "eigh": ByEigh,
    "subspace": BySubspace,
    "truncated": lambda limit: ByTruncation(limit, limit),
    "truncated, spectral": lambda limit: ByTruncation(limit, limit, "spectral"),
}


@pytest.mark.parametrize("name", PROJECTORS)
@pytest.mark.parametrize("size", [1e2, 1e4, 1e8, 1e20, 1e30, 1e37])
def test_a_value_that_hides_all_others_leaves_none_of_them_outside(name, size):
    torch.manual_seed(6)
    matrix = 1.7 * torch.linalg.qr(torch.randn(SIZE, SIZE))[0]
    projector = PROJECTORS[name](1.8)
    projector.project_(matrix)
    for _ in range(3):
        matrix += size * torch.outer(unit(), unit()) + noise(1.0)
        projector.project_(matrix)
        assert torch.linalg.matrix_norm(matrix.double(), 2) <= 1.8 + 1e-4


@pytest.mark.parametrize("method", ["svd", "eigh", "subspace", "truncated"])
@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_what_is_not_finite_is_left_to_the_trainer(method, value):
    core = build_core(config.Stack(sizes=(SIZE,), cell=config.GRU()), 3, locked=True)
    core.initialise(config.Initialisation())
    constrained = ConstrainedCore(core, config.Spectral(method=method))
    constrained.project()
    with torch.no_grad():
        core.layers[0].weight_hh[-1, 3] = value
    constrained.project()
    assert not core.layers[0].weight_hh.isfinite().all()


@pytest.mark.parametrize("shape", [(6, 6), (9, 4)])
def test_orthogonal_weights_leave_an_infinity_to_be_reported(shape):
    """A decomposition of it is finite with some libraries, and training would go on with other weights."""
    torch.manual_seed(3)
    matrix = torch.randn(shape)
    matrix[0, 0] = torch.inf
    before = matrix.clone()
    ToOrthogonal().project_(matrix)
    assert torch.equal(matrix, before)
