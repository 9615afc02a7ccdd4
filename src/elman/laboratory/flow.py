"""How an error fades or grows on its way back in time (Bengio et al. 1994; Pascanu et al. 2013)."""

import torch

from elman.data.windows import Batch
from elman.learning.gradient_norm import errors_back
from elman.learning.steps import OneStep, flat, learns
from elman.model import LanguageModel
from elman.objective.loss import Objective

FARTHEST = 128


def error_flow(model: LanguageModel, batch: Batch, farthest: int = FARTHEST) -> list[float]:
    """||dE_T / dh_{T-k}|| for k = 0, 1, ..., the mean over the sequences; E_T is the loss of the last step alone.

    h is the whole state. Sequences longer than `farthest` are read without a graph up to there.

    """
    if not learns(model.core):
        return []
    steps = min(farthest, len(batch.inputs))
    state = model.begin(batch.inputs.shape[1])
    if steps < len(batch.inputs):
        with torch.no_grad():
            _, state = model.trace(batch.inputs[:-steps], state)
    mask = torch.zeros(steps, batch.inputs.shape[1], dtype=torch.bool)
    mask[-1] = True
    window = Batch(batch.inputs[-steps:], batch.targets[-steps:], mask)
    _, errors = errors_back(model, OneStep(model), Objective(reduction="sum"), window, state)
    return [flat(error).norm(dim=1).mean().item() * batch.inputs.shape[1] for error in reversed(errors)]
