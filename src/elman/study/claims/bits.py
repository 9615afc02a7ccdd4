"""Tasks of bits: the neural Turing machine copies, also beyond what it has seen; who tracks the parity of bits."""

import math
import time
from dataclasses import dataclass

import numpy as np
import torch

from elman.data.batches import Batch
from elman.data.classic import TASKS
from elman.data.classic.bits import copy, some_length
from elman.data.classic.task import Sample
from elman.learning.bptt import WholeWindow
from elman.study.claim import Arm, Claim, ClaimMeasure, Computation, CurveAxes, Measurement
from elman.study.comparison import Bound, lower
from elman.study.lab.networks import build_network
from elman.study.lab.trial import error_of, fresh_step

COPY, PARITY = TASKS["copy"], TASKS["parity"]

LEARNT = 0.01
"""Copying is learnt at the first check at which a smaller share of the bits is wrong, over all trained lengths.

Parity is tracked if fewer of the answers are wrong; a guess is wrong at every second bit.
"""


@dataclass(frozen=True)
class Copying:
    """How a network of the laboratory learns to copy from `sequences` new sequences of 1 to `trained` vectors.

    Each step reads `columns` of them, of one length; the rate of Adam falls linearly from `lr` to 0. A check, every
    `check_every` sequences, reads `checked` sequences of every trained length; the last one also reads length
    `beyond`.
    """

    cell: str
    sequences: int
    units: int = 100
    columns: int = 16
    lr: float = 1e-3
    clip: float = 1.0
    trained: int = 20
    beyond: int = 40
    check_every: int = 1600
    checked: int = 20

    def __call__(self, seed: int, _: str | None) -> Measurement:
        torch.manual_seed(seed)
        model, draw = build_network(COPY, self.cell, self.units), np.random.default_rng(seed)
        learn = fresh_step(model, WholeWindow(), lr=self.lr, clip=self.clip)
        samples = [self._sample(seed, length) for length in range(1, self.trained + 1)]

        def error() -> float:
            """The share of wrong bits, the mean over lengths."""
            return sum(error_of(model, COPY, sample) for sample in samples) / len(samples)

        steps, interval = self.sequences // self.columns, self.check_every // self.columns
        errors, needed, seconds, began = [error()], math.nan, math.nan, time.process_time()
        for step in range(1, steps + 1):
            learn(self.drawn(draw, step / steps), self.lr * (1 - (step - 1) / steps))
            if step % interval == 0 or step == steps:
                errors.append(error())
                if math.isnan(needed) and errors[-1] < LEARNT:
                    needed, seconds = float(step * self.columns), time.process_time() - began
        if math.isnan(needed):
            needed, seconds = float(self.sequences), time.process_time() - began
        figures = {
            "sequences": needed,
            "seconds": seconds,
            "error": max(error_of(model, COPY, sample) for sample in samples),
            "beyond": error_of(model, COPY, self._sample(seed, self.beyond)),
        }
        return Measurement(figures, {"error": errors})

    def drawn(self, draw: np.random.Generator, _: float, /) -> Batch:
        """The batch of the step after which a share of all steps is done."""
        return copy(draw, self.columns, some_length(draw, self.trained)).batch

    def _sample(self, seed: int, length: int) -> Sample:
        return copy(np.random.default_rng([seed, length]), self.checked, length)


@dataclass(frozen=True)
class GradedCopying(Copying):
    """Copying whose longest sequence grows, from 2 vectors on, over the share `grown` of the steps.

    In the steps after that a share `blank` of the vectors is 0; of random bits one vector in 256 is. Checks read random
    bits of all lengths.
    """

    columns: int = 4
    clip: float = 50.0
    grown: float = 0.5
    blank: float = 0.05

    def drawn(self, draw: np.random.Generator, done: float, /) -> Batch:
        length = some_length(draw, min(max(math.ceil(self.trained * done / self.grown), 2), self.trained))
        batch = copy(draw, self.columns, length).batch
        blank = torch.from_numpy(draw.random((length, self.columns)) < self.blank * (done > self.grown))
        batch.inputs[:length][blank] = 0
        batch.targets[length + 1 :][blank] = 0
        return batch


COPYING = ClaimMeasure(
    "copying",
    {
        "sequences": f"sequences until less than {LEARNT:.0%} of the bits are wrong, or all that were read",
        "seconds": "seconds of processor time until then",
        "error": "share of wrong bits after training, at the worst of the lengths 1 to 20",
        "beyond": "the same at length 40, which is not trained",
    },
    curve=CurveAxes("error", "checks, every 1,600 sequences", relative=False),
)

