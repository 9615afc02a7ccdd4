"""Tasks of binary vectors, by brute force: every target is found again from the inputs of its column alone."""

import numpy as np
import pytest
import torch

from elman.data.classic import TASKS
from elman.data.classic.bits import associative_recall, copy, priority_sort, repeat_copy

COLUMNS = 12


def columns(sample):
    """Inputs, targets and mask of each column, as NumPy."""
    batch = sample.batch
    assert sample.allowed is None
    for column in range(batch.inputs.shape[1]):
        yield batch.inputs[:, column].numpy(), batch.targets[:, column].numpy(), batch.mask[:, column].numpy()


def check_due(inputs, targets, due, wanted):
    """The last steps are due, nothing is read there, and nothing else has a target."""
    assert due.tolist() == [False] * (len(due) - len(wanted)) + [True] * len(wanted)
    assert not inputs[due].any()
    assert not targets[~due].any()
    np.testing.assert_array_equal(targets[due], wanted)


def marks(channel):
    """The steps that a channel marks, by a 1 among zeros."""
    assert {*np.unique(channel)} == {0, 1}
    return channel.nonzero()[0].tolist()


@pytest.mark.parametrize("length", [1, 7])
def test_copy(length):
    for inputs, targets, due in columns(copy(np.random.default_rng(0), COLUMNS, length)):
        assert marks(inputs[:, 8]) == [length]
        assert not inputs[length, :8].any()
        check_due(inputs, targets, due, inputs[:length, :8])


@pytest.mark.parametrize(("length", "repetitions"), [(1, 1), (3, 4), (2, 10)])
def test_repeat_copy(length, repetitions):
    for inputs, targets, due in columns(repeat_copy(np.random.default_rng(0), COLUMNS, length, repetitions)):
        assert marks(inputs[:, 8]) == [length]
        assert inputs[:, 9].nonzero()[0].tolist() == [length]
        shown = [[*row, 0] for row in inputs[:length, :8]]
        check_due(inputs, targets, due, [*shown * repetitions, [0] * 8 + [1]])


def test_the_number_of_repetitions_has_mean_0_and_variance_1_from_1_to_10():
    rng = np.random.default_rng(0)
    numbers = [repeat_copy(rng, 1, 1, number).batch.inputs[1, 0, 9].item() for number in range(1, 11)]
    assert np.mean(numbers) == pytest.approx(0, abs=1e-6)
    assert np.var(numbers) == pytest.approx(1, rel=1e-5)
    assert numbers == sorted(numbers)


@pytest.mark.parametrize("items", [2, 5])
def test_associative_recall(items):
    asked = set()
    for inputs, targets, due in columns(associative_recall(np.random.default_rng(0), 60, items)):
        assert marks(inputs[:, 6]) == [4 * item for item in range(items)]
        assert marks(inputs[:, 7]) == [4 * items, 4 * items + 4]
        assert not inputs[inputs[:, 6:].any(1), :6].any()
        vectors = [inputs[4 * item + 1 : 4 * item + 4, :6].tolist() for item in range(items)]
        question = inputs[4 * items + 1 : 4 * items + 4, :6].tolist()
        place = vectors[:-1].index(question)
        asked.add(place)
        check_due(inputs, targets, due, vectors[place + 1])
    assert asked == set(range(items - 1))


@pytest.mark.parametrize(("length", "due_steps"), [(1, 1), (5, 4), (20, 16)])
def test_priority_sort(length, due_steps):
    for inputs, targets, due in columns(priority_sort(np.random.default_rng(0), COLUMNS, length)):
        assert marks(inputs[:, 9]) == [length]
        assert (np.abs(inputs[:length, 8]) <= 1).all()
        best = sorted(range(length), key=lambda step: -inputs[step, 8])[:due_steps]
        check_due(inputs, targets, due, inputs[best, :8])
    if length > 1:
        assert inputs[:length, 8].min() < 0 < inputs[:length, 8].max()


LONGEST = {"copy": 13, "repeat-copy": 6 + 1 + 36 + 1, "associative-recall": 4 * 6 + 5 + 3, "priority-sort": 6 + 1 + 5}


@pytest.mark.parametrize("name", LONGEST)
def test_lengths_up_to_the_span_are_drawn_and_the_span_itself_is_measured(name):
    task, rng = TASKS[name], np.random.default_rng(0)
    steps = {len(task.draw(rng, 2, 6).batch.inputs) for _ in range(300)}
    assert max(steps) == LONGEST[name]
    assert len(steps) == {"copy": 6, "associative-recall": 5, "priority-sort": 1}.get(name, len(steps))
    assert all(len(task.measured(rng, 2, 6).batch.inputs) == LONGEST[name] for _ in range(5))


@pytest.mark.parametrize("name", LONGEST)
def test_zeros_and_ones_in_equal_parts(name):
    """The error of guessing that the listing shows; the mark of the end of `repeat-copy` is a ninth output."""
    task = TASKS[name]
    batch = task.measured(np.random.default_rng(0), 400, 9).batch
    ones = batch.targets[batch.mask].mean().item()
    assert ones == pytest.approx(0.5 if name != "repeat-copy" else 0.5 * 8 / 9, abs=0.015)
    assert torch.equal(batch.targets, batch.targets.round())
