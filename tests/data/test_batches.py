"""Batches, whole and in parts."""

import numpy as np
import torch

from elman.data.batches import Batch, stack_sequences

FIRST = 9


def test_stacked_sequences_are_independent_and_padded():
    batch, lengths = stack_sequences([np.array([4, 5, 6]), np.array([7])], FIRST)
    assert lengths == [3, 1]
    assert batch.inputs.t().tolist() == [[FIRST, 4, 5], [FIRST] * 3]
    assert batch.targets.t()[0].tolist() == [4, 5, 6]
    assert batch.targets[0, 1] == 7
    assert batch.mask.t().tolist() == [[True] * 3, [True, False, False]]


def test_columns_of_a_batch():
    symbols = torch.arange(6).view(2, 3)
    batch = Batch(symbols, symbols + 1, symbols > 2, symbols[0] > 0)
    part = batch.columns(slice(1, 3))
    assert part.inputs.tolist() == [[1, 2], [4, 5]]
    assert part.targets.tolist() == [[2, 3], [5, 6]]
    assert part.mask.shape == (2, 2)
    assert part.fresh.shape == (2,)
    assert Batch(batch.inputs, batch.targets).columns(slice(0, 1)).mask is None
