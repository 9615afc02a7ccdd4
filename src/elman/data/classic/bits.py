"""Tasks of binary vectors that must be stored and found again (Graves, Wayne & Danihelka 2014, section 4).

Every step reads some bits, and beside them channels for marks and numbers; vectors are due after the last of the input,
while nothing is read. All columns of a sample have one length, so that no step is padding.
"""

from functools import partial

import numpy as np
import torch

from elman.data.batches import Batch
from elman.data.classic.task import Sample
from elman.data.classic.task import task as any_task

BITS = 8  # bits of a vector; the vectors of `associative-recall` have 6
ITEM, ITEM_BITS = 3, 6  # of `associative-recall`: vectors of an item, and their bits
REPETITIONS = 10  # of `repeat-copy` in the paper, where the number is read with mean 0 and variance 1 over 1, ..., 10
SORTED = 0.8  # of `priority-sort`: the share of the vectors that is due, 16 of 20 in the paper
task = partial(any_task, kind="bits", chance="0.5", most=10_000)


def blank(read: int, due: int, columns: int, inputs: int, outputs: int) -> list[np.ndarray]:
    """Zeros: `read` steps of `inputs` channels, then `due` ones with `outputs` bits each; inputs and targets."""
    return [np.zeros((read + due, columns, size), dtype=np.float32) for size in (inputs, outputs)]


def sample(inputs: np.ndarray, targets: np.ndarray, due: int) -> Sample:
    """Inputs and targets, float32 [T, B, _], of which the last `due` steps have targets."""
    mask = torch.zeros(inputs.shape[:2], dtype=torch.bool)
    mask[len(mask) - due :] = True
    return Sample(Batch(torch.from_numpy(inputs), torch.from_numpy(targets), mask))


def bits(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.integers(0, 2, shape).astype(np.float32)


def some_length(rng: np.random.Generator, span: int, least: int = 1) -> int:
    """A length from `least` to `span`, all with equal chance."""
    return int(rng.integers(least, span + 1))


def copy(rng: np.random.Generator, columns: int, length: int) -> Sample:
    """`length` vectors and a mark; then the vectors are due, in order. Channels: the bits, the mark."""
    shown = bits(rng, length, columns, BITS)
    inputs, targets = blank(length + 1, length, columns, BITS + 1, BITS)
    inputs[:length, :, :BITS] = shown
    inputs[length, :, BITS] = 1
    targets[length + 1 :] = shown
    return sample(inputs, targets, length)


task(
    "copy",
    f"up to as many vectors of {BITS} bits as the span, in order after a mark",
    "Graves, Wayne & Danihelka 2014, section 4.1",
    inputs=BITS + 1,
    outputs=BITS,
    full=copy,
)(lambda rng, columns, span: copy(rng, columns, some_length(rng, span)))


def repeat_copy(rng: np.random.Generator, columns: int, length: int, repetitions: int) -> Sample:
    """As `copy`, but the vectors are due `repetitions` times, and then a mark of the end.

    Channels: the bits, the mark, and the number of repetitions at its step. Outputs: the bits, the mark of the end.
    """
    shown, mean, due = bits(rng, length, columns, BITS), (REPETITIONS + 1) / 2, repetitions * length + 1
    inputs, targets = blank(length + 1, due, columns, BITS + 2, BITS + 1)
    inputs[:length, :, :BITS] = shown
    inputs[length, :, BITS] = 1
    inputs[length, :, BITS + 1] = (repetitions - mean) / ((REPETITIONS**2 - 1) / 12) ** 0.5
    targets[length + 1 : -1, :, :BITS] = np.tile(shown, (repetitions, 1, 1))
    targets[-1, :, BITS] = 1
    return sample(inputs, targets, due)


task(
    "repeat-copy",
    "the same up to as many times as the span, and then a mark of the end",
    "Graves, Wayne & Danihelka 2014, section 4.2",
    inputs=BITS + 2,
    outputs=BITS + 1,
    full=lambda rng, columns, span: repeat_copy(rng, columns, span, span),
    chance="about 0.44",
    span=4,
    most=300,
)(lambda rng, columns, span: repeat_copy(rng, columns, some_length(rng, span), some_length(rng, span)))


def associative_recall(rng: np.random.Generator, columns: int, items: int) -> Sample:
    """`items` items of three vectors, each after a mark; then one again, between two marks, and its successor is due.

    The item that is asked for is any but the last. Channels: the bits, the mark of an item, the mark of the question.
    """
    shown = bits(rng, items, ITEM, columns, ITEM_BITS)
    asked, rows = rng.integers(0, items - 1, columns), np.arange(columns)
    question = items * (ITEM + 1)
    inputs, targets = blank(question + ITEM + 2, ITEM, columns, ITEM_BITS + 2, ITEM_BITS)
    for item in range(items):
        first = item * (ITEM + 1)
        inputs[first, :, ITEM_BITS] = 1
        inputs[first + 1 : first + 1 + ITEM, :, :ITEM_BITS] = shown[item]
    inputs[[question, question + ITEM + 1], :, ITEM_BITS + 1] = 1
    inputs[question + 1 : question + 1 + ITEM, :, :ITEM_BITS] = shown[asked, :, rows].swapaxes(0, 1)
    targets[-ITEM:] = shown[asked + 1, :, rows].swapaxes(0, 1)
    return sample(inputs, targets, ITEM)


task(
    "associative-recall",
    f"the item after the one asked for, each {ITEM} vectors of {ITEM_BITS} bits; the span is the most items",
    "Graves, Wayne & Danihelka 2014, section 4.3",
    inputs=ITEM_BITS + 2,
    outputs=ITEM_BITS,
    full=associative_recall,
    span=3,
    least=2,
)(lambda rng, columns, span: associative_recall(rng, columns, some_length(rng, span, 2)))


@task(
    "priority-sort",
    f"of as many vectors as the span the {100 * SORTED:g} % of highest priority, the highest first",
    "Graves, Wayne & Danihelka 2014, section 4.5",
    inputs=BITS + 2,
    outputs=BITS,
    span=5,
)
def priority_sort(rng: np.random.Generator, columns: int, length: int) -> Sample:
    """Each vector has a priority U(-1, 1), and a mark ends them. Channels: the bits, the priority, the mark."""
    shown, priorities = bits(rng, length, columns, BITS), rng.uniform(-1, 1, (length, columns)).astype(np.float32)
    due = max(1, round(SORTED * length))
    inputs, targets = blank(length + 1, due, columns, BITS + 2, BITS)
    inputs[:length, :, :BITS], inputs[:length, :, BITS] = shown, priorities
    inputs[length, :, BITS + 1] = 1
    order = np.argsort(-priorities, axis=0, kind="stable")[:due]
    targets[length + 1 :] = np.take_along_axis(shown, order[..., None], axis=0)
    return sample(inputs, targets, due)
