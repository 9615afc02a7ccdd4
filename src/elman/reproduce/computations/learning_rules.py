"""RTRL beside BPTT: one gradient, and what it costs as the network grows."""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from elman import config
from elman.data.windows import Batch
from elman.learning.bptt import Learner, WholeWindow
from elman.learning.rtrl import RTRL, cost
from elman.network.build import build_model
from elman.network.model import LanguageModel
from elman.objective.loss import Objective
from elman.reproduce.claim import Measurement

SYMBOLS = 5


@dataclass(frozen=True)
class RtrlAndBptt:
    """The computation for one cell: the relative distance of the gradients in float64, and milliseconds a step by n.

    Attributes:
        cell: of one layer over symbols.
        symbols: how many there are.
        sizes: units n of the networks that are timed.
        repetitions: steps of which the fastest counts.
        units, steps, rows: of the network and the sequences whose gradients are compared.

    """

    cell: config.Cell
    symbols: int = SYMBOLS
    sizes: tuple[int, ...] = (32, 64, 128, 192)
    repetitions: int = 3
    units: int = 12
    steps: int = 12
    rows: int = 3

    def __call__(self, seed: int, _: str | None) -> Measurement:
        """Measure."""
        torch.manual_seed(seed)
        milliseconds = [1e3 * seconds_a_step(self.cell, n, self.repetitions, self.symbols) for n in self.sizes]
        products = [cost(symbol_model(self.cell, n, self.symbols), 1).multiply_adds for n in self.sizes]
        figures = {
            "difference": self._gradient_difference(),
            "exponent": self._last_exponent(milliseconds),
            "theory": self._last_exponent(products),
        }
        return Measurement(figures, {"milliseconds": milliseconds})

    def _last_exponent(self, costs: Sequence[float]) -> float:
        """K of costs that grow as n^k between the last two sizes."""
        return math.log(costs[-1] / costs[-2]) / math.log(self.sizes[-1] / self.sizes[-2])

    def _gradient_difference(self) -> float:
        """||RTRL - BPTT|| / ||BPTT|| over a sequence, in float64; RTRL goes through it in windows of one step."""
        model = symbol_model(self.cell, self.units, self.symbols).double()
        tokens = torch.randint(self.symbols, (self.steps + 1, self.rows))
        windows = [Batch(tokens[t : t + 1], tokens[t + 1 : t + 2]) for t in range(self.steps)]
        ours = gradient(RTRL(), model, windows)
        wanted = gradient(WholeWindow(), model, [Batch(tokens[:-1], tokens[1:])])
        return ((ours - wanted).norm() / wanted.norm()).item()


def gradient(learner: Learner, model: LanguageModel, windows: list[Batch]) -> torch.Tensor:
    """The gradients of a row of windows, added up, as one vector."""
    model.zero_grad()
    state = learner.begin(model, windows[0].inputs.shape[1])
    for window in windows:
        _, state = learner(model, Objective(reduction="sum"), window, state)
    return torch.cat([parameter.grad.flatten() for parameter in model.parameters() if parameter.grad is not None])


def seconds_a_step(cell: config.Cell, units: int, repetitions: int, symbols: int = SYMBOLS) -> float:
    """Processor time of one RTRL step of one sequence: the least of some."""
    model = symbol_model(cell, units, symbols)
    learner, window = RTRL(max_gb=8.0), Batch(torch.zeros(1, 1, dtype=torch.long), torch.ones(1, 1, dtype=torch.long))
    state = learner.begin(model, 1)
    times = []
    for _ in range(repetitions + 1):
        began = time.process_time()
        _, state = learner(model, Objective(), window, state)
        times.append(time.process_time() - began)
    return min(times[1:])


def symbol_model(cell: config.Cell, units: int, symbols: int = SYMBOLS) -> LanguageModel:
    """One layer over symbols."""
    return build_model(
        config.Model(encoder=config.Lookup(size=4), core=config.Stack(sizes=(units,), cell=cell)), symbols
    )
