"""Tasks that separate linear recurrences from others: tracking a state, choosing what is stored, and finding it again.

A diagonal linear recurrence whose factors lie between 0 and 1 cannot compute the parity of sequences of unbounded
length (Sarrof, Veitsman & Hahn 2024; Grazzi et al. 2024), and with fixed precision no diagonal linear recurrence and no
transformer can solve the word problem of S5, the permutations of five things (Merrill, Petty & Sabharwal 2024).
"""

import functools
from itertools import permutations

import numpy as np

from elman.data.classic.task import Sample, determined, task

THINGS = 5
PERMUTATIONS = np.array(list(permutations(range(THINGS))))  # the elements of S5, [120, 5]: row p maps thing i to p[i]
SWAPS = np.flatnonzero((np.arange(THINGS) != PERMUTATIONS).sum(1) == 2)
"""The numbers of the ten that exchange two things; products of them are all of S5."""

ITEMS, LETTERS = 5, 4
KEYS, VALUES = 64, 8


@task(
    "parity",
    "at each of as many bits as the span, whether the ones so far are odd",
    "Merrill, Petty & Sabharwal 2024; Sarrof, Veitsman & Hahn 2024",
    inputs=2,
    chance="0.5",
)
def parity(rng: np.random.Generator, columns: int, span: int) -> Sample:
    inputs = rng.integers(0, 2, (span, columns))
    return determined(inputs, inputs.cumsum(0) % 2, 2)


@functools.cache
def composed() -> np.ndarray:
    """The number of q after p, by the numbers of p and q, [120, 120]: thing i goes to q[p[i]]."""
    places = THINGS ** np.arange(THINGS)
    numbers = {int(code): index for index, code in enumerate(PERMUTATIONS @ places)}
    products = np.stack([q[PERMUTATIONS] for q in PERMUTATIONS], axis=1)
    return np.vectorize(numbers.__getitem__)(products @ places)


@task(
    "s5",
    "at each of as many permutations of five things as the span, the product so far",
    "Merrill, Petty & Sabharwal 2024",
    inputs=len(PERMUTATIONS),
    chance=f"{1 - 1 / len(PERMUTATIONS):.3g}",
    span=4,
)
def word_problem(rng: np.random.Generator, columns: int, span: int) -> Sample:
    return _products(rng.integers(0, len(PERMUTATIONS), (span, columns)))


@task(
    "s5-swaps",
    "the same of permutations that exchange two things",
    "Grazzi et al. 2024",
    inputs=len(PERMUTATIONS),
    chance=f"{1 - 1 / 60:.3g}, knowing how many there were",
    span=4,
)
def swaps(rng: np.random.Generator, columns: int, span: int) -> Sample:
    """A step of the state is one reflection."""
    return _products(rng.choice(SWAPS, (span, columns)))


def _products(inputs: np.ndarray) -> Sample:
    table = composed()
    targets = inputs.copy()
    for step in range(1, len(inputs)):
        targets[step] = table[targets[step - 1], inputs[step]]
    return determined(inputs, targets, len(table))


@task(
    "selective-copying",
    f"{ITEMS} letters of {LETTERS} among as many blanks as the span, at random places, repeated in order",
    "Jing et al. 2019; Gu & Dao 2023",
    inputs=LETTERS + 2,
    chance=f"{1 - 1 / LETTERS:g}",
)
def selective_copying(rng: np.random.Generator, columns: int, span: int) -> Sample:
    """The letters are due at signs. Symbols: the letters, the blank (`LETTERS`), the sign (`LETTERS` + 1)."""
    blank, sign = LETTERS, LETTERS + 1
    shown = rng.integers(0, LETTERS, (ITEMS, columns))
    places = np.sort(rng.random((span + ITEMS, columns)).argsort(0)[:ITEMS], axis=0)
    inputs = np.full((span + 2 * ITEMS, columns), blank)
    inputs[places, np.arange(columns)], inputs[-ITEMS:] = shown, sign
    targets = np.full_like(inputs, blank)
    targets[-ITEMS:] = shown
    return determined(inputs, targets, LETTERS + 2, slice(-ITEMS, None))


@task(
    "key-recall",
    f"the value, one of {VALUES}, of each of as many keys as the span, asked in another order",
    "Arora et al. 2023 (multi-query associative recall)",
    inputs=KEYS + VALUES,
    chance=f"{1 - 1 / VALUES:g}",
    span=4,
    most=KEYS,
)
def key_recall(rng: np.random.Generator, columns: int, span: int) -> Sample:
    """Pairs of a key and a value, then all keys. Symbols: the keys, of which none occurs twice, then the values."""
    keys = rng.random((KEYS, columns)).argsort(0)[:span]
    values = rng.integers(0, VALUES, (span, columns))
    order = rng.random((span, columns)).argsort(0)
    inputs = np.empty((3 * span, columns), dtype=np.int64)
    inputs[: 2 * span : 2], inputs[1 : 2 * span : 2] = keys, KEYS + values
    inputs[2 * span :] = np.take_along_axis(keys, order, axis=0)
    targets = np.zeros_like(inputs)
    targets[2 * span :] = KEYS + np.take_along_axis(values, order, axis=0)
    return determined(inputs, targets, KEYS + VALUES, slice(2 * span, None))
