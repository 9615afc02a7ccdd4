"""The drawings of a study, and the page of a claim.

The page has published figures and ours, every comparison, how many seeds, and the drawings.
"""

import math
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

import matplotlib.figure
import numpy as np
from markupsafe import Markup
from matplotlib.ticker import MaxNLocator, NullLocator

from elman.drawing.dots import Row, draw_dots
from elman.drawing.page import Figure, Section, Table, write_page
from elman.drawing.plots import Curve, Plot, draw, is_empty
from elman.drawing.points import Point, draw_points
from elman.drawing.style import canvas, colour, label, legend, svg
from elman.errors import counted
from elman.study.claim import CurveAxes, Measurement
from elman.study.comparison import Verdict
from elman.study.record import ClaimRecord
from elman.study.runs import PlannedRun
from elman.study.statistics import MARGIN, detectable, power
from elman.study.store import Plan, Planned

_NUMBER = re.compile(r"(\d[\d,]*(?:\.\d+)?)(?: ± [\d.]+)?(?: \([^()]*\))?")


def published_number(text: str | None) -> float | None:
    """The published figure where it is one number, maybe with a deviation and a remark in brackets.

    Example:
        >>> published_number("1,240 ± 80"), published_number("56.4 (PTB)"), published_number("57.0 to 50.5")
        (1240.0, 56.4, None)
    """
    found = _NUMBER.fullmatch(text or "")
    return None if found is None else float(found[1].replace(",", ""))


DOTS = "A dot per seed, a line at their mean; a diamond is the published figure where it is one number near ours."


def by_seed(made: ClaimRecord, size: Literal["wide", "narrow"] = "wide") -> matplotlib.figure.Figure:
    found = {
        name: (arm.figures[made.headline].values, published_number(arm.published)) for name, arm in made.arms.items()
    }
    return draw_dots([Row(name, *row) for name, row in found.items()], made.metrics[made.headline], size)


class Drawing(NamedTuple):
    """A drawing of a record beside that by seed: a name for files, a heading, what it shows, and how."""

    name: str
    heading: str
    shows: str
    marks: str
    figure: matplotlib.figure.Figure


def drawings(made: ClaimRecord) -> list[Drawing]:
    """Those against costs and of the course of training, where the claim asks for them.

    Against costs a point per arm; the points of a series are a line, in the order of their costs, named where it ends.
    Of the course a line per arm, which ends in a dot, where all arms have one.
    """
    found = list[Drawing]()
    if made.cost is not None:
        lines = defaultdict[str, list[tuple[float, float]]](list)
        for name, arm in made.arms.items():
            x, y = arm.figures[made.cost].mean, arm.figures[made.headline].mean
            if x is not None and y is not None:
                lines[arm.series or name].append((x, y))
        cost, reached = made.metrics[made.cost], made.metrics[made.headline]
        points = [
            Point(name, *last, before) for name, (*before, last) in zip(lines, map(sorted, lines.values()), strict=True)
        ]
        marks = "a line per series of arms" if any(arm.series for arm in made.arms.values()) else "a point per arm"
        figure = draw_points(points, cost, reached, steps=True)
        found.append(Drawing(f"{made.name}-cost", "What it costs", f"{reached} against {cost}", marks, figure))
    if made.course is not None and all(arm.course for arm in made.arms.values()):
        points = [Point(name, *arm.course[-1], arm.course[:-1]) for name, arm in made.arms.items()]
        across, reached = made.course
        shows, figure = f"{reached} against {across}", draw_points(points, across, reached)
        found.append(Drawing(f"{made.name}-course", "In the course of training", shows, "a line per arm", figure))
    return found


def validation(name: str, runs: Mapping[str, Sequence[Planned]]) -> Plot | None:
    """Validation by epoch: for every arm a thin line per seed and their mean; None where no run has a log.

    A ring is the first validation of averaged weights. The mean, of perplexities geometric, ends where a seed ends.
    """
    curves, rings, scale = list[Curve](), list[tuple[float, float, int]](), None
    for number, each in enumerate(runs.values()):
        logs = [(run, log.valid) for run in each if isinstance(run, PlannedRun) and (log := run.metrics) is not None]
        seeds = [checks for _, checks in logs if checks]
        if not seeds:
            continue
        scale = logs[0][0].recipe.data.reporting
        for checks in seeds:
            curves.append(Curve([one.epoch for one in checks], [scale.of(one.nll) for one in checks], number))
            begun = next((check for check in checks if check.averaged), None)
            rings += [] if begun is None else [(begun.epoch, scale.of(begun.nll), number)]
        together = list(zip(*seeds, strict=False))
        epochs = [sum(one.epoch for one in each) / len(each) for each in together]
        nats = [sum(one.nll for one in each) / len(each) for each in together]
        curves.append(Curve(epochs, [scale.of(value) for value in nats], number, "checks"))
    if scale is None:
        return None
    title = f"{scale.name[0].upper()}{scale.name[1:]} on the validation split against epochs"
    shown = "a thin line per seed, a thick one for their mean"
    plot = Plot(f"{name}-validation", title, shown, "epochs", scale.quantity, curves, rings=rings)
    return None if is_empty(plot) else plot


