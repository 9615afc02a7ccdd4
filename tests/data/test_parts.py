"""Parts of an evaluation: together they are the whole, once."""

import numpy as np
import pytest
import torch

from elman.data.windows import WHOLE, ColumnsOf, EvaluationWindows, Part

TOKENS = np.arange(1, 40)


@pytest.mark.parametrize("count", [1, 3, 4, 50])
def test_every_item_and_column_is_in_one_part(count):
    parts = [Part(index, count) for index in range(count)]
    items = list(range(17))
    assert sorted(item for part in parts for item in part.of(items)) == items
    assert [item for part in parts for item in items[part.columns(len(items))]] == items


def test_the_whole_is_the_items_in_their_order():
    assert list(WHOLE.of("abc")) == list("abc")
    assert WHOLE.columns(3) == slice(0, 3)


@pytest.mark.parametrize("count", [1, 3, 9])
def test_the_windows_of_all_parts_are_those_of_the_whole(count):
    whole = EvaluationWindows(TOKENS, 0, streams=5, length=4)
    parts = [ColumnsOf(whole, Part(index, count)) for index in range(count)]
    assert sum(part.streams for part in parts) == whole.streams
    read = [list(part) for part in parts if part.streams]
    assert all(list(part) == [] and part.num_windows == 0 for part in parts if not part.streams)
    for (batch, positions), *windows in zip(whole, *read, strict=True):
        for name in ("inputs", "targets", "mask"):
            assert torch.equal(torch.cat([getattr(one, name) for one, _ in windows], 1), getattr(batch, name))
        assert torch.equal(torch.cat([where for _, where in windows], 1), positions)