NTM_COPY = Claim(
    name="ntm-copy", published_text="the copying task",
    sentence="a neural Turing machine learns to copy from fewer sequences than an LSTM, and copies longer ones too",
    source="Graves, Wayne & Danihelka 2014, section 4.1, Figs 3 to 5",
    arms=tuple(
        Arm(cell, Computation(Copying(cell, 4 * sequences), 4.7, quick=Computation(Copying(cell, sequences), 1.2)))
        for cell, sequences in (("ntm", 32_000), ("lstm", 320_000))
    ),
    measure=COPYING,
    comparisons=(
        Bound("error", "ntm", LEARNT), Bound("beyond", "ntm", LEARNT), lower("sequences", "ntm", "lstm"),
        Bound("beyond", "lstm", LEARNT, exceeds=True),
    ),
    published={"ntm": "learns fast, and copies beyond its lengths", "lstm": "learns slowly, and does not"},
    notes="100 units, a memory of 128 x 20, Adam, 16 new sequences of one length per step; the LSTM reads ten times"
    " as many sequences, in about the same time. Seconds depend on the machine and decide nothing. Where a"
    " network has not learnt, its sequences and seconds count the whole training: too few, which favours it. The"
    " paper trains with RMSprop, and an LSTM of three layers of 256. At three times the rate, with half as many"
    " sequences, one machine in three then copied 5 % of the bits of length 40 wrong. The quick version reads a quarter"
    " of them: in one seed of two the machine copied 5 % of the bits of length 40 wrong.",
)  # fmt: skip


NTM_FEED_FORWARD = Claim(
    name="ntm-feed-forward", published_text="the copying task",
    sentence="a neural Turing machine whose controller has no state copies, longer sequences too; an LSTM trained alike"
    " does not",
    source="Graves, Wayne & Danihelka 2014, section 4.1, Figs 3 to 5",
    arms=tuple(
        Arm(cell, Computation(GradedCopying(cell, 64_000), minutes,
                              quick=Computation(GradedCopying(cell, 16_000), minutes / 4)))
        for cell, minutes in (("ntm-feed-forward", 4.7), ("lstm", 0.7))
    ),
    measure=COPYING,
    comparisons=(
        Bound("error", "ntm-feed-forward", LEARNT), Bound("beyond", "ntm-feed-forward", LEARNT),
        Bound("beyond", "lstm", LEARNT, exceeds=True),
    ),
    published={"ntm-feed-forward": "learns fastest, and copies beyond its lengths", "lstm": "learns slowly"},
    notes="As in ntm-copy, but with four sequences per step, the gradient clipped at a norm of 50 (Collier & Beel"
    " 2018), and the longest sequence growing from 2 to 20 over the first half of the steps: over long ones the"
    " gradient explodes before the heads have learnt where to go. In the second half 5 % of the training vectors"
    " are 0, where random bits have one in 256: a controller without a state takes such a vector for a step at"
    " which the copy is due. Checks read random bits. These settings were chosen by looking at seed 1 at lengths"
    " of 1 to 8. The paper has none of them, and trains with RMSprop.",
)  # fmt: skip


@dataclass(frozen=True)
class Tracking:
    """How a network of the laboratory tracks parity after `updates` by Adam, at a rate that falls linearly to 0.

    Each update reads `columns` new sequences of 1 to `trained` bits, of one length. A check, every `check_every`
    updates, reads `checked` sequences of `trained` bits; the last one also reads `beyond` bits.
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
        torch.manual_seed(seed)
        model, draw = build_network(PARITY, self.cell, self.units), np.random.default_rng(seed)
        learn = fresh_step(model, WholeWindow(), lr=self.lr, clip=self.clip)

        def error(length: int) -> float:
            return error_of(model, PARITY, PARITY.draw(np.random.default_rng([seed, length]), self.checked, length))

        errors = [error(self.trained)]
        for update in range(1, self.updates + 1):
            batch = PARITY.draw(draw, self.columns, some_length(draw, self.trained)).batch
            learn(batch, self.lr * (1 - (update - 1) / self.updates))
            if update % self.check_every == 0 or update == self.updates:
                errors.append(error(self.trained))
        return Measurement({"error": errors[-1], "beyond": error(self.beyond)}, {"error": errors})


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
