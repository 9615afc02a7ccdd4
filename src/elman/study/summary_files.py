"""The summary of the claims as one HTML page, and as Markdown with a drawing per claim, which keeps older results."""

import dataclasses
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from markupsafe import Markup

from elman.drawing.page import Figure, Section, Table, write_page
from elman.drawing.style import svg, svg_file
from elman.errors import UserError, command, notice
from elman.files import write_atomic
from elman.study.claim import Scale, at_scale
from elman.study.figures import by_seed, comparisons, drawings, planning, table
from elman.study.record import ClaimRecord
from elman.study.summary import HEADER, Row, Summary


def remarks(made: ClaimRecord) -> list[str]:
    facts = planning(made)
    if made.minutes is not None:
        by = f", by {', '.join(made.processors)}" if made.processors else ""
        facts.append(f"Training: {made.minutes:.1f} minutes{by}.")
    if made.versions:
        facts.append(f"Trained by elman {', '.join(made.versions)}.")
    return [*([made.notes] if made.notes else []), " ".join(facts)]


ONE_DOT = "one dot per seed, one row per arm"


def write_index(out: Path, summary: Summary) -> Path:
    """Write the page into the folder of the claims' pages, to which it links; returns its path."""
    names = {one.name for one in summary.records}
    overview = [
        [Markup('<a href="#{0}">{0}</a>').format(name) if name in names else name, *cells]
        for name, *cells in summary.table()
    ]
    sections = [Section("All claims", summary.remarks, tables=[Table("", HEADER, overview)])]
    for made in summary.records:
        link = Markup('<p><a href="{}.html">The page of this claim</a></p>').format(at_scale(made.name, made.scale))
        figure = Figure(made.metrics[made.headline], svg(by_seed(made), f"{made.name}-seeds", made.name, ONE_DOT))
        texts = [f"{made.claim} ({made.source}).", f"Verdict: {made.verdict}.", *remarks(made)]
        tables = [Table("", *table(made)), comparisons(made)]
        sections.append(Section(made.name, texts, figures=[figure], tables=tables, body=link, anchor=made.name))
    return write_page(
        out / f"{at_scale('index', summary.scale)}.html",
        kind=f"Reproduction of published claims at {summary.scale} scale", title="Published claims",
        verdict=f"{summary.tally[0].upper()}{summary.tally[1:]}.", sections=sections,
    )  # fmt: skip


IMAGES = Path("images", "claims")  # where the drawings are, from the file's folder
MANY = 8  # the table at the top has the figures of this many arms at most, the section of the claim has all

TITLE = "# Published claims"
BY = "Written by `elman reproduce summary` from the results at {} scale"
TESTS = "Tests, seeds and times"


@dataclass(frozen=True)
class Entry:
    """A claim in such a file: its cells in the table at the top, its row in the table of tests, and its section."""

    glance: Sequence[str]
    row: Row
    section: str


def write_markdown(path: Path, summary: Summary) -> Path:
    """Write the summary, and drawings of each claim into `IMAGES` beside it; returns the path.

    Claims that `path` describes already and the summary has no result of are kept. Raises UserError where `path` is a
    file that was not written for this scale by this function.
    """
    earlier = read_markdown(path, summary.scale) if path.is_file() else {}
    summary = dataclasses.replace(summary, earlier=[entry.row for entry in earlier.values()])
    entries = {name: earlier[name] for name in summary.kept}
    if entries:
        notice(f"{path}: {len(entries)} claims have no new result and are kept as they stand")
    known = {row.name: row for row in summary.rows}
    data = {claim.name: claim.data for claim in summary.claims}
    for made in (made for made in summary.records if made.name in known):
        entries[made.name] = Entry(
            _glance(made), known[made.name], _written_section(made, path.parent, data[made.name])
        )
    tests = [[f"`{name}`", *cells] for name, *cells in summary.table()[: len(summary.rows)]]
    glances = (entries[row.name].glance for row in summary.rows)
    missing = [f"Not run: {', '.join(f'`{claim.name}`' for claim in summary.missing)}."] if summary.missing else []
    parts = [
        TITLE, f"{BY.format(summary.scale)}: {summary.tally}.",
        markdown(["claim", "published", "ours", "verdict"], glances), *missing,
        f"## {TESTS}", *summary.remarks, markdown(HEADER, tests), *(entries[row.name].section for row in summary.rows),
    ]  # fmt: skip
    write_atomic(path, "\n\n".join(parts) + "\n")
    return path


