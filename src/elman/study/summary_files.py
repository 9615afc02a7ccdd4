"""The summary of the claims as one HTML page, and as Markdown with a drawing per claim, which keeps older results."""

import dataclasses
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from markupsafe import Markup

from elman.drawing.page import Figure, Section, Table, write_page
from elman.drawing.style import svg, svg_file
from elman.errors import UserError, notice
from elman.files import write_atomic
from elman.study.claim import Scale, at_scale
from elman.study.figures import DOTS, Drawing, by_seed, drawings
from elman.study.page import comparisons, table
from elman.study.record import ClaimRecord
from elman.study.summary import WITHIN, Row, Summary

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


IMAGES = Path("images", "claims")
"""Where the drawings are, from the file's folder."""

MANY = 8
"""The table at the top has the figures of this many arms at most; those of all are in the section of the claim."""

TITLE = "# Published claims"
BY = "Written by `elman reproduce summary` from the results at {} scale"
TESTS = "Tests, seeds and times"


@dataclass(frozen=True)
class Entry:
    """A claim in such a file: its cells in the table at the top, its row in that of the tests, and its section."""

    glance: Sequence[str]
    row: Row
    section: str


def write_markdown(path: Path, summary: Summary) -> Path:
    """Write the summary, and drawings of each claim into `IMAGES` beside it; returns the path.

    Claims that `path` describes already and the summary has no result of are kept. Raises UserError where `path` is a
    file that was not written for this scale by this function.
    """
    scale = summary.scale
    earlier = read_markdown(path, scale) if path.is_file() else {}
    summary = dataclasses.replace(summary, earlier=[entry.row for entry in earlier.values()])
    entries = {name: earlier[name] for name in summary.kept}
    if entries:
        notice(f"{path}: {len(entries)} claims have no new result and are kept as they stand")
    for made, row in ((made, row) for made in summary.records for row in summary.rows if row.name == made.name):
        drawing = svg_file(by_seed(made, "narrow"), made.name, made.claim, "one dot per seed, one row per arm")
        write_atomic(path.parent / _drawing(made.name), drawing)
        others = drawings(made)
        for one in others:
            write_atomic(path.parent / _drawing(one.name), svg_file(one.figure, one.name, made.claim, one.marks))
        entries[made.name] = Entry(_glance(made), row, _markdown_section(made, others))
    ordered = [entries[row.name] for row in summary.rows]
    parts = [
        TITLE,
        f"{BY.format(scale)}: {summary.tally}.",
        _markdown(["claim", "published", "ours", "verdict"], (entry.glance for entry in ordered)),
    ]
    if summary.missing:
        parts.append(f"Not run: {', '.join(f'`{claim.name}`' for claim in summary.missing)}.")
    tests = [[f"`{name}`", *cells] for name, *cells in rows(summary)[: len(summary.rows)]]
    parts += [f"## {TESTS}", *remarks_on(summary), _markdown(HEADER, tests)]
    write_atomic(path, "\n\n".join([*parts, *(entry.section for entry in ordered)]) + "\n")
    return path


def read_markdown(path: Path, scale: Scale) -> dict[str, Entry]:
    """The claims that `write_markdown` described in a file; raises UserError where it did not write it for `scale`."""
    head, *sections = path.read_text(encoding="utf-8").rstrip("\n").split("\n\n## ")
    names = [section.partition("\n")[0] for section in sections]
    if not head.startswith(f"{TITLE}\n\n{BY.format(scale)}: ") or names[:1] != [TESTS]:
        raise UserError(f"{path}: not a summary of claims at the scale {scale}; choose another file, or remove it")
    glances, tests = _cells(head), _cells(sections[0])
    try:
        found = {
            name: Entry(glances[f"[{name}]"], _row(name, tests[f"`{name}`"]), f"## {section}")
            for name, section in zip(names[1:], sections[1:], strict=True)
        }
    except (KeyError, ValueError) as error:
        raise UserError(f"{path}: its claims cannot be read ({error}); choose another file, or remove it") from None
    return found


def _cells(text: str) -> dict[str, list[str]]:
    """The cells of the rows of a table, by the first one as far as its link."""
    lines = [line.removeprefix("| ").removesuffix(" |") for line in text.splitlines() if line.startswith("| ")]
    cells = [[cell.replace("\0", "|") for cell in line.replace("\\|", "\0").split(" | ")] for line in lines]
    return {row[0].partition("(")[0]: row for row in cells}


def _row(name: str, cells: Sequence[str]) -> Row:
    _, verdict, p, _, seeds, minutes = cells
    return Row(name, verdict, float(p) if p else None, int(seeds), float(minutes) if minutes else None)


def _markdown_section(made: ClaimRecord, others: Iterable[Drawing]) -> str:
    """Verdict, drawings, tables and remarks of a claim."""
    judged = comparisons(made)
    parts = [
        f"## {made.name}",
        _text(f"**{made.verdict[0].upper()}{made.verdict[1:]}**: {made.claim} ({made.source})."),
        f"![{made.metrics[made.headline]} by arm, a dot per seed]({_drawing(made.name).as_posix()})",
        *(f"![{one.shows}, {one.marks}]({_drawing(one.name).as_posix()})" for one in others),
        _markdown(*table(made)),
        _markdown(judged.header, judged.rows),
        *map(_text, remarks(made)),
    ]
    return "\n\n".join(parts)


def _drawing(name: str) -> Path:
    return IMAGES / f"{name}.svg"


def _glance(made: ClaimRecord) -> list[str]:
    """A claim with a link to its section, the published figures and ours by arm, and the verdict."""
    published = [f"{label}: {arm.published}" for label, arm in made.arms.items() if arm.published]
    ours = [f"{label}: {made.arms[label].figures[made.headline].words}" for label in _shown(made)]
    if more := len(made.arms) - len(ours):
        ours.append(f"{more} between")
    claim = f"[{made.name}](#{made.name}): {made.claim} ({made.source})"
    return [claim, "; ".join(published), f"{'; '.join(ours)} ({made.metrics[made.headline]})", made.verdict]


def _shown(made: ClaimRecord) -> list[str]:
    """All arms; of many those that every comparison names, then the lowest and the highest by their means."""
    if len(made.arms) <= MANY:
        return list(made.arms)
    ranked = sorted(made.arms, key=lambda label: statistics.fmean(made.arms[label].figures[made.headline].values))
    named = [label for label in made.arms if all(f" of {label} " in one.statement for one in made.comparisons)]
    return list(dict.fromkeys([*named, ranked[0], ranked[-1]]))


def _markdown(header: Sequence[str], cells: Iterable[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [list(header), ["---"] * len(header), *map(list, cells)]
    return "\n".join(f"| {' | '.join(_text(cell).replace('|', chr(92) + '|') for cell in line)} |" for line in lines)


def _text(plain: str) -> str:
    """Without what Markdown reads as a tag, such as <unk>."""
    return plain.replace("<", "&lt;")
