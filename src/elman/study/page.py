"""The page of a claim: published figures and ours, every comparison, how many seeds, and drawings of both."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

from elman.drawing.page import Figure, Section, Table, write_page
from elman.drawing.style import legend, svg
from elman.errors import counted
from elman.study.claim import Measurement
from elman.study.comparison import Verdict
from elman.study.figures import DOTS, SEEDS_AND_MEAN, by_seed, drawings, measured_curves, training_curves
from elman.study.record import ClaimRecord
from elman.study.statistics import detectable, power
from elman.study.store import Plan

RULE = (
    "Ratios are judged by a paired t test on logarithms, seed by seed, at the 5 % level; bounds must hold in every"
    " seed. The claim holds if every comparison does. An undecided comparison names the number of seeds that would"
    " detect a difference of the observed size with a power of 80 %, and where its mean lies."
)
BY_TOKEN = (
    "Ratios of test perplexities are compared by token too: nats per token of both arms, each the mean over its seeds,"
    " by a t test over blocks of the test text. The claim is judged by seed all the same: it is about training by a"
    " method, of which the seeds are a sample; tokens are a sample of the text, and by them two trainings of the same"
    " recipe differ as well."
)
TUNING = (
    "Each of these alternatives was trained once, with a seed that the claim does not use; every arm takes the one with"
    " the lowest loss on validation text."
)
QUICK = (
    "At the scale quick one seed is trained for a short time, and answers are only indicated: by the test by token"
    " where there is one, else by where the figure lies."
)
FACTOR = "A factor is the distance of the ratio from the bound of its comparison."


def write_claim_page(
    out: Path,
    planned: Plan,
    made: ClaimRecord,
    measurements: Mapping[str, Sequence[Measurement]],
    verdicts: Sequence[Verdict],
) -> Path:
    claim, note = planned.claim, f"Mean ± sample standard deviation over {counted(len(made.seeds), 'seed')}."
    rules = [RULE, *([BY_TOKEN] if any(one.by_token is not None for one in verdicts) else [])]
    rules += [QUICK] if made.scale == "quick" else []
    dots = svg(by_seed(made), f"{made.name}-seeds", "Figures by seed", "one dot per seed, one row per arm")
    seeds, trained = [Figure("", dots, DOTS)], training_curves(made.name, planned.runs)
    if trained is not None:
        seeds.insert(0, Figure("Validation while training", trained, SEEDS_AND_MEAN))
    strength = powers(verdicts, made.effect, len(made.seeds))
    sections = [
        Section("Published and ours", tables=[Table("", *table(made), note)]),
        Section("Comparisons", rules, tables=[comparisons(made)]),
        Section("Every seed", legend=legend(made.arms), figures=seeds),
        Section("How many seeds", [made.planned], tables=[Table("", POWERS, strength, FACTOR)] if strength else []),
    ]
    for one in drawings(made):
        drawing = svg(one.figure, one.name, one.shows, f"{one.marks}, the mean over seeds")
        sections.append(Section(one.heading, figures=[Figure("", drawing)]))
    if planned.trials:
        rows = [
            [label, ", ".join(trial.settings), "diverged" if trial.loss is None else f"{trial.loss:.4f}"]
            for label, arm in made.arms.items()
            for trial in arm.grid
        ]
        tried = Table("", ["arm", "settings", "nats per token, valid"], rows)
        sections.append(Section("Tuning", [TUNING], tables=[tried]))
    if (curve := claim.measure.curve) is not None:
        figures = [Figure("", measured_curves(claim.name, curve, measurements))]
        heading = curve.name[0].upper() + curve.name[1:]
        sections.append(Section(heading, legend=legend(measurements), figures=figures))
    return write_page(
        out, kind=f"Reproduction at {made.scale} scale: {claim.source}", title=claim.sentence, verdict=made.line,
        text=[claim.notes] if claim.notes else [], sections=sections,
    )  # fmt: skip


def table(made: ClaimRecord) -> tuple[list[str], list[list[str]]]:
    """Header and rows of published | ours, for every metric, mean ± standard deviation over the seeds."""
    header = ["arm", f"published, {made.headline}", *(f"ours, {words}" for words in made.metrics.values())]
    return header, [
        [label, arm.published or "", *(arm.figures[metric].words for metric in made.metrics)]
        for label, arm in made.arms.items()
    ]


def comparisons(made: ClaimRecord) -> Table:
    rows = [[one.statement, one.figures, one.line] for one in made.comparisons]
    return Table("", ["comparison", "figures", "answer"], rows, prose=True)


POWERS = ["comparison", "deviation of the logarithms", "power for the planned effect", "factor detected, power 80 %"]


def powers(verdicts: Sequence[Verdict], effect: float | None, count: int) -> list[list[str]]:
    """Rows below `POWERS` for the ratios: the power by the deviation observed, and what `count` seeds detect.

    `effect` is the planned one, None where there was none. The effect that was observed is not used: the power to
    detect it is a function of the p-value alone.
    """
    rows = []
    for verdict in verdicts:
        deviation = math.nan if verdict.judgement is None else verdict.judgement.deviation
        if math.isnan(deviation):
            continue
        size = None if effect is None else abs(effect) / deviation if deviation else math.inf
        found = "" if size is None else f"{100 * power(count, size):.0f} %"
        rows.append([verdict.statement, f"{deviation:.2g}", found, f"{math.exp(detectable(count, deviation)):.4g}"])
    return rows