def read_markdown(path: Path, scale: Scale) -> dict[str, Entry]:
    """The claims that `write_markdown` described in a file; raises UserError where it did not write it for `scale`."""
    head, *sections = path.read_text(encoding="utf-8").rstrip("\n").split("\n\n## ")
    names = [section.partition("\n")[0] for section in sections]
    if not head.startswith(f"{TITLE}\n\n{BY.format(scale)}: ") or names[:1] != [TESTS]:
        raise UserError(f"{path}: not a summary of claims at the scale {scale}; choose another file, or remove it")
    glances, tests, found = _cells(head), _cells(sections[0]), dict[str, Entry]()
    try:
        for name, section in zip(names[1:], sections[1:], strict=True):
            _, verdict, p, _, seeds, minutes = tests[f"`{name}`"]
            row = Row(name, verdict, float(p) if p else None, int(seeds), float(minutes) if minutes else None)
            found[name] = Entry(glances[f"[{name}]"], row, f"## {section}")
    except (KeyError, ValueError) as error:
        raise UserError(f"{path}: its claims cannot be read ({error}); choose another file, or remove it") from None
    return found


def _cells(text: str) -> dict[str, list[str]]:
    lines = [line.removeprefix("| ").removesuffix(" |") for line in text.splitlines() if line.startswith("| ")]
    cells = [[cell.replace("\0", "|") for cell in line.replace("\\|", "\0").split(" | ")] for line in lines]
    return {row[0].partition("(")[0]: row for row in cells}


def _written_section(made: ClaimRecord, folder: Path, data: str | None) -> str:
    """The claim, one drawing, published figures and ours, comparisons, and how to follow them; other drawings linked.

    A drawing of the course that is there is kept where the record has no points for it. `data`: what --data must be.
    """
    seeds = f"{made.metrics[made.headline]} by arm, a dot per seed"
    drawn = [(made.name, by_seed(made, "narrow"), ONE_DOT)]
    drawn += [(one.name, one.figure, one.marks) for one in drawings(made)]
    for name, figure, marks in drawn:
        write_atomic(folder / IMAGES / f"{name}.svg", svg_file(figure, name, made.claim, marks))
    there = {"cost": made.cost, "course": made.course}
    others = [IMAGES / f"{made.name}-{kind}.svg" for kind, labels in there.items() if labels]
    links = [f"[{path.stem}]({path.as_posix()})" for path in others if (folder / path).is_file()]
    judged = comparisons(made)
    named = [command("reproduce", word, made.name) for word in ("list", "summary")]
    again = command("reproduce", made.name, "--threads", 1) + (" --data DATA" if data else "")
    return "\n\n".join([
        f"## {made.name}",
        _text(f"**{made.verdict[0].upper()}{made.verdict[1:]}**: {made.claim} ({made.source})."),
        f"![{seeds}]({(IMAGES / f'{made.name}.svg').as_posix()})",
        *([f"More drawings: {', '.join(links)}."] if links else []),
        markdown(*table(made)), markdown(judged.header, judged.rows), *map(_text, remarks(made)),
        f"Follow it: `{named[0]}` names arms, recipes and settings; `{named[1]} --out results/claims` shows plan and"
        f" figures by seed, and judges them again; `{again}` trains it{_text(f' (DATA: {data})' if data else '')}.",
    ])  # fmt: skip


def _glance(made: ClaimRecord) -> list[str]:
    """A claim with a link to its section, the published figures and ours by arm, and the verdict.

    Ours of all arms; of many those that every comparison names, then the lowest and the highest by their means.
    """
    shown = list(made.arms)
    if len(made.arms) > MANY:
        ranked = sorted(made.arms, key=lambda label: statistics.fmean(made.arms[label].figures[made.headline].values))
        named = [label for label in made.arms if all(f" of {label} " in one.statement for one in made.comparisons)]
        shown = list(dict.fromkeys([*named, ranked[0], ranked[-1]]))
    published = [f"{label}: {arm.published}" for label, arm in made.arms.items() if arm.published]
    ours = [f"{label}: {made.arms[label].figures[made.headline].words}" for label in shown]
    if more := len(made.arms) - len(ours):
        rest = {made.arms[label].figures[made.headline].words for label in made.arms if label not in shown}
        same = rest == {made.arms[shown[-1]].figures[made.headline].words}
        ours[-1:] = [f"the {more + 1} others: {rest.pop()}"] if same else [ours[-1], f"{more} between"]
    claim = f"[{made.name}](#{made.name}): {made.claim} ({made.source})"
    reported = f"{'; '.join(published)} ({made.published_text})" if published and made.published_text else ""
    measured = made.metrics[made.headline] + (f"; {made.text}" if made.text else "")
    return [claim, reported or "; ".join(published), f"{'; '.join(ours)} ({measured})", made.verdict]


def markdown(header: Sequence[str], cells: Iterable[Sequence[str]]) -> str:
    """A table."""
    lines = [list(header), ["---"] * len(header), *map(list, cells)]
    return "\n".join(f"| {' | '.join(_text(cell).replace('|', chr(92) + '|') for cell in line)} |" for line in lines)


def _text(plain: str) -> str:
    """Without what Markdown reads as a tag, such as <unk>."""
    return plain.replace("<", "&lt;")
