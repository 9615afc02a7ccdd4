"""The trade-off of delta: how long a constrained GRU remembers, and how much past noise disturbs it.

Kanai's thesis, 3.5.3, states that a small delta suits long dependencies and a large one noisy data, without a
measurement. Here a bias-free GRU must recall at the end of a sequence the sign of the one signal in it. Its reason is
that the linearised state decays by 1 - delta / 4 per step or faster. So signals are small, which keeps the state where
the linearised GRU describes it, and the state is observed with noise: without noise any remnant could be read.
"""

from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor
from torch.nn import functional

from elman import config
from elman.learning.constraint import ConstrainedCore
from elman.network.cores.stack import Stack, StackCore, build_stack, candidate_hidden, layers_of
from elman.study.claim import Arm, Claim, ClaimMeasure, Computation, CurveAxes, Measurement
from elman.study.comparison import higher, lower


@dataclass(frozen=True)
class MemoryAndNoise:
    """Error rate by delay and the remnant of past noise in the state, for one delta.

    A network is trained by Adam from scratch for each of `delays` (steps between the signal and the end); a delay is
    within reach if the error rate on `trials` sequences is below `learnt` (reach 1: no delay is). Signals are plus or
    minus `signal`; the state that the answer is read from has noise of the standard deviation `observation` in every
    unit. Past noise has the standard deviation `signal`, for `noise_steps` steps, which as many silent steps follow.
    """

    delta: float
    units: int = 32
    batch_size: int = 64
    steps: int = 100
    lr: float = 5e-3
    clip: float = 1.0
    trials: int = 4_000
    delays: tuple[int, ...] = (5, 10, 20, 40, 80)
    learnt: float = 0.1
    signal: float = 0.01
    observation: float = 1e-4
    noise_steps: int = 20

    def __call__(self, seed: int, data: str | None) -> Measurement:  # noqa: ARG002
        """The remnant of noise is that in the network of the first delay."""
        errors = []
        for delay in self.delays:
            net = Recaller(self, seed)
            net.train(delay)
            errors.append(net.error(delay))
            if delay == self.delays[0]:
                remnant = net.remnant()
        reach = max((delay for delay, error in zip(self.delays, errors, strict=True) if error < self.learnt), default=1)
        return Measurement({"reach": float(reach), "remnant": remnant}, {"error rate by delay": errors})


class Recaller:
    """A bias-free GRU that recalls the sign of a signal, trained by Adam under the constraint.

    Weights and sequences are drawn with `seed`; `chosen` holds delta, sizes and training settings.
    """

    def __init__(self, chosen: MemoryAndNoise, seed: int) -> None:
        self.chosen, units = chosen, chosen.units
        self.generator = torch.Generator().manual_seed(seed)
        recipe = Stack(sizes=(units,), cell=config.GRU(reset="before"), biases=0)
        self.core = build_stack(recipe, 1, locked=True)
        assert isinstance(self.core, StackCore)
        with torch.no_grad():
            for layer in layers_of(self.core):
                assert layer.weight_hh is not None
                layer.weight_ih.normal_(0, 1, generator=self.generator)
                layer.weight_hh.normal_(0, units**-0.5, generator=self.generator)
                candidate_hidden(layer).copy_(2 * torch.eye(units))  # as far as any constraint allows
        self.readout = (torch.randn(units, generator=self.generator) / units**0.5).requires_grad_()
        self.constraint = ConstrainedCore(self.core, config.Spectral(delta=chosen.delta, input=True))
        self.constraint.project()

    def train(self, delay: int) -> None:
        parameters = [*self.core.parameters(), self.readout]
        optimiser = torch.optim.Adam(parameters, lr=self.chosen.lr)
        for _ in range(self.chosen.steps):
            loss = functional.softplus(-self._answers(self.chosen.batch_size, delay)).mean()
            optimiser.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(parameters, self.chosen.clip)
            optimiser.step()
            self.constraint.project()

    @torch.no_grad()
    def error(self, delay: int) -> float:
        """Share of wrong signs; 0 counts as wrong."""
        return (self._answers(self.chosen.trials, delay) <= 0).double().mean().item()

    @torch.no_grad()
    def remnant(self) -> float:
        """||h|| after silence as a share of ||h|| when the noise stops: roots of the mean squares over the trials."""
        chosen = self.chosen
        noise = chosen.signal * torch.randn(chosen.noise_steps, chosen.trials, 1, generator=self.generator)
        trace, _ = self.core(torch.cat([noise, torch.zeros_like(noise)]), self.core.begin(chosen.trials))
        states = trace.levels[-1]
        return (states[-1].norm() / states[chosen.noise_steps - 1].norm()).item()

    def _answers(self, count: int, delay: int) -> Tensor:
        """To new sequences, in units of the signal, times their signs: those above 0 are right."""
        chosen, signs = self.chosen, torch.randint(0, 2, (count,), generator=self.generator) * 2.0 - 1.0
        xs = torch.zeros(delay + 1, count, 1)
        xs[0, :, 0] = chosen.signal * signs
        trace, _ = self.core(xs, self.core.begin(count))
        state = trace.levels[-1][-1]
        seen = state + chosen.observation * torch.randn(state.shape, generator=self.generator)
        return signs * (seen @ self.readout / chosen.signal)


DELTAS = (0.2, 0.8, 1.4)

MEMORY_NOISE = Claim(
    name="delta-memory-noise", sentence="a small delta remembers longer, a large one forgets noise sooner",
    source="Kanai's thesis, section 3.5.3, which states it without a measurement",
    arms=tuple(Arm(f"delta {delta:g}", Computation(MemoryAndNoise(delta), 0.12)) for delta in DELTAS),
    measure=ClaimMeasure(
        "memory-noise",
        {
            "reach": "longest delay with less than 10 % errors",
            "remnant": "state 20 steps after noise, as a share of the state when it stops",
        },
        curve=CurveAxes("error rate by delay", f"delay: {', '.join(map(str, MemoryAndNoise.delays))}", False, False),
    ),
    comparisons=tuple(
        comparison
        for smaller, larger in pairwise(f"delta {delta:g}" for delta in DELTAS)
        for comparison in (higher("reach", smaller, larger), lower("remnant", larger, smaller))
    ),
    seeds=5,
    notes="32 units recall at the end of a sequence the sign of the signal at its beginning. Signals of 0.01 keep the"
    " state where the linear theorem describes it, sigma_1 of W_xh is bounded too, and the state is observed with noise"
    " of 1e-4, since otherwise any remnant could be read.",
)  # fmt: skip
