"""How large the gradient of every weight usually is: what the RMS rule of dynamic evaluation divides by."""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from elman.data.windows import TrainingWindows, Windows
from elman.jobs import Kept
from elman.learning import checkpoint
from elman.learning.bptt import bptt
from elman.network.model import LanguageModel
from elman.network.state import restart
from elman.objective.loss import Objective

Statistics = dict[str, Tensor]
"""sqrt(mean over segments of g^2) of every parameter by its name, in the parameter's shape."""

COLUMNS, SEGMENT = 100, 5
"""Columns read side by side and steps of a segment (Krause et al. 2018; thesis 4.4)."""


@contextlib.contextmanager
def handing_over(model: nn.Module, take: Callable[[int, Tensor], object]) -> Iterator[None]:
    """Within the block `take(index, gradient)` is given each parameter's gradient as soon as it is whole.

    The gradient is let go afterwards, so that all of them never stand in memory at once.
    """
    handles = [
        parameter.register_post_accumulate_grad_hook(_handed(index, take))
        for index, parameter in enumerate(model.parameters())
    ]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _handed(index: int, take: Callable[[int, Tensor], object]) -> Callable[[Tensor], None]:
    def hook(parameter: Tensor) -> None:
        gradient, parameter.grad = parameter.grad, None
        assert gradient is not None
        with torch.no_grad():
            take(index, gradient)

    return hook


def statistics_windows(tokens: np.ndarray) -> TrainingWindows:
    """`COLUMNS` x `SEGMENT` positions of a text [n] at a time; a short text is read in as many columns as it fills."""
    return TrainingWindows(tokens, max(1, min(COLUMNS, len(tokens) // (SEGMENT + 1))), SEGMENT)


def gradient_statistics(
    model: LanguageModel, windows: Windows, advance: Callable[[int, int], None] | None = None
) -> Statistics:
    """Root of the mean squared gradient over a text or music (Krause et al. 2018, eq. 5), in evaluation mode.

    g is the gradient of the mean NLL over the positions of one window.

    Args:
        model: the trained model; its weights are not changed.
        windows: the training text; the first epoch's are read.
        advance: told (windows done, windows in all).

    """
    squares = [torch.zeros_like(parameter) for parameter in model.parameters()]
    spans, training = windows.spans(0), model.training
    state = beginning = model.eval().begin(windows.batch(spans[0]).inputs.shape[1])
    try:
        with handing_over(model, lambda index, gradient: squares[index].addcmul_(gradient, gradient)):
            for done, span in enumerate(spans, start=1):
                batch = windows.batch(span).to(model.device)
                assert batch.fresh is not None
                _, state = bptt(model, Objective(), batch, restart(state, batch.fresh, beginning))
                if advance is not None:
                    advance(done, len(spans))
    finally:
        model.train(training)
    names = (name for name, _ in model.named_parameters())
    return {name: (square / len(spans)).sqrt_() for name, square in zip(names, squares, strict=True)}


def kept_statistics(
    path: Path, facts: dict[str, Any], compute: Callable[[], Statistics], device: torch.device
) -> Statistics:
    """The statistics that `path` holds for these facts (the model's digest and the text), else computed and kept."""
    kept = Kept(path, facts, checkpoint.load, checkpoint.save)
    found = kept.find()
    if found is not None:
        return {name: tensor.to(device) for name, tensor in found.items()}
    statistics = compute()
    kept.keep(statistics)
    return statistics
