"""Tasks of memory: adding, copying, delayed recall, temporal XOR, and sequences generated from a plan (Jordan 1986)."""

from functools import partial

import numpy as np
import torch

from elman.data.batches import Batch
from elman.data.classic.task import EVERYWHERE, Sample, determined, task

ITEMS, LETTERS = 5, 4
"""Of `copying`, which a small network learns in a minute; `copying-10`, as in the paper, has 10 items of 8 letters."""

PLANS = 8

PLACES, SPEEDS = 12, (-3, -2, -1, 1, 2, 3)  # of `movement`: places on a ring, and how many of them a step passes
_GUESS = f"{1 - 1 / LETTERS:g}"


@task(
    "adding",
    "the sum of the two values that were marked within the span",
    "Hochreiter & Schmidhuber 1997, experiment 4; Le et al. 2015",
    inputs=2,
    chance="0.167, always answering 1",
    kind="values",
    span=16,
    least=2,
)
def adding(rng: np.random.Generator, columns: int, span: int) -> Sample:
    """Values U(0, 1) over `span` >= 2 steps, two of them marked by a 1 beside them; at the end their sum is due.

    One mark lies in the first half, one in the second. Always answering 1 has a mean square error of 1/6 = 0.167.
    """
    rows = np.arange(columns)
    inputs = np.zeros((span, columns, 2), dtype=np.float32)
    inputs[..., 0] = rng.random((span, columns))
    first, second = rng.integers(0, span // 2, columns), rng.integers(span // 2, span, columns)
    inputs[first, rows, 1] = inputs[second, rows, 1] = 1
    targets = np.zeros((span, columns, 1), dtype=np.float32)
    targets[-1, :, 0] = inputs[first, rows, 0] + inputs[second, rows, 0]
    mask = torch.zeros(span, columns, dtype=torch.bool)
    mask[-1] = True
    return Sample(Batch(torch.from_numpy(inputs), torch.from_numpy(targets), mask))


@task(
    "copying",
    f"{ITEMS} letters of {LETTERS}, repeated after a span of blanks",
    "Hochreiter & Schmidhuber 1997; Arjovsky et al. 2016",
    inputs=LETTERS + 2,
    chance=_GUESS,
)
def copying(rng: np.random.Generator, columns: int, span: int, items: int = ITEMS, letters: int = LETTERS) -> Sample:
    """`items` letters, `span` blanks, a sign, and the letters are due, in order (Arjovsky, Shah & Bengio 2016).

    Symbols: the letters, the blank (`letters`), the sign (`letters` + 1). Everywhere else the blank is due.
    """
    blank, sign = letters, letters + 1
    shown = rng.integers(0, letters, (items, columns))
    inputs = np.full((span + 2 * items, columns), blank)
    inputs[:items], inputs[items + span - 1] = shown, sign
    targets = np.full_like(inputs, blank)
    targets[items + span :] = shown
    return determined(inputs, targets, letters + 2, slice(items + span, None), EVERYWHERE)


task(
    "copying-10",
    "the same with ten letters of eight, as in the paper",
    "Hochreiter & Schmidhuber 1997; Arjovsky et al. 2016",
    inputs=10,
    chance="0.875",
)(partial(copying, items=10, letters=8))


@task(
    "recall",
    f"one letter of {LETTERS}, recalled at a sign after a span of random distractors",
    "Bengio, Simard & Frasconi 1994 (latching); Hochreiter & Schmidhuber 1997, experiment 2",
    inputs=2 * LETTERS + 1,
    chance=_GUESS,
)
def recall(rng: np.random.Generator, columns: int, span: int, letters: int = LETTERS) -> Sample:
    """Symbols: the letters, as many distractors, the sign."""
    shown = rng.integers(0, letters, columns)
    inputs = rng.integers(letters, 2 * letters, (span + 2, columns))
    inputs[0], inputs[-1] = shown, 2 * letters
    return determined(inputs, np.broadcast_to(shown, inputs.shape).copy(), 2 * letters + 1, slice(-1, None))


@task(
    "xor",
    "every third bit of a stream, the exclusive or of the two before; the span is the number of triples",
    "Elman 1990",
    inputs=2,
    chance="0.5",
)
def temporal_xor(rng: np.random.Generator, columns: int, span: int) -> Sample:
    """Trained at all 3 * `span` bits, where the next bit is due; the first two of three cannot be known."""
    bits = rng.integers(0, 2, (span + 1, 3, columns))
    bits[:, 2] = bits[:, 0] ^ bits[:, 1]
    stream = bits.reshape(-1, columns)[: 3 * span + 1]
    return determined(stream[:-1], stream[1:], 2, slice(1, None, 3), EVERYWHERE)


def plan_sequences(span: int, plans: int = PLANS, letters: int = LETTERS) -> np.ndarray:
    """The sequences of all plans, [span, plans]: random, but always the same for a span."""
    return np.random.default_rng(span).integers(0, letters, (span, plans))


@task(
    "generation",
    f"the sequence, as long as the span, of a plan that is the only input ({PLANS} plans, {LETTERS} letters)",
    "Jordan 1986",
    inputs=LETTERS + PLANS,
    chance=_GUESS,
)
def plans(rng: np.random.Generator, columns: int, span: int) -> Sample:
    """The plan is read at every step, so the place in it must be remembered. Symbols: the letters, then the plans."""
    chosen = rng.integers(0, PLANS, columns)
    inputs = np.broadcast_to(LETTERS + chosen, (span, columns)).copy()
    return determined(inputs, plan_sequences(span)[:, chosen], LETTERS + PLANS)


@task(
    "forced-generation",
    "the sequence of a plan that is read first, and after it each true letter",
    "Jordan 1986; Williams & Zipser 1989 (teacher forcing)",
    inputs=LETTERS + PLANS,
    chance=_GUESS,
)
def spoken(rng: np.random.Generator, columns: int, span: int) -> Sample:
    sample = plans(rng, columns, span)
    sample.batch.inputs[1:] = sample.batch.targets[:-1]
    return sample


@task(
    "movement",
    f"the places on a ring of {PLACES}, passed at a speed that is the only input; the span is the steps",
    "Jordan 1986",
    inputs=PLACES + len(SPEEDS),
    chance=f"{1 - 1 / PLACES:.2g}",
)
def movement(rng: np.random.Generator, columns: int, span: int) -> Sample:
    """From place 0: the speed is read at every step and the place after it is due.

    The next place follows from speed and place, so that the last output is all that must be known. Symbols: the places,
    then the speeds.
    """
    chosen = rng.integers(0, len(SPEEDS), columns)
    inputs = np.broadcast_to(PLACES + chosen, (span, columns)).copy()
    targets = np.arange(1, span + 1)[:, None] * np.array(SPEEDS)[chosen] % PLACES
    return determined(inputs, targets, PLACES + len(SPEEDS))
