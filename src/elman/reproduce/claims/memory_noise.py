"""The trade-off of delta: how long a constrained GRU remembers, and how much past noise disturbs it.

Kanai's thesis, 3.5.3, states that a small delta suits long dependencies and a large one noisy data, without a
measurement. Here a bias-free GRU must recall at the end of a sequence the sign of the one signal in it.
"""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from elman import config
from elman.learning.constraint import ConstrainedCore
from elman.network.cores.stack import Stack, build_stack, candidate_hidden, layers_of
from elman.reproduce.arm import Arm, Computation, Measurement
from elman.reproduce.claim import Claim, ClaimMeasure, CurveAxes
from elman.reproduce.comparison import lower, times


@dataclass(frozen=True)
class MemoryAndNoise:
    """Error rate by delay and the effect of past noise on the state, for one delta.

    A network is trained by Adam from scratch for each of `delays` (steps between the signal and the end); a delay is
    within reach if the error rate on `trials` sequences is below `learnt`. Noise has the standard deviation `noise`,
    for `noise_steps` steps, which as many silent steps follow.
    """

    delta: float
    units: int = 32
    batch_size: int = 64
    steps: int = 500
    lr: float = 5e-3
    clip: float = 1.0
    trials: int = 4_000
    delays: tuple[int, ...] = (5, 20, 40, 80)
    learnt: float = 0.1
    noise: float = 2.0
    noise_steps: int = 20

    def __call__(self, seed: int, data: str | None) -> Measurement:  # noqa: ARG002
        """Train a network for every delay."""
        errors = []
        for delay in self.delays:
            net = Recaller(self, seed)
            net.train(delay)
            errors.append(net.error(delay))
            if delay == self.delays[0]:
                clean = net
        reach = max((delay for delay, error in zip(self.delays, errors, strict=True) if error < self.learnt), default=0)
        figures = {"reach": float(reach), "error after 20 steps": errors[self.delays.index(20)]}
        return Measurement(figures | {"disturbance": clean.disturbance()}, {"error rate by delay": errors})


class Recaller:
    """A bias-free GRU that recalls the sign of a signal, trained by Adam under the constraint.

    Weights and sequences are drawn with `seed`; `chosen` holds delta, sizes and training settings.
    """

    def __init__(self, chosen: MemoryAndNoise, seed: int) -> None:
        self.chosen, units = chosen, chosen.units
        self.generator = torch.Generator().manual_seed(seed)
        recipe = config.Stack(sizes=(units,), cell=config.GRU(reset="before"), biases=0)
        self.core = build_stack(recipe, 1, locked=True)
        assert isinstance(self.core, Stack)
        with torch.no_grad():
            for layer in layers_of(self.core):
                layer.weight_ih.normal_(0, 1, generator=self.generator)
                layer.weight_hh.normal_(0, units**-0.5, generator=self.generator)
                candidate_hidden(layer).copy_(2 * torch.eye(units))  # as far as any constraint allows
        self.readout = (torch.randn(units, generator=self.generator) / units**0.5).requires_grad_()
        self.constraint = ConstrainedCore(self.core, config.Spectral(delta=chosen.delta))
        self.constraint.project()

    def train(self, delay: int) -> None:
        """Train on clean sequences."""
        parameters = [*self.core.parameters(), self.readout]
        optimiser = torch.optim.Adam(parameters, lr=self.chosen.lr)
        for _ in range(self.chosen.steps):
            signal = self._signs(self.chosen.batch_size)
            loss = functional.softplus(-signal * self._answer(self._sequence(signal, delay))).mean()
            optimiser.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(parameters, self.chosen.clip)
            optimiser.step()
            self.constraint.project()

    @torch.no_grad()
    def error(self, delay: int) -> float:
        """Share of wrong signs; 0 counts as wrong."""
        signal = self._signs(self.chosen.trials)
        return (signal * self._answer(self._sequence(signal, delay)) <= 0).double().mean().item()

    @torch.no_grad()
    def disturbance(self) -> float:
        """Effect of noise of `noise_steps` steps ago on the state: ||h with - h without|| / sqrt(H)."""
        chosen = self.chosen
        noise = chosen.noise * torch.randn(chosen.noise_steps, chosen.trials, 1, generator=self.generator)
        trace, _ = self.core(torch.cat([noise, torch.zeros_like(noise)]), self.core.begin(chosen.trials))
        return (trace.levels[-1][-1].norm(dim=1).mean() / chosen.units**0.5).item()

    def _answer(self, xs: Tensor) -> Tensor:
        trace, _ = self.core(xs, self.core.begin(xs.shape[1]))
        return trace.levels[-1][-1] @ self.readout

    def _signs(self, count: int) -> Tensor:
        return torch.randint(0, 2, (count,), generator=self.generator) * 2.0 - 1.0

    def _sequence(self, signal: Tensor, delay: int) -> Tensor:
        xs = torch.zeros(delay + 1, len(signal), 1)
        xs[0, :, 0] = signal
        return xs


MEMORY_NOISE = Claim(
    name="delta-memory-noise",
    sentence="a small delta remembers longer, a large one forgets noise sooner",
    source="Kanai's thesis, section 3.5.3, which states it without a measurement",
    arms=tuple(Arm(f"delta {delta:g}", Computation(MemoryAndNoise(delta), 1.0)) for delta in (0.2, 0.8, 1.4)),
    measure=ClaimMeasure(
        "memory-noise",
        {
            "reach": "longest delay with less than 10 % errors",
            "error after 20 steps": "errors after 20 steps",
            "disturbance": "effect of noise of 20 steps ago on the state",
        },
        curve=CurveAxes("error rate by delay", f"delay: {', '.join(map(str, MemoryAndNoise.delays))}", False, False),
    ),
    comparisons=(times("reach", "delta 0.2", "delta 1.4", 1.0), lower("disturbance", "delta 1.4", "delta 0.2")),
    notes="32 units recall at the end of a sequence the sign of the signal at its beginning.",
)
