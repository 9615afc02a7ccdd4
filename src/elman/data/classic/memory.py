"""Tasks of keeping symbols: copying, delayed recall, temporal XOR."""

from functools import partial

import numpy as np
import torch

from elman.data.classic.task import ClassicTask, Sample, determined
from elman.data.windows import Batch


# FOLDED data/classic/adding.py: The adding problem (Hochreiter & Schmidhuber 1997, experiment 4, as in Le, Jaitly & Hinton 2015).
def adding(rng: np.random.Generator, columns: int, span: int) -> Sample:
    """Values U(0, 1) over `span` >= 2 steps, two of them marked by a 1 beside them; at the end their sum is due.

    One mark lies in the first half, one in the second. Saying 1 always has a mean square error of 1/6 = 0.167.
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


ADDING = ClassicTask(
    "adding",
    "the sum of the two values that were marked within the span",
    "Hochreiter & Schmidhuber 1997, experiment 4; Le et al. 2015",
    "values",
    2,
    1,
    adding,
    0.01,
    "0.167, saying 1",
    16,
    least=2,
)


# TARGET
ITEMS, LETTERS = 5, 4
"""Of the copying task that a small network learns in a minute; the paper's, `copying-10`, has 10 items of 8 letters."""


def copying(rng: np.random.Generator, columns: int, span: int, items: int = ITEMS, letters: int = LETTERS) -> Sample:
    """`items` letters, `span` blanks, a sign, and the letters are due, in order (Arjovsky, Shah & Bengio 2016).

    Symbols: the letters, the blank (`letters`), the sign (`letters` + 1). Everywhere else the blank is due.
    """
    blank, sign = letters, letters + 1
    told = rng.integers(0, letters, (items, columns))
    inputs = np.full((span + 2 * items, columns), blank)
    inputs[:items], inputs[items + span - 1] = told, sign
    targets = np.full_like(inputs, blank)
    targets[items + span :] = told
    sample = determined(inputs, targets, np.ones(inputs.shape, dtype=bool), letters + 2)
    assert sample.allowed is not None
    sample.allowed[: items + span] = False
    return sample


def recall(rng: np.random.Generator, columns: int, span: int, letters: int = LETTERS) -> Sample:
    """One letter, `span` random distractors, a sign, and the letter is due.

    Symbols: the letters, as many distractors, the sign.
    """
    told = rng.integers(0, letters, columns)
    inputs = rng.integers(letters, 2 * letters, (span + 2, columns))
    inputs[0], inputs[-1] = told, 2 * letters
    targets = np.broadcast_to(told, inputs.shape).copy()
    judged = np.zeros(inputs.shape, dtype=bool)
    judged[-1] = True
    return determined(inputs, targets, judged, 2 * letters + 1)


def temporal_xor(rng: np.random.Generator, columns: int, span: int) -> Sample:
    """A stream of bits, every third of them the exclusive or of the two before; learnt everywhere, judged there.

    The stream has 3 * `span` bits and the next bit is due at each; the first two of three cannot be known.
    """
    bits = rng.integers(0, 2, (span + 1, 3, columns))
    bits[:, 2] = bits[:, 0] ^ bits[:, 1]
    stream = bits.reshape(-1, columns)[: 3 * span + 1]
    sample = determined(stream[:-1], stream[1:], np.ones((3 * span, columns), dtype=bool), 2)
    assert sample.allowed is not None
    sample.allowed[np.arange(3 * span) % 3 != 1] = False
    return sample


COPYING = ClassicTask(
    "copying",
    f"{ITEMS} letters of {LETTERS}, repeated after a span of blanks",
    "Hochreiter & Schmidhuber 1997; Arjovsky et al. 2016",
    "symbols",
    LETTERS + 2,
    LETTERS + 2,
    copying,
    0.01,
    f"{1 - 1 / LETTERS:g}",
    8,
)
LONG_COPYING = COPYING._replace(
    name="copying-10",
    sentence="the same with ten letters of eight, as in the paper",
    inputs=10,
    outputs=10,
    draw=partial(copying, items=10, letters=8),
    chance="0.875",
)
RECALL = ClassicTask(
    "recall",
    f"one letter of {LETTERS}, recalled at a sign after a span of random distractors",
    "Bengio, Simard & Frasconi 1994 (latching); Hochreiter & Schmidhuber 1997, experiment 2",
    "symbols",
    2 * LETTERS + 1,
    2 * LETTERS + 1,
    recall,
    0.01,
    f"{1 - 1 / LETTERS:g}",
    8,
)
XOR = ClassicTask(
    "xor",
    "every third bit of a stream, the exclusive or of the two before; the span is the number of triples",
    "Elman 1990",
    "symbols",
    2,
    2,
    temporal_xor,
    0.01,
    "0.5",
    8,
)
