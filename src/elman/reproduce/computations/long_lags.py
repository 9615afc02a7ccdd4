"""What passes over many steps: errors in untrained networks, answers of trained ones, and Pascanu's regulariser."""

import math
from dataclasses import dataclass

import msgspec
import numpy as np
import torch

from elman import config
from elman.data.classic.memory import RECALL
from elman.laboratory.networks import build_network, learning_rule
from elman.laboratory.trial import Trial, error_flow, run_trial
from elman.learning.optimisers import Optimiser
from elman.learning.update import Update
from elman.network.cores.stack import Stack, layers_of
from elman.network.model import LanguageModel
from elman.objective.loss import Objective
from elman.reproduce.claim import Measurement


@dataclass(frozen=True)
class ErrorFlow:
    """What of the last step's error is left `lag` steps before, untrained; W_hh is gain * orthogonal.

    The bound of Pascanu et al. 2013, section 2.1: with f' <= 1 it is at most sigma_1(W)^lag = gain^lag.

    Attributes:
        cell: of the laboratory.
        gain: None leaves the weights as they begin.
        units, lag: of the network, and steps that the error goes back.
        columns: sequences it is the mean of.

    """

    cell: str
    gain: float | None = None
    units: int = 32
    lag: int = 50
    columns: int = 50

    def __call__(self, seed: int, _: str | None) -> Measurement:
        """Measure."""
        torch.manual_seed(seed)
        model = build_network(RECALL, self.cell, self.units)
        if self.gain is not None:
            _scale(model, self.gain)
        batch = RECALL.draw(np.random.default_rng(seed), self.columns, self.lag).batch
        flow = error_flow(model, batch)
        figures = {"left": flow[self.lag] / flow[0], "bound": (self.gain or 1.0) ** self.lag}
        return Measurement(figures, {"error": [norm / flow[0] for norm in flow]})


@dataclass(frozen=True)
class Learnt:
    """A trial of the laboratory, whatever its seed: its last error, and the steps until then."""

    trial: Trial

    def __call__(self, seed: int, _: str | None) -> Measurement:
        """Learn."""
        threads = torch.get_num_threads()
        outcome = run_trial(msgspec.structs.replace(self.trial, seed=seed))
        torch.set_num_threads(threads)
        return Measurement(
            {"error": outcome.error, "steps": float(outcome.steps)}, {"error": [error for _, error in outcome.curve]}
        )


@dataclass(frozen=True)
class Preserved:
    """Elman's network of small weights after it has learnt to recall for some steps, by a rule.

    `decades` is |log10| of what is left of the error `lag` steps before: 0 where its norm is kept.

    Attributes:
        rule: of the laboratory.
        units, gain: of the network; W_hh begins as gain * orthogonal.
        lag: steps over which it recalls.
        steps, batch_size, lr, clip: of learning, by Adam.
        columns: sequences that the error is the mean of.

    """

    rule: str
    units: int = 32
    gain: float = 0.7
    lag: int = 20
    steps: int = 150
    batch_size: int = 16
    lr: float = 3e-3
    clip: float = 1.0
    columns: int = 50

    def __call__(self, seed: int, _: str | None) -> Measurement:
        """Learn."""
        torch.manual_seed(seed)
        model, learner = build_network(RECALL, "elman", self.units), learning_rule(self.rule)
        _scale(model, self.gain)
        draw = np.random.default_rng(seed)
        optimiser = Optimiser(config.Adam(lr=self.lr), list(model.parameters()))
        update = Update(model, learner, Objective(), optimiser, clip=self.clip)
        for _step in range(self.steps):
            update.state = None
            update(RECALL.draw(draw, self.batch_size, self.lag).batch, self.lr)
        flow = error_flow(model, RECALL.draw(draw, self.columns, self.lag).batch)
        decades = abs(math.log10(max(flow[self.lag] / flow[0], 1e-30)))
        return Measurement({"decades": decades}, {"error": [norm / flow[0] for norm in flow]})


def _scale(model: LanguageModel, gain: float) -> None:
    assert isinstance(model.core, Stack)
    with torch.no_grad():
        for layer in layers_of(model.core):
            layer.weight_hh.mul_(gain)