SEEDS_AND_MEAN = "Thin: a seed; thick: their mean. A ring: the first validation of averaged weights."
"""Under the curves."""


def training_curves(name: str, runs: Mapping[str, Sequence[Planned]]) -> Markup | None:
    plot = validation(name, runs)
    return None if plot is None else draw(plot)


def measured_curves(name: str, drawn: CurveAxes, measurements: Mapping[str, Sequence[Measurement]]) -> Markup:
    figure, axes = canvas("wide")
    for number, each in enumerate(measurements.values()):
        for one in each:
            values = np.array(one.curves.get(drawn.name, []))
            if drawn.relative:
                values = values / values[:1]
            if drawn.logarithmic:
                values = np.maximum(values, 1e-17)
            axes.plot(np.arange(1, len(values) + 1), values, color=colour(number), linewidth=1.2)
    if drawn.logarithmic:
        axes.set_yscale("log")
    axes.xaxis.set_major_locator(MaxNLocator(nbins=6, integer=True))
    axes.yaxis.set_minor_locator(NullLocator())
    label(axes, drawn.across, "relative to the first" if drawn.relative else drawn.name)
    return svg(figure, f"{name}-curves", drawn.name, "one line per seed and arm")


RULE = (
    "Ratios are judged by a paired t test on logarithms, seed by seed, at the 5 % level; bounds must hold in every"
    " seed. The claim holds if every comparison does; one that fails refutes it if its p-value times the number of"
    f" comparisons tested is below 5 %. A ratio that two one-sided t tests find less than {100 * MARGIN:g} % from 1 is"
    " reported as no difference above the smallest bound that they give. An undecided comparison names that bound,"
    " the number of seeds that would detect a difference of the observed size with a power of 80 %, and where its mean"
    " lies."
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
    strength = powers(verdicts, made.effect)
    sections = [
        Section("Published and ours", tables=[Table("", *table(made), note)]),
        Section("Comparisons", rules, tables=[comparisons(made)]),
        Section("Every seed", legend=legend(made.arms), figures=seeds),
        Section("How many seeds", planning(made), tables=[Table("", POWERS, strength, FACTOR)] if strength else []),
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


def planning(made: ClaimRecord) -> list[str]:
    return [made.planned, *(one.words for one in made.plans[-1:])]


def table(made: ClaimRecord) -> tuple[list[str], list[list[str]]]:
    """Header and rows of published | ours, for every metric, mean ± standard deviation over the seeds."""
    published, ours = (f" ({text})" if text else "" for text in (made.published_text, made.text))
    header = ["arm", f"published{published}, {made.headline}", *(f"ours{ours}, {one}" for one in made.metrics.values())]
    return header, [
        [label, arm.published or "", *(arm.figures[metric].words for metric in made.metrics)]
        for label, arm in made.arms.items()
    ]


def comparisons(made: ClaimRecord) -> Table:
    rows = [[one.statement, one.figures, one.line] for one in made.comparisons]
    return Table("", ["comparison", "figures", "answer"], rows, prose=True)


POWERS = ["comparison", "deviation of the logarithms", "power for the planned effect", "factor detected, power 80 %"]


def powers(verdicts: Sequence[Verdict], effect: float | None) -> list[list[str]]:
    """Rows below `POWERS` for the ratios: the power by the deviation observed, and what the seeds judged detect.

    `effect` is the planned one, None where there was none. The effect that was observed is not used: the power to
    detect it is a function of the p-value alone.
    """
    rows = []
    for verdict in verdicts:
        found = verdict.judgement
        if found is None or math.isnan(found.deviation):
            continue
        count, deviation = found.count, found.deviation
        size = None if effect is None else abs(effect) / deviation if deviation else math.inf
        planned = "" if size is None else f"{100 * power(count, size):.0f} %"
        rows.append([verdict.statement, f"{deviation:.2g}", planned, f"{math.exp(detectable(count, deviation)):.4g}"])
    return rows
