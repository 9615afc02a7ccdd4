"""How many singular values the truncated projection computes in the course of training, by two norms of the step."""

import math
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Literal

from elman import config
from elman.config.toml import find, load_recipe
from elman.report.folder import read_folder
from elman.study.claim import Arm, Claim, ClaimMeasure, Computation, CurveAxes, Measurement, Source
from elman.study.claims.constraint import SMALL
from elman.study.claims.projection_cost import PAPER, Timed, TimedTraining
from elman.study.comparison import Bound, Ratio, lower


def counts(folder: Path) -> Measurement:
    """S, the number of singular values that the truncated projection computes, in the means of epochs."""
    by_epoch = defaultdict[int, list[tuple[float, float]]](list)
    for line in read_folder(folder).metrics.train:
        if line.s:
            by_epoch[math.ceil(line.epoch)].append((sum(line.s), sum(line.s_other)))
    epochs = [(fmean(s for s, _ in lines), fmean(other for _, other in lines)) for lines in by_epoch.values()]
    frobenius, spectral = ([epoch[norm] for epoch in epochs] for norm in (0, 1))
    figures = {"peak": max(frobenius), "last": frobenius[-1], "half the peak": max(frobenius) / 2}
    figures |= {"frobenius": fmean(frobenius), "spectral": fmean(spectral)}
    figures["exceeding"] = float(sum(tight > loose for loose, tight in epochs))
    return Measurement(figures, {"s": frobenius, "s by the spectral norm": spectral})


COUNTS = ClaimMeasure(
    "counts",
    {
        "peak": "s, largest mean of an epoch", "last": "s, last epoch", "half the peak": "half the peak",
        "frobenius": "s by the Frobenius norm", "spectral": "s by the spectral norm",
        "exceeding": "epochs in which the spectral norm counts more",
    },
    counts, curve=CurveAxes("s", "epochs", relative=False, logarithmic=False),
)  # fmt: skip

SETTING = ("data.train_tokens=30000", "training.epochs=10", "training.schedule.after=5", "training.log_every=5")
"""Of small scale: ten short epochs, of which five at the full rate, and the last at 1/32 of it."""

LARGE = (*SETTING, "model.encoder.size=200", "model.core.sizes=[200]")
"""Large enough that fewer singular values take less time."""

QUICK = ("training.epochs=6", "data.train_tokens=15000")


def _arm(delta: float) -> Arm:
    settings = (
        f"training.constraint.delta={delta:g}", "training.constraint.method=truncated",
        "training.constraint.compare_norms=true",
    )  # fmt: skip
    return Arm(f"delta {delta:g}", Source(SMALL, (*settings, *SETTING), QUICK), Source(PAPER, settings))


SMALLER, LARGER = _arm(0.2), _arm(0.8)

SMALL_NOTES = "Small scale: n = 100; W_hh begins orthogonal, so that no bound is near 2 at first; ten short epochs, of"
SMALL_NOTES += " which five at the full rate, which is then halved after each."

PROJECTION_RANK = Claim(
    name="projection-rank",
    sentence="the truncated projection computes few singular values late in training, and fewer for a larger delta",
    source="Kanai's thesis, Fig. 3.4", arms=(SMALLER, LARGER), measure=COUNTS,
    comparisons=(
        *(Bound("last", arm.label, "half the peak") for arm in (SMALLER, LARGER)),
        lower("frobenius", LARGER.label, SMALLER.label),
    ),
    metric="last", published={SMALLER.label: "from nearly all at first to few"}, seeds=8,
    notes=f"Algorithm 3.2 with the Frobenius norm, s in the means of epochs: the last has half the peak or less."
    f" {SMALL_NOTES}",
)  # fmt: skip

RANK_BY_NORM = Claim(
    name="projection-rank-by-norm",
    sentence="the truncated projection computes fewer singular values by the spectral norm of the step, in every epoch",
    source="Kanai's thesis, Fig. 3.5", arms=(SMALLER,), measure=COUNTS,
    comparisons=(Bound("spectral", SMALLER.label, "frobenius"), Bound("exceeding", SMALLER.label, 0.0)),
    published={SMALLER.label: "always fewer than by the Frobenius norm"},
    notes=f"Both norms count in the same steps, each with bounds of its own. {SMALL_NOTES}",
)  # fmt: skip

NORMS: tuple[Literal["frobenius", "spectral"], ...] = ("frobenius", "spectral")


@dataclass(frozen=True)
class NormTimes:
    """Processor time of the truncated projection by both norms of the step, in the course of one training.

    The network of a recipe is trained for its epochs under the projection by the Frobenius norm; that by the spectral
    norm is applied to the same steps on a copy of W_hh.
    """

    delta: float
    recipe: str = SMALL
    settings: tuple[str, ...] = LARGE

    def __call__(self, seed: int, data: str | None) -> Measurement:
        training = TimedTraining(load_recipe(find(self.recipe), [*self.settings, f"seed={seed}"]), data)
        both = [Timed(config.Spectral(delta=self.delta, method="truncated", step_norm=norm)) for norm in NORMS]
        copy, trained = training.block.clone(), 0.0
        for one, matrix in zip(both, (training.block, copy), strict=True):
            one.project_(matrix)
        for step in range(training.recipe.training.epochs * training.steps_per_epoch):
            before = training.block.clone()
            trained += training.step(step / training.steps_per_epoch)[0]
            copy += training.block - before
            for one, matrix in zip(both, (training.block, copy), strict=True):
                one.project_(matrix)
        figures: dict[str, float] = {norm: sum(one.seconds) for norm, one in zip(NORMS, both, strict=True)}
        figures |= {f"s, {norm}": float(sum(one.computed)) for norm, one in zip(NORMS, both, strict=True)}
        return Measurement(figures | {"training": trained}, {})


PROJECTION_NORM = Claim(
    name="projection-norm", published_text="Penn Treebank",
    sentence="the truncated projection takes less time in all with the spectral norm of the step than with its"
    " Frobenius norm",
    source="Kanai's thesis, section 3.5.5 (c)",
    arms=(
        Arm(
            SMALLER.label,
            Computation(NormTimes(0.2), 0.7, Computation(NormTimes(0.2, settings=(*LARGE, *QUICK)), 0.2)),
            Computation(NormTimes(0.2, PAPER, ()), 600),
        ),
    ),
    measure=ClaimMeasure(
        "norm-times",
        {
            "frobenius": "seconds, Frobenius norm", "spectral": "seconds, spectral norm",
            "s, frobenius": "singular values computed, Frobenius norm",
            "s, spectral": "singular values computed, spectral norm",
            "training": "seconds of training without the projection",
        },
        timed=True,
    ),
    comparisons=(
        Ratio(
            "the projection takes less time by the spectral norm", "spectral", SMALLER.label, SMALLER.label, high=1.0,
            b_metric="frobenius",
        ),
    ),
    published={SMALLER.label: "4.9e4 s of training by the spectral norm, 5.4e4 s by the Frobenius norm"},
    notes="Processor time of both projections in one training, n = 200. The thesis adds that its result depends on data"
    " and machine: the spectral norm takes a few matrix products per step, and saves singular values.",
)  # fmt: skip
