"""The page of a reproduction: published figures and ours, every comparison, and the figures of every seed drawn."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from matplotlib.ticker import MaxNLocator, NullLocator

from elman.drawing.page import Figure, Section, Table, write_page
from elman.drawing.style import MUTED, canvas, colour, label, legend, svg
from elman.reproduce.arm import Measurement, Scale
from elman.reproduce.claim import Claim
from elman.reproduce.comparison import Verdict
from elman.reproduce.statistics import spread

Measurements = Mapping[str, Sequence[Measurement]]


def write_claim_page(
    out: Path, claim: Claim, scale: Scale, measurements: Measurements, verdicts: Sequence[Verdict], verdict: Verdict
) -> Path:
    """Write the page of a claim and return its path."""
    header, rows = table(claim, measurements)
    count = len(next(iter(measurements.values())))
    note = f"Mean ± sample standard deviation over {count} seed{'s' if count > 1 else ''}."
    judged = [[each.statement, each.figures, each.line] for each in verdicts]
    rule = (
        "Ratios are judged by a paired t test on logarithms, seed by seed, at the 5 % level; bounds must hold in"
        " every seed. The claim holds if every comparison does. An undecided comparison names the number of seeds that"
        " would detect a difference of the observed size with a power of 80 %."
    )
    sections = [
        Section("Published and ours", tables=[Table("", header, rows, note)]),
        Section("Comparisons", [rule], tables=[Table("", ["comparison", "figures", "answer"], judged)]),
        _seeds(claim, measurements),
    ]
    if claim.measure.curve is not None:
        sections.append(_curves(claim, measurements))
    return write_page(
        out,
        kind=f"Reproduction at {scale} scale",
        title=claim.name,
        verdict=f"{claim.sentence[0].upper()}{claim.sentence[1:]}: {verdict.line}.",
        text=[f"Claimed in {claim.source}. {claim.notes}".strip()],
        sections=sections,
    )


def table(claim: Claim, measurements: Measurements) -> tuple[list[str], list[list[str]]]:
    """Header and rows of published | ours, for every metric, mean ± standard deviation over the seeds."""
    header = ["arm", f"published, {claim.headline}", *(f"ours, {words}" for words in claim.measure.metrics.values())]
    ours = {
        arm: [spread([one.figures[metric] for one in each]) for metric in claim.measure.metrics]
        for arm, each in measurements.items()
    }
    return header, [[arm, claim.published.get(arm, ""), *row] for arm, row in ours.items()]


def _seeds(claim: Claim, measurements: Measurements) -> Section:
    figure, axes = canvas("wide")
    by_arm = [[one.figures[claim.headline] for one in each] for each in measurements.values()]
    for place, values in enumerate(by_arm):
        axes.plot([place] * len(values), values, "o", color=colour(place), alpha=0.8)
    axes.set_xlim(-0.5, len(measurements) - 0.5)
    axes.xaxis.set_major_locator(NullLocator())
    finite = [value for values in by_arm for value in values if math.isfinite(value)]
    if finite and max(finite) > 5 * min(finite) > 0:
        axes.set_yscale("log")
    axes.set_ylabel(claim.measure.metrics[claim.headline], color=MUTED, fontsize=9.5)
    drawing = svg(figure, f"{claim.name}-seeds", "Figures by seed", "one dot per seed, one column per arm")
    return Section("Every seed", legend=legend(measurements), figures=[Figure("", drawing)])


def _curves(claim: Claim, measurements: Measurements) -> Section:
    drawn = claim.measure.curve
    assert drawn is not None
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
    drawing = svg(figure, f"{claim.name}-curves", drawn.name, "one line per seed and arm")
    return Section(drawn.name[0].upper() + drawn.name[1:], legend=legend(measurements), figures=[Figure("", drawing)])
