"""RTRL beside BPTT: one gradient, and what it costs as the network grows."""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from elman import config
from elman.build import build_model
from elman.data.windows import Batch
from elman.learning.learner import Learner, WholeWindow
from elman.learning.rtrl import RTRL, cost
from elman.model import LanguageModel
from elman.objective.loss import Objective
from elman.reproduce.claim import Measurement

SYMBOLS, STEPS, ROWS, UNITS = 5, 12, 3, 12
SIZES = (32, 64, 128, 192)


@dataclass(frozen=True)
class RtrlAndBptt:
    """The computation for one cell: the relative distance of the gradients in float64, and milliseconds a step by n."""

    cell: config.Cell

    def __call__(self, seed: int, _: str | None) -> Measurement:
        """Measure."""
        torch.manual_seed(seed)
        milliseconds = [1e3 * seconds_a_step(self.cell, size) for size in SIZES]
        products = [cost(symbol_model(self.cell, size), 1).multiply_adds for size in SIZES]
        figures = {
            "difference": gradient_difference(self.cell),
            "exponent": _last_exponent(milliseconds),
            "theory": _last_exponent(products),
        }
        return Measurement(figures, {"milliseconds": milliseconds})


def _last_exponent(costs: Sequence[float]) -> float:
    """K of costs that grow as n^k between the last two sizes."""
    return math.log(costs[-1] / costs[-2]) / math.log(SIZES[-1] / SIZES[-2])


def gradient_difference(cell: config.Cell) -> float:
    """||RTRL - BPTT|| / ||BPTT|| over a sequence, in float64; RTRL goes through it in windows of one step."""
    model = symbol_model(cell, UNITS).double()
    tokens = torch.randint(SYMBOLS, (STEPS + 1, ROWS))
    windows = [Batch(tokens[t : t + 1], tokens[t + 1 : t + 2]) for t in range(STEPS)]
    ours = gradient(RTRL(), model, windows)
    wanted = gradient(WholeWindow(), model, [Batch(tokens[:-1], tokens[1:])])
    return ((ours - wanted).norm() / wanted.norm()).item()


def gradient(learner: Learner, model: LanguageModel, windows: list[Batch]) -> torch.Tensor:
    """The gradients of a row of windows, added up, as one vector."""
    model.zero_grad()
    state = learner.begin(model, ROWS)
    for window in windows:
        _, state = learner(model, Objective(reduction="sum"), window, state)
    return torch.cat([parameter.grad.flatten() for parameter in model.parameters() if parameter.grad is not None])


def seconds_a_step(cell: config.Cell, units: int, repetitions: int = 3) -> float:
    """Processor time of one RTRL step of one sequence: the least of some."""
    model = symbol_model(cell, units)
    learner, window = RTRL(max_gb=8.0), Batch(torch.zeros(1, 1, dtype=torch.long), torch.ones(1, 1, dtype=torch.long))
    state = learner.begin(model, 1)
    times = []
    for _ in range(repetitions + 1):
        began = time.process_time()
        _, state = learner(model, Objective(), window, state)
        times.append(time.process_time() - began)
    return min(times[1:])


def symbol_model(cell: config.Cell, units: int) -> LanguageModel:
    """One layer over symbols."""
    return build_model(
        config.Model(encoder=config.Lookup(size=4), core=config.Stack(sizes=(units,), cell=cell)), SYMBOLS
    )
