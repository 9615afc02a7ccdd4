"""What delta trades: how far a constrained GRU remembers, and how little past noise disturbs it.

Kanai's thesis, 3.5.3, says that a small delta suits long dependencies and a large one noisy data, and measures neither.
Here a bias-free GRU must say at the end of a sequence which sign the one signal in it had.
"""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from elman import config
from elman.builders.core import build_stack
from elman.cores.blocks import candidate_hidden, layers_of
from elman.cores.stack import Stack
from elman.learning.constraint import build_constraint
from elman.reproduce.claim import Measurement

UNITS, BATCH, STEPS, TRIALS = 32, 64, 500, 4_000
DELAYS = (5, 20, 40, 80)
"""Steps between the signal and the end for which a network is trained, each from the beginning."""

NOISE, NOISE_STEPS = 2.0, 20
"""Standard deviation of noise, how many steps of it there are, and how many quiet ones after it."""


@dataclass(frozen=True)
class MemoryAndNoise:
    """The computation for one delta: errors by delay, and what past noise leaves in the state."""

    delta: float

    def __call__(self, seed: int, data: str | None) -> Measurement:  # noqa: ARG002 - the sequences are made here
        """Train a network for every delay; the curve is the error rate by delay."""
        errors = []
        for delay in DELAYS:
            net = Recaller(self.delta, seed)
            net.train(delay)
            errors.append(net.error(delay))
            if delay == DELAYS[0]:
                clean = net
        reach = max((delay for delay, error in zip(DELAYS, errors, strict=True) if error < 0.1), default=0)
        figures = {
            "reach": float(reach),
            "error after 20 steps": errors[DELAYS.index(20)],
            "disturbance": clean.disturbance(),
        }
        return Measurement(figures, {"error rate by delay": errors})


class Recaller:
    """A bias-free GRU that says the sign of a signal; trained by Adam under the constraint.

    Args:
        delta: sigma_1(W_hh) <= 2 - delta.
        seed: of weights and sequences.

    """

    def __init__(self, delta: float, seed: int) -> None:
        self.generator = torch.Generator().manual_seed(seed)
        recipe = config.Stack(sizes=(UNITS,), cell=config.GRU(reset="before"), biases=0)
        core = build_stack(recipe, 1, locked=True)
        assert isinstance(core, Stack)
        self.core = core
        with torch.no_grad():
            for layer in layers_of(self.core):
                layer.weight_ih.normal_(0, 1, generator=self.generator)
                layer.weight_hh.normal_(0, UNITS**-0.5, generator=self.generator)
                candidate_hidden(layer).copy_(2 * torch.eye(UNITS))  # as far as any constraint allows
        self.readout = (torch.randn(UNITS, generator=self.generator) / UNITS**0.5).requires_grad_()
        training = config.Training(epochs=1, optimiser=config.Adam(lr=5e-3), constraint=config.Spectral(delta=delta))
        self.constraint = build_constraint(training, self.core)
        assert self.constraint is not None
        self.constraint.project()

    def train(self, delay: int) -> None:
        """So many steps on clean sequences."""
        assert self.constraint is not None
        parameters = [*self.core.parameters(), self.readout]
        optimiser = torch.optim.Adam(parameters, lr=5e-3)
        for _ in range(STEPS):
            signal = self._signs(BATCH)
            loss = functional.softplus(-signal * self._answer(self._sequence(signal, delay))).mean()
            optimiser.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(parameters, 1.0)
            optimiser.step()
            self.constraint.project()

    @torch.no_grad()
    def error(self, delay: int) -> float:
        """Share of wrong signs; no sign at all is wrong."""
        signal = self._signs(TRIALS)
        return (signal * self._answer(self._sequence(signal, delay)) <= 0).double().mean().item()

    @torch.no_grad()
    def disturbance(self) -> float:
        """How much noise that ended `NOISE_STEPS` steps ago still moves the state: ||h with - h without|| / sqrt(H)."""
        noise = NOISE * torch.randn(NOISE_STEPS, TRIALS, 1, generator=self.generator)
        quiet = torch.zeros(NOISE_STEPS, TRIALS, 1)
        trace, _ = self.core(torch.cat([noise, quiet]), self.core.begin(TRIALS))
        return (trace.levels[-1][-1].norm(dim=1).mean() / UNITS**0.5).item()

    def _answer(self, xs: Tensor) -> Tensor:
        trace, _ = self.core(xs, self.core.begin(xs.shape[1]))
        return trace.levels[-1][-1] @ self.readout

    def _signs(self, count: int) -> Tensor:
        return torch.randint(0, 2, (count,), generator=self.generator) * 2.0 - 1.0

    def _sequence(self, signal: Tensor, delay: int) -> Tensor:
        xs = torch.zeros(delay + 1, len(signal), 1)
        xs[0, :, 0] = signal
        return xs
