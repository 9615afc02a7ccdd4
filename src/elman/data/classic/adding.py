"""The adding problem (Hochreiter & Schmidhuber 1997, experiment 4, as in Le, Jaitly & Hinton 2015)."""

import numpy as np
import torch

from elman.data.classic.task import ClassicTask, Sample
from elman.data.windows import Batch


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
