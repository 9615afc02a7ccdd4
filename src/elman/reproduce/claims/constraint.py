"""The GRU under a spectral constraint compared with gradient clipping."""

import dataclasses
import math
from pathlib import Path

import torch

from elman.analysis.dynamics import examine
from elman.reproduce.arm import Arm, Measurement, Source
from elman.reproduce.claim import Claim, ClaimMeasure, CurveAxes
from elman.reproduce.comparison import Bound, lower
from elman.reproduce.perplexity import PERPLEXITY

DELTAS = (0.2, 0.5, 0.8, 1.1, 1.4)
THRESHOLDS = (5, 10, 15, 20)
"""Of the thesis: 0.5 to 2 times its mean gradient norm, spikes included. At 200 units the norm under the constraint is
3 on average over an epoch; clipped at 3 or 6 it spikes, and training recovers."""

SMALL = ("training.epochs=1", "training.validate_every=200")


def training_dynamics(folder: Path, trials: int, steps: int, kick: float) -> Measurement:
    """Whether training succeeded, the largest gradient norm and radius, and how the state decays afterwards."""
    found = examine(folder, torch.device("cpu"), trials=trials, steps=steps, kick=kick)
    figures = {"success": float(bool(found.success)), "largest gradient norm": found.largest_norm}
    figures |= {"largest radius": found.largest_radius, "decay": found.decay_rate}
    curves = {"state norm": found.norms, "spectral radius": [line.spectral_radius for line in found.lines]}
    return Measurement(figures, curves)


DYNAMICS = ClaimMeasure(
    "dynamics",
    {
        "success": "success (1) or failure (0)",
        "largest gradient norm": "largest gradient norm",
        "largest radius": "largest spectral radius of J",
        "decay": "decay of the state per step",
    },
    training_dynamics, {"trials": 50, "steps": 200, "kick": 0.1}, minutes=0.1,
    diverged={"success": 0.0, "largest gradient norm": math.inf, "largest radius": math.inf, "decay": math.nan},
)  # fmt: skip


def _arm(label: str, recipe: str, setting: str, *small: str) -> Arm:
    small_source = Source(f"ptb/small-{recipe}.toml", (setting, *SMALL, *small))
    return Arm(label, small_source, Source(f"ptb/{recipe}.toml", (setting,)))


CONSTRAINED = {d: _arm(f"delta {d:g}", "gru-constrained", f"training.constraint.delta={d:g}") for d in DELTAS}
"""Training under sigma_1 <= 2 - delta."""

CLIPPED = {n: _arm(f"clip {n:g}", "gru-clipped", f"training.clip={n:g}", "training.patience=2") for n in THRESHOLDS}
"""Clipping by the global norm, at small scale until two validations in a row bring no improvement."""

SUCCESS = Claim(
    name="gru-success-rate",
    sentence="under the spectral constraint training never fails, with gradient clipping it does at larger thresholds",
    source="Kanai's thesis, Tables 3.2 and 3.3",
    arms=(*CONSTRAINED.values(), *CLIPPED.values()),
    measure=DYNAMICS,
    comparisons=(
        *(Bound("success", arm.label, 0.5, exceeds=True) for arm in CONSTRAINED.values()),
        *(Bound("success", CLIPPED[threshold].label, 0.5) for threshold in (15, 20)),
    ),
    published=dict.fromkeys((arm.label for arm in CONSTRAINED.values()), "100 %")
    | {"clip 5": "100 %", "clip 10": "40 %", "clip 15": "0 %", "clip 20": "0 %"},
    notes="Success: every validation loss stays below that of the untrained model. Small scale: n = 200, one epoch"
    " with a validation every 200 steps.",
)

PERPLEXITY_BY_DELTA = Claim(
    name="gru-perplexity-by-delta",
    sentence="the smaller delta, the lower the perplexity; delta 0.2 is better than clipping where that succeeds",
    source="Kanai's thesis, Table 3.4",
    arms=(*CONSTRAINED.values(), CLIPPED[5]),
    measure=PERPLEXITY,
    comparisons=tuple(
        lower("valid perplexity", f"delta {better}", worse)
        for better, worse in ((0.2, "delta 0.8"), (0.8, "delta 1.4"), (0.2, "delta 1.4"), (0.2, "clip 5"))
    ),
    published={
        "delta 0.2": "102.0 ± 0.3", "delta 0.5": "102.8 ± 0.3", "delta 0.8": "103.7 ± 0.2", "delta 1.1": "105.2 ± 0.2",
        "delta 1.4": "107.0 ± 0.4", "clip 5": "109.3 ± 0.4",
    },
    notes="Small scale: n = 200, one epoch.",
)  # fmt: skip

STATE_DECAY = Claim(
    name="gru-state-decay",
    sentence="after an input the state decays by 1 - delta / 4 per step or faster, and faster for a larger delta",
    source="Kanai's thesis, Fig. 3.2 and Theorem 3.1",
    arms=(*(CONSTRAINED[delta] for delta in (0.2, 0.8, 1.4)), CLIPPED[5]),
    measure=dataclasses.replace(DYNAMICS, curve=CurveAxes("state norm", "steps after the input")),
    comparisons=(
        *(Bound("decay", f"delta {delta:g}", 1 - delta / 4) for delta in (0.2, 0.8, 1.4)),
        lower("decay", "delta 1.4", "delta 0.2"),
    ),
    published={f"delta {delta:g}": f"at most {1 - delta / 4:g}" for delta in (0.2, 0.8, 1.4)}
    | {"clip 5": "stays near 4.7"},
    notes="50 inputs from N(0, 0.01 I), none afterwards; the factor per step over the last half of 200 steps. The"
    " clipped network is shown and not judged: a small run is too short for it to leave the stable region for good.",
)

GRADIENT_SPIKES = Claim(
    name="gru-gradient-spikes",
    sentence="with clipping the spectral radius of J passes 1 and the gradient spikes; under the constraint it cannot",
    source="Kanai's thesis, Fig. 3.3",
    arms=(CONSTRAINED[0.2], CLIPPED[20]),
    measure=dataclasses.replace(DYNAMICS, curve=CurveAxes("spectral radius", "log records", relative=False)),
    comparisons=(
        Bound("largest radius", "delta 0.2", 1.0),
        Bound("largest radius", "clip 20", 1.0, exceeds=True),
        Bound("largest gradient norm", "clip 20", 50.0, exceeds=True),
    ),
    metric="largest gradient norm",
    notes="The norm before clipping, at the logged steps (every 100th at small scale); 50 is ten times the norm under"
    " the constraint.",
)
