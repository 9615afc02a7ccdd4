"""The summary of the claims as one HTML page."""

from pathlib import Path

from markupsafe import Markup

from elman.drawing.page import Figure, Section, Table, write_page
from elman.drawing.style import svg
from elman.reproduce.arm import at_scale
from elman.reproduce.figures import DOTS, by_seed
from elman.reproduce.page import comparisons, table
from elman.reproduce.record import ClaimRecord
from elman.reproduce.summary import WITHIN, Summary

HEADER = ["claim", "verdict", "p", "p, Holm", "seeds", "minutes"]


def rows(summary: Summary) -> list[list[str]]:
    """Below `HEADER`, a row for each claim, those that were not run last."""
    ran = [
        [
            row.name,
            row.verdict,
            _p(row.p_value),
            _p(summary.adjusted.get(row.name)),
            str(row.seeds),
            "" if row.minutes is None else f"{row.minutes:.1f}",
        ]
        for row in summary.rows
    ]
    return [*ran, *([claim.name, "not run", "", "", "", ""] for claim in summary.missing)]


QUICK = (
    "At the scale quick a p-value is that of a test by token of the models trained from one seed; how much trainings"
    " differ by seed is not in it."
)


def remarks_on(summary: Summary) -> list[str]:
    """How to read the p-values and the drawings, and the time of all trainings where it is known."""
    total = f"The trainings took {summary.minutes:,.0f} minutes in all; one that several claims use counts once."
    return [
        summary.chance,
        WITHIN,
        *([QUICK] if summary.scale == "quick" else []),
        f"Drawings: {DOTS[0].lower()}{DOTS[1:]}",
        *([] if summary.kept else [total]),
    ]


def _p(value: float | None) -> str:
    return "" if value is None else f"{value:.2g}"


def write_index(out: Path, summary: Summary) -> Path:
    """Write the page beside those of the claims, to which it links; returns its path."""
    names = {one.name for one in summary.records}
    overview = [
        [Markup('<a href="#{0}">{0}</a>').format(name) if name in names else name, *cells]
        for name, *cells in rows(summary)
    ]
    first = Section("All claims", remarks_on(summary), tables=[Table("", HEADER, overview)])
    return write_page(
        out / f"{at_scale('index', summary.scale)}.html",
        kind=f"Reproduction of published claims at {summary.scale} scale",
        title="Published claims",
        verdict=f"{summary.tally[0].upper()}{summary.tally[1:]}.",
        sections=[first, *map(_section, summary.records)],
    )


def _section(made: ClaimRecord) -> Section:
    drawing = svg(by_seed(made), f"{made.name}-seeds", made.name, "one dot per seed, one row per arm")
    page = Markup('<p><a href="{}.html">The page of this claim</a></p>').format(at_scale(made.name, made.scale))
    tables = [Table("", *table(made)), comparisons(made)]
    texts = [f"{made.claim} ({made.source}).", f"Verdict: {made.verdict}.", *remarks(made)]
    figures = [Figure(made.metrics[made.headline], drawing)]
    return Section(made.name, texts, figures=figures, tables=tables, body=page, anchor=made.name)


def remarks(made: ClaimRecord) -> list[str]:
    """Notes, seeds, minutes, processors and versions, as far as there are any."""
    facts = [made.planned]
    if made.minutes is not None:
        by = f", by {', '.join(made.processors)}" if made.processors else ""
        facts.append(f"Training: {made.minutes:.1f} minutes{by}.")
    if made.versions:
        facts.append(f"Trained by elman {', '.join(made.versions)}.")
    return [*([made.notes] if made.notes else []), " ".join(facts)]
