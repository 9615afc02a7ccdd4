"""What passes over many steps: errors in untrained networks, answers of trained ones, and Pascanu's regulariser."""

import math
from dataclasses import dataclass

import numpy as np
import torch

from elman import config
from elman.cores.blocks import layers_of
from elman.cores.stack import Stack
from elman.data.classic.memory import RECALL
from elman.laboratory.flow import error_flow
from elman.laboratory.networks import build_network
from elman.laboratory.rules import learning_rule
from elman.laboratory.trial import Trial, run_trial
from elman.learning.optimisers import build_optimiser, clip_gradients
from elman.objective.loss import Objective
from elman.reproduce.claim import Measurement

UNITS, LAG, COLUMNS = 32, 50, 50
SHORT_LAG, LEARNING_STEPS = 20, 150


@dataclass(frozen=True)
class ErrorFlow:
    """What of the last step's error is left 50 steps before, untrained; W_hh of Elman's networks is gain * orthogonal.

    The bound of Pascanu et al. 2013, section 2.1: with f' <= 1 it is at most sigma_1(W)^50 = gain^50.
    """

    cell: str
    gain: float | None = None

    def __call__(self, seed: int, _: str | None) -> Measurement:
        """Measure."""
        torch.manual_seed(seed)
        model = build_network(RECALL, self.cell, UNITS)
        if self.gain is not None:
            assert isinstance(model.core, Stack)
            with torch.no_grad():
                for layer in layers_of(model.core):
                    layer.weight_hh.mul_(self.gain)
        batch = RECALL.draw(np.random.default_rng(seed), COLUMNS, LAG).batch
        flow = error_flow(model, batch)
        bound = (self.gain or 1.0) ** LAG
        return Measurement({"left": flow[LAG] / flow[0], "bound": bound}, {"error": [norm / flow[0] for norm in flow]})


@dataclass(frozen=True)
class Adding:
    """The adding problem over 100 steps, in a minute of processor time or less."""

    cell: str

    def __call__(self, seed: int, _: str | None) -> Measurement:
        """Learn."""
        threads = torch.get_num_threads()
        outcome = run_trial(Trial(task="adding", cell=self.cell, span=100, seed=seed, budget=60.0))
        torch.set_num_threads(threads)
        return Measurement(
            {"error": outcome.error, "steps": float(outcome.steps)}, {"error": [error for _, error in outcome.curve]}
        )


@dataclass(frozen=True)
class Preserved:
    """Elman's network of small weights (gain 0.7) while it learns to recall over 20 steps, by a rule.

    `decades` is |log10| of what is left of the error 20 steps before: 0 where its norm is kept.
    """

    rule: str

    def __call__(self, seed: int, _: str | None) -> Measurement:
        """Learn."""
        torch.manual_seed(seed)
        model, learner = build_network(RECALL, "elman", UNITS), learning_rule(self.rule)
        assert isinstance(model.core, Stack)
        with torch.no_grad():
            layers_of(model.core)[0].weight_hh.mul_(0.7)
        draw, parameters = np.random.default_rng(seed), list(model.parameters())
        optimiser = build_optimiser(config.Adam(lr=3e-3), parameters, 0.0)
        for _step in range(LEARNING_STEPS):
            optimiser.zero_grad()
            batch = RECALL.draw(draw, 16, SHORT_LAG).batch
            learner(model, Objective(), batch, learner.begin(model, 16))
            clip_gradients(parameters, 1.0, "global")
            optimiser.step()
        flow = error_flow(model, RECALL.draw(draw, COLUMNS, SHORT_LAG).batch)
        decades = abs(math.log10(max(flow[SHORT_LAG] / flow[0], 1e-30)))
        return Measurement({"decades": decades}, {"error": [norm / flow[0] for norm in flow]})
