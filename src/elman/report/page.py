"""The report: one HTML file about one run or several, which needs nothing but a browser."""

import math
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from jinja2 import Environment

import elman
from elman.data.vocabulary import Vocabulary
from elman.errors import UserError
from elman.files import write_atomic
from elman.report import attention, comparison, curves, plots, roll, surprisal, tables
from elman.report.folder import RunFolder, read_folder
from elman.report.templates import templates

MISSING, NO_BREAK = "\N{EN DASH}", "\N{NO-BREAK SPACE}"


def write_report(runs: Sequence[Path], out: Path | None = None) -> Path:
    """Write the page about run folders and return where it is.

    Args:
        runs: one run folder or several; several are laid over each other.
        out: the page; by default `RUN/report.html` for one run and `report.html` here for several.

    Raises:
        UserError: no folder is given, one is not a run or damaged, or the page cannot be written.

    """
    if not runs:
        raise UserError("nothing to report on: give at least one run folder")
    page = render([read_folder(Path(path)) for path in runs])
    if out is None:
        out = Path(runs[0]) / "report.html" if len(runs) == 1 else Path("report.html")
    if out.is_dir():
        raise UserError(f"{out} is a folder; give the name of a file with --out, such as {out / 'report.html'}")
    write_atomic(out, page.encode(errors="replace"))
    return out


def render(runs: Sequence[RunFolder]) -> str:
    """The page as text."""
    groups = comparison.group_runs(runs)
    labels = dict(zip(map(id, runs), comparison.run_labels(runs), strict=True))
    by_group = len(groups) > 1
    position = {id(run): number for number, run in enumerate(runs)}
    series = {
        id(run): (number if by_group else position[id(run)]) % len(plots.SERIES)
        for number, group in enumerate(groups)
        for run in group.runs
    }
    colours = [series[id(run)] for run in runs]
    tallies = tables.tallies(groups, labels, series)
    return (
        _environment()
        .get_template("page.html")
        .render(
            title=runs[0].title if len(runs) == 1 else _title(groups),
            runs=runs,
            labels=[labels[id(run)] for run in runs],
            legend=_legend(groups, labels, series),
            tallies=tallies,
            ranking=tables.ranking(tallies) if comparison.same_text(runs) else None,
            differences=comparison.differences(groups),
            measure=runs[0].measure,
            losses=[(plot, plots.draw(plot)) for plot in curves.loss_plots(runs, colours)],
            others=[(plot, plots.draw(plot)) for plot in curves.other_plots(runs, colours)],
            version=elman.__version__,
        )
    )


def number(value: float | None, digits: int = 0) -> str:
    """A number with separators, or a dash.

    Example:
        >>> number(21500620), number(73.045, 2), number(None), number(float("nan"))
        ('21,500,620', '73.05', '–', '–')

    """
    return MISSING if value is None or math.isnan(value) else f"{value:,.{digits}f}"


def brief(value: float | None) -> str:
    """A large number in a few characters.

    Example:
        >>> brief(21500620), brief(3647905), brief(9000), brief(None)
        ('21.5 M', '3.65 M', '9,000', '–')

    """
    if value is None or value < 1e5:
        return number(value)
    scaled, unit = (value / 1e9, "G") if value >= 1e9 else (value / 1e6, "M")
    return f"{scaled:.3g} {unit}"


def duration(seconds: float | None) -> str:
    """A time in its two largest units.

    Example:
        >>> duration(0.42), duration(38.2), duration(754), duration(7980), duration(200000)
        ('0.4 s', '38 s', '12 min 34 s', '2 h 13 min', '2 d 7 h')

    """
    if seconds is None or math.isnan(seconds):
        return MISSING
    whole = round(seconds)
    for unit, size, smaller, part in (("d", 86400, "h", 3600), ("h", 3600, "min", 60), ("min", 60, "s", 1)):
        if whole >= size:
            return f"{whole // size} {unit} {whole % size // part} {smaller}"
    return f"{whole} s" if seconds >= 10 else f"{seconds:.1f} s"


def share(part: int | None, whole: int) -> str:
    """A part of a whole in per cent.

    Example:
        >>> share(4794, 82430), share(None, 5)
        ('5.8 %', '–')

    """
    return MISSING if part is None or not whole else f"{100 * part / whole:.1f} %"


def _environment() -> Environment:
    environment = templates()
    environment.filters |= {
        "number": number,
        "ppl": partial(number, digits=2),
        "spread": _spread,
        "trim_zeros": _trim_zeros,
        "tied": _tied,
        "brief": brief,
        "duration": duration,
        "share": share,
        "moment": _moment,
    }
    environment.globals |= {
        "verdict_of": comparison.verdict,
        "published_verdict": comparison.published_verdict,
        "valid_loss": tables.valid_loss,
        "test_loss": tables.test_loss,
        "draw_roll": roll.draw_roll,
        "draw_attention": attention.draw_attention,
        "result_rows": tables.result_rows,
        "widest": tables.widest,
        "parts_of": _parts_of,
        "common_words": _common_words,
        "heat_map": surprisal.heat_map,
        "mean_bits": surprisal.mean_bits,
        "most_surprising": surprisal.most_surprising,
        "hottest": surprisal.HOTTEST,
    }
    return environment


def _title(groups: Sequence[comparison.Group]) -> str:
    count = sum(len(group.runs) for group in groups)
    return f"{groups[0].label}: {count} runs" if len(groups) == 1 else f"{count} runs of {len(groups)} recipes"


def _legend(
    groups: Sequence[comparison.Group], labels: dict[int, str], series: dict[int, int]
) -> list[tuple[str, int]]:
    """What the colours stand for when there are several runs: the recipes, or the runs of the one recipe."""
    if len(groups) == 1:
        return [(labels[id(run)], series[id(run)]) for run in groups[0].runs]
    return [
        (
            f"{group.label} ({len(group.runs)} runs)" if len(group.runs) > 1 else group.label,
            series[id(group.runs[0])],
        )
        for group in groups
    ]


def _parts_of(run: RunFolder) -> list[tuple[str, str]]:
    """The sections that a run's page will have, and their anchors."""
    parts = (
        ("Results", tables.result_rows(run)),
        ("Samples", run.samples),
        ("Surprisal", run.passage),
        ("Data", run.data or run.vocabulary),
        ("Environment", run.environment),
        ("Configuration", True),
    )
    return [(name, name.lower()) for name, there in parts if there]


def _common_words(vocabulary: Vocabulary, count: int = 24) -> list[tuple[str, int]]:
    pairs = sorted(zip(vocabulary.words, vocabulary.counts, strict=True), key=lambda pair: -pair[1])
    return pairs[:count]


def _spread(value: comparison.Spread | None) -> str:
    if value is None:
        return MISSING
    return f"{value.mean:,.2f}" if value.deviation is None else f"{value.mean:,.2f} ± {value.deviation:.2f}"


def _trim_zeros(text: str) -> str:
    return text.rstrip("0").rstrip(".") if "." in text else text


def _tied(text: str) -> str:
    """Per cent and ± signs that no line break parts from their numbers."""
    return text.replace(" %", f"{NO_BREAK}%").replace(" ± ", f"{NO_BREAK}±{NO_BREAK}")


def _moment(text: object) -> str:
    """An ISO time as a person writes it; anything else as it is."""
    try:
        moment = datetime.fromisoformat(str(text)).astimezone(UTC)
    except ValueError:
        return str(text)
    return f"{moment.day} {moment:%B %Y, %H:%M} UTC"
