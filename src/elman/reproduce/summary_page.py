"""The summary of the claims as one HTML page, and as Markdown with a drawing per claim."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from markupsafe import Markup

from elman.drawing.page import Figure, Section, Table, write_page
from elman.drawing.style import svg, svg_file
from elman.files import write_atomic
from elman.reproduce.arm import at_scale
from elman.reproduce.figures import DOTS, by_seed
from elman.reproduce.page import comparisons, table
from elman.reproduce.record import ClaimRecord
from elman.reproduce.summary import WITHIN, Summary

HEADER = ["claim", "verdict", "p", "p, Holm", "seeds", "minutes"]
IMAGES = Path("images", "claims")
"""Where the drawings of a Markdown file are, from its folder."""


def rows(summary: Summary) -> list[list[str]]:
    """Below `HEADER`, a row for each claim, those that were not run last."""
    ran = [
        [
            one.name,
            one.verdict,
            _p(summary.p_values.get(one.name)),
            _p(summary.adjusted.get(one.name)),
            str(len(one.seeds)),
            "" if one.minutes is None else f"{one.minutes:.1f}",
        ]
        for one in summary.records
    ]
    return [*ran, *([claim.name, "not run", "", "", "", ""] for claim in summary.missing)]


QUICK = (
    "At the scale quick a p-value is that of a test by token of the models trained from one seed; how much trainings"
    " differ by seed is not in it."
)


def _remarks_on(summary: Summary) -> list[str]:
    """How to read the p-values and the drawings, and the time of all trainings."""
    total = f"The trainings took {summary.minutes:,.0f} minutes in all; one that several claims use counts once."
    return [
        summary.chance,
        WITHIN,
        *([QUICK] if summary.scale == "quick" else []),
        f"Drawings: {DOTS[0].lower()}{DOTS[1:]}",
        total,
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
    first = Section("All claims", _remarks_on(summary), tables=[Table("", HEADER, overview)])
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
    texts = [f"{made.claim} ({made.source}).", f"Verdict: {made.verdict}.", *_remarks(made)]
    figures = [Figure(made.metrics[made.headline], drawing)]
    return Section(made.name, texts, figures=figures, tables=tables, body=page, anchor=made.name)


def _remarks(made: ClaimRecord) -> list[str]:
    """Notes, seeds, minutes and versions, as far as there are any."""
    facts = [made.planned]
    if made.minutes is not None:
        facts.append(f"Training: {made.minutes:.1f} minutes.")
    if made.versions:
        facts.append(f"Trained by elman {', '.join(made.versions)}.")
    return [*([made.notes] if made.notes else []), " ".join(facts)]


def write_markdown(path: Path, summary: Summary) -> Path:
    """Write the summary as Markdown, and a drawing of each claim into `IMAGES` beside it; returns the path."""
    parts = [
        "# Published claims",
        f"Written by `elman reproduce summary` from the results at {summary.scale} scale: {summary.tally}.",
        _markdown(["claim", "published", "ours", "verdict"], map(_glance, summary.records)),
    ]
    if summary.missing:
        parts.append(f"Not run: {', '.join(f'`{claim.name}`' for claim in summary.missing)}.")
    tests = [[f"`{name}`", *cells] for name, *cells in rows(summary)[: len(summary.records)]]
    parts += ["## Tests, seeds and times", *_remarks_on(summary), _markdown(HEADER, tests)]
    for made in summary.records:
        file, judged = IMAGES / f"{made.name}.svg", comparisons(made)
        drawing = svg_file(by_seed(made, "narrow"), made.name, made.claim, "one dot per seed, one row per arm")
        write_atomic(path.parent / file, drawing)
        parts += [
            f"## {made.name}",
            _text(f"**{made.verdict[0].upper()}{made.verdict[1:]}**: {made.claim} ({made.source})."),
            f"![{made.metrics[made.headline]} by arm, a dot per seed]({file.as_posix()})",
            _markdown(*table(made)),
            _markdown(judged.header, judged.rows),
            *map(_text, _remarks(made)),
        ]
    write_atomic(path, "\n\n".join(parts) + "\n")
    return path


def _glance(made: ClaimRecord) -> list[str]:
    """A claim with a link to its section, the published figures and ours by arm, and the verdict."""
    published = [f"{label}: {arm.published}" for label, arm in made.arms.items() if arm.published]
    ours = [f"{label}: {arm.figures[made.headline].words}" for label, arm in made.arms.items()]
    claim = f"[{made.name}](#{made.name}): {made.claim} ({made.source})"
    return [claim, "; ".join(published), f"{'; '.join(ours)} ({made.metrics[made.headline]})", made.verdict]


def _markdown(header: Sequence[str], cells: Iterable[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [list(header), ["---"] * len(header), *map(list, cells)]
    return "\n".join(f"| {' | '.join(_text(cell).replace('|', chr(92) + '|') for cell in line)} |" for line in lines)


def _text(plain: str) -> str:
    """Without what Markdown reads as a tag, such as <unk>."""
    return plain.replace("<", "&lt;")
