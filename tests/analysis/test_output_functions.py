"""Theorems 4.4 and 4.5 of Kanai's thesis, in numbers."""

import pytest
import torch

from elman.analysis.output_functions import (
    beside_plane,
    distance_from_softmax,
    line,
    log_outputs,
    on_simplex,
    rank_of_line,
    require_known,
)
from elman.errors import UserError
from elman.network.output.activation import ACTIVATIONS
from support.pairwise import every_value

W = torch.tensor([1.0, 0.2, -0.8])


@every_value(size=range(2, 9), shift=[-2.0, 0.0, 2.0])
def test_sigsoftmax_reaches_rank_m_from_one_line_and_softmax_two(size, shift):
    assert rank_of_line("sigsoftmax", size, shift) == size
    assert rank_of_line("softmax", size, shift) == 2


def test_sigsoftmax_tends_to_softmax_like_exp_minus_b():
    near = [distance_from_softmax("sigsoftmax", shift, W) for shift in (10.0, 12.0, 14.0)]
    assert near[0] / near[1] == pytest.approx(torch.e**2, rel=0.05)
    assert near[1] / near[2] == pytest.approx(torch.e**2, rel=0.05)
    assert distance_from_softmax("sigsoftmax", 25.0, W) < 1e-7
    assert distance_from_softmax("softmax", 3.0, W) < 1e-13


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_only_log_softmax_stays_in_its_plane(activation):
    distance = beside_plane(log_outputs(activation, line(W, 1.0)), W)[:, 1].abs().max()
    assert (distance < 1e-12) == (activation == "softmax")


def test_corners_and_centre_of_the_simplex():
    sure = torch.eye(3, dtype=torch.float64).log()
    corners = on_simplex(sure)
    assert corners[:, 0].tolist() == [0.0, 1.0, 0.5]
    centre = on_simplex(torch.full((1, 3), 1 / 3, dtype=torch.float64).log())
    assert centre.sub(corners.mean(0)).abs().max() < 1e-12


def test_unknown_activation_is_one_line():
    with pytest.raises(UserError, match="--activation tanh: unknown; choose among softmax, "):
        require_known(["tanh"])
