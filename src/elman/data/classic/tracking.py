"""Tasks that separate linear recurrences from others: tracking a state, choosing what is stored, and finding it again.

A diagonal linear recurrence whose factors lie between 0 and 1 cannot compute the parity of sequences of unbounded
length (Sarrof, Veitsman & Hahn 2024; Grazzi et al. 2024), and with fixed precision no diagonal linear recurrence and no
transformer can solve the word problem of S5, the permutations of five things (Merrill, Petty & Sabharwal 2024).
"""

import functools
from itertools import permutations

import numpy as np

from elman.data.classic.task import ClassicTask, Sample, determined

THINGS = 5
PERMUTATIONS = np.array(list(permutations(range(THINGS))))
"""The elements of S5, [120, 5]: row p maps thing i to p[i]."""

SWAPS = np.flatnonzero((np.arange(THINGS) != PERMUTATIONS).sum(1) == 2)
"""The numbers of the ten that exchange two things; products of them are all of S5."""

ITEMS, LETTERS = 5, 4
KEYS, VALUES = 64, 8


def parity(rng: np.random.Generator, columns: int, span: int) -> Sample:
    """As many bits as the span, and at each whether the ones so far are odd."""
    inputs = rng.integers(0, 2, (span, columns))
    return determined(inputs, inputs.cumsum(0) % 2, np.ones(inputs.shape, dtype=bool), 2)


@functools.cache
def composed() -> np.ndarray:
    """The number of q after p, by the numbers of p and q, [120, 120]: thing i goes to q[p[i]]."""
    places = THINGS ** np.arange(THINGS)
    numbers = {int(code): index for index, code in enumerate(PERMUTATIONS @ places)}
    products = np.stack([q[PERMUTATIONS] for q in PERMUTATIONS], axis=1)
    return np.vectorize(numbers.__getitem__)(products @ places)


def word_problem(rng: np.random.Generator, columns: int, span: int) -> Sample:
    """As many elements of S5 as the span, and at each the product so far, each applied after those before."""
    return _products(rng.integers(0, len(PERMUTATIONS), (span, columns)))


def swaps(rng: np.random.Generator, columns: int, span: int) -> Sample:
    """The same of elements that exchange two things, so that a step of the state is one reflection."""
    return _products(rng.choice(SWAPS, (span, columns)))


def _products(inputs: np.ndarray) -> Sample:
    table = composed()
    targets = inputs.copy()
    for step in range(1, len(inputs)):
        targets[step] = table[targets[step - 1], inputs[step]]
    return determined(inputs, targets, np.ones(inputs.shape, dtype=bool), len(table))


def selective_copying(rng: np.random.Generator, columns: int, span: int) -> Sample:
    """`ITEMS` letters at random places among as many blanks as the span; then at signs the letters are due, in order.

    Symbols: the letters, the blank (`LETTERS`), the sign (`LETTERS` + 1).
    """
    blank, sign = LETTERS, LETTERS + 1
    shown = rng.integers(0, LETTERS, (ITEMS, columns))
    places = np.sort(rng.random((span + ITEMS, columns)).argsort(0)[:ITEMS], axis=0)
    inputs = np.full((span + 2 * ITEMS, columns), blank)
    inputs[places, np.arange(columns)], inputs[-ITEMS:] = shown, sign
    targets = np.full_like(inputs, blank)
    targets[-ITEMS:] = shown
    judged = np.zeros(inputs.shape, dtype=bool)
    judged[-ITEMS:] = True
    return determined(inputs, targets, judged, LETTERS + 2)


def key_recall(rng: np.random.Generator, columns: int, span: int) -> Sample:
    """As many pairs of a key and a value as the span; then all keys in another order, and at each its value is due.

    Symbols: the keys, of which none occurs twice, then the values.
    """
    keys = rng.random((KEYS, columns)).argsort(0)[:span]
    values = rng.integers(0, VALUES, (span, columns))
    order = rng.random((span, columns)).argsort(0)
    inputs = np.empty((3 * span, columns), dtype=np.int64)
    inputs[: 2 * span : 2], inputs[1 : 2 * span : 2] = keys, KEYS + values
    inputs[2 * span :] = np.take_along_axis(keys, order, axis=0)
    targets = np.zeros_like(inputs)
    targets[2 * span :] = KEYS + np.take_along_axis(values, order, axis=0)
    judged = np.zeros(inputs.shape, dtype=bool)
    judged[2 * span :] = True
    return determined(inputs, targets, judged, KEYS + VALUES)


PARITY = ClassicTask(
    name="parity",
    sentence="at each of as many bits as the span, whether the ones so far are odd",
    source="Merrill, Petty & Sabharwal 2024; Sarrof, Veitsman & Hahn 2024",
    inputs=2,
    draw=parity,
    chance="0.5",
)
WORD_PROBLEM = ClassicTask(
    name="s5",
    sentence="at each of as many permutations of five things as the span, the product so far",
    source="Merrill, Petty & Sabharwal 2024",
    inputs=len(PERMUTATIONS),
    draw=word_problem,
    chance=f"{1 - 1 / len(PERMUTATIONS):.3g}",
    span=4,
)
SWAPPING = ClassicTask(
    name="s5-swaps",
    sentence="the same of permutations that exchange two things",
    source="Grazzi et al. 2024",
    inputs=len(PERMUTATIONS),
    draw=swaps,
    chance=f"{1 - 1 / 60:.3g}, knowing how many there were",
    span=4,
)
SELECTIVE_COPYING = ClassicTask(
    name="selective-copying",
    sentence=f"{ITEMS} letters of {LETTERS} among as many blanks as the span, at random places, repeated in order",
    source="Jing et al. 2019; Gu & Dao 2023",
    inputs=LETTERS + 2,
    draw=selective_copying,
    chance=f"{1 - 1 / LETTERS:g}",
)
KEY_RECALL = ClassicTask(
    name="key-recall",
    sentence=f"the value, one of {VALUES}, of each of as many keys as the span, asked in another order",
    source="Arora et al. 2023 (multi-query associative recall)",
    inputs=KEYS + VALUES,
    draw=key_recall,
    chance=f"{1 - 1 / VALUES:g}",
    span=4,
    most=KEYS,
)
