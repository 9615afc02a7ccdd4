"""Batches, whole and in parts."""

import numpy as np
import pytest
import torch

from elman.data.batches import Batch, Source, Whole, pairs_of, stack_sequences

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


def test_pairs_are_neighbouring_steps_that_both_count():
    mask = torch.tensor([[1, 1, 0], [1, 0, 1], [0, 1, 1], [1, 1, 1]], dtype=torch.bool)
    assert pairs_of(mask).tolist() == [[True, False, False], [False, False, True], [False, True, True]]
    assert pairs_of(mask[:1]).shape == (0, 3)


@pytest.mark.parametrize("frames", [False, True])
def test_the_whole_of_which_columns_are_a_part(frames):
    """Its positions and pairs count, with a mask and without one; a part has its share of the columns."""
    symbols = torch.zeros(4, 3, 5) if frames else torch.zeros(4, 3, dtype=torch.int64)
    mask = torch.tensor([[1, 1, 0], [1, 0, 1], [0, 1, 1], [1, 1, 1]], dtype=torch.bool)
    whole = Whole.of(Batch(symbols, symbols))
    assert (whole.counted.item(), whole.columns, whole.pairs.item()) == (12, 3, 9)
    masked = Whole.of(Batch(symbols, symbols, mask))
    assert (masked.counted.item(), masked.columns, masked.pairs.item()) == (9, 3, 4)
    assert Batch(symbols, symbols).num_columns == 3
    assert Batch(symbols, symbols).share == 1.0
    assert Batch(symbols[:, :2], symbols[:, :2], whole=whole).share == 2 / 3


def test_a_batch_is_moved_with_all_its_parts():
    symbols, mask = torch.zeros(4, 3, dtype=torch.int64), torch.ones(4, 3, dtype=torch.bool)
    batch = Batch(symbols, symbols, mask, mask[0], Source(symbols, mask), whole=Whole.of(Batch(symbols, symbols)))
    moved = batch.to(torch.device("meta"))
    assert all(part.is_meta for part in (*moved[:4], *moved.source, moved.whole.counted, moved.whole.pairs))
    assert moved.whole.columns == 3
    assert (moved.trees, Batch(symbols, symbols).to(torch.device("meta")).mask) == (None, None)
    part = batch.columns(slice(1, 3))
    assert part.source.symbols.shape == part.source.mask.shape == (4, 2)
