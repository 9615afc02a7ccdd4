"""Whether a recurrence tracks a state: the parity of bits, beyond the lengths that it was trained on."""

from dataclasses import dataclass

import numpy as np
import torch

from elman.data.classic import TASKS
from elman.data.classic.bits import some_length
from elman.learning.bptt import WholeWindow
from elman.network.model import LanguageModel
from elman.study.claim import Arm, Claim, ClaimMeasure, Computation, CurveAxes, Measurement
from elman.study.comparison import Bound
from elman.study.lab.networks import build_network
from elman.study.lab.trial import error_of, fresh_step

PARITY = TASKS["parity"]

LEARNT = 0.01
"""Parity is tracked if fewer of the answers are wrong; a guess is wrong at every second bit."""


@dataclass(frozen=True)
class Tracking:
    """How a network of the laboratory tracks parity after `updates` by Adam, at a rate that falls linearly to 0.

    Each update reads `columns` new sequences of 1 to `trained` bits, of one length. A check, every `check_every`
    updates, reads `checked` sequences of `trained` bits; the last one also those of `beyond` bits.
    """

    cell: str
    updates: int
    units: int = 32
    columns: int = 32
    lr: float = 0.01
    clip: float = 1.0
    trained: int = 40
    beyond: int = 256
    check_every: int = 50
    checked: int = 100

    def __call__(self, seed: int, _: str | None) -> Measurement:
        """Train, and measure the share of wrong answers."""
        torch.manual_seed(seed)
        model, draw = build_network(PARITY, self.cell, self.units), np.random.default_rng(seed)
        learn = fresh_step(model, WholeWindow(), lr=self.lr, clip=self.clip)
        errors = [self._error(model, seed, self.trained)]
        for update in range(1, self.updates + 1):
            batch = PARITY.draw(draw, self.columns, some_length(draw, self.trained)).batch
            learn(batch, self.lr * (1 - (update - 1) / self.updates))
            if update % self.check_every == 0 or update == self.updates:
                errors.append(self._error(model, seed, self.trained))
        beyond = self._error(model, seed, self.beyond)
        return Measurement({"error": errors[-1], "beyond": beyond}, {"error": errors})

    def _error(self, model: LanguageModel, seed: int, length: int) -> float:
        return error_of(model, PARITY, PARITY.draw(np.random.default_rng([seed, length]), self.checked, length))


LINEAR, NONLINEAR = ("min-gru", "lru", "mamba2"), ("lstm", "slstm")

PARITY_OF_LINEAR = Claim(
    name="linear-parity",
    sentence="linear recurrences do not track parity beyond the lengths they were trained on; LSTM and sLSTM do",
    source="Merrill, Petty & Sabharwal 2024; Sarrof, Veitsman & Hahn 2024; Beck et al. 2024, section 4.1",
    arms=tuple(Arm(cell, Computation(Tracking(cell, 400), 0.2)) for cell in (*NONLINEAR, *LINEAR)),
    measure=ClaimMeasure(
        "parity",
        {
            "error": "share of wrong answers at 40 bits, the longest trained (guessing: 0.5)",
            "beyond": "the same at 256 bits, which are not trained",
        },
        curve=CurveAxes("error", "checks, every 50 updates", relative=False),
    ),
    comparisons=(
        *(Bound("beyond", cell, LEARNT) for cell in NONLINEAR),
        *(Bound("beyond", cell, 0.25, exceeds=True) for cell in LINEAR),
    ),
    notes="32 units, Adam at .01, falling to 0, 32 new sequences of 1 to 40 bits per update. LRU and Mamba-2 are in a"
    " residual block. The theorems are about what can be represented at any length and with limited precision; the"
    " claim is about what is learnt.",
)  # fmt: skip
