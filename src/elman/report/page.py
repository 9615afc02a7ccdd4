"""The report: one self-contained HTML file about one run or several."""

from collections.abc import Callable, Sequence
from pathlib import Path

from elman.drawing import heat_map, page, plots, style
from elman.errors import UserError
from elman.report import comparison, curves, tables
from elman.report.folder import RunFolder, read_folder

FILTERS: tuple[Callable[..., str], ...] = (
    tables.number, tables.mean_and_deviation, tables.trim_zeros, tables.tied, tables.brief, tables.duration,
    tables.share, tables.moment, page.with_code,
)  # fmt: skip

_SPLITS = {"valid": "validation", "test": "the test"}


def write_report(runs: Sequence[Path], out: Path | None = None) -> Path:
    """Write the page about run folders, by default to `RUN/report.html` for one and `report.html` here for several.

    Raises UserError where no folder is given, one is not a run or damaged, or the page cannot be written.
    """
    if not runs:
        raise UserError("nothing to report on: give at least one run folder")
    return write_page([read_folder(Path(path)) for path in runs], out)


def write_page(runs: Sequence[RunFolder], out: Path | None = None) -> Path:
    """As `write_report`, of folders that are read already."""
    text = render(runs)
    if out is None:
        out = runs[0].path / "report.html" if len(runs) == 1 else Path("report.html")
    return page.write(out, text)


def render(runs: Sequence[RunFolder]) -> str:
    """The page as text."""
    groups = comparison.group_runs(runs)
    labels = dict(zip(map(id, runs), comparison.run_labels(runs), strict=True))
    coloured = [group.runs for group in groups] if len(groups) > 1 else [(run,) for run in runs]
    series = {id(run): number % len(style.SERIES) for number, members in enumerate(coloured) for run in members}
    colours = [series[id(run)] for run in runs]
    title = f"{groups[0].name}: {len(runs)} runs" if len(groups) == 1 else f"{len(runs)} runs in {len(groups)} groups"
    return page.render(
        "report.html",
        title=runs[0].title if len(runs) == 1 else title,
        text=_about(runs[0]) if len(runs) == 1 else [],
        playable=any(getattr(sample.figure, "playable", False) for run in runs for sample in run.samples),
        filters={each.__name__: each for each in FILTERS} | {"ppl": tables.loss},
        runs=runs,
        labels=[labels[id(run)] for run in runs],
        legend=_legend(groups, labels, series),
        groups=[(group, [(labels[id(run)], series[id(run)], run) for run in group.runs]) for group in groups],
        ranking=tables.ranking(groups) if comparison.same_text(runs) else None,
        differences=comparison.differences([group.runs[0] for group in groups]),
        scale=runs[0].scale,
        losses=[(plot, plots.draw(plot)) for plot in curves.loss_plots(runs, colours)],
        others=[(plot, plots.draw(plot)) for plot in curves.other_plots(runs, colours)],
        comparison=comparison,
        tables=tables,
        heat_map=heat_map,
        parts_of=_parts_of,
        common_words=lambda of: sorted(zip(of.words, of.counts, strict=True), key=lambda pair: -pair[1])[:24],
    )


def _about(run: RunFolder) -> list[str]:
    """How much a run has read and how large it is, in a sentence."""
    splits = {} if run.data is None else run.data.splits
    if run.data is None or "train" not in splits:
        return []
    counts = [f"{splits[name].tokens:,} for {what}" for name, what in _SPLITS.items() if name in splits]
    held = f", with {' and '.join(counts)}" if counts else ""
    return [f"Trained on {splits['train'].tokens:,} {run.symbol}s of {run.data.name}{held}."]


def _legend(
    groups: Sequence[comparison.Group], labels: dict[int, str], series: dict[int, int]
) -> list[tuple[str, int]]:
    """The colours of several runs: of their groups, or of the runs of a single group."""
    if len(groups) == 1:
        return [(labels[id(run)], series[id(run)]) for run in groups[0].runs]
    counts = (f" ({len(group.runs)} runs)" if len(group.runs) > 1 else "" for group in groups)
    return [(group.name + count, series[id(group.runs[0])]) for group, count in zip(groups, counts, strict=True)]


def _parts_of(run: RunFolder) -> list[tuple[str, str]]:
    """The sections of the page of one run, and their anchors."""
    parts = (
        ("Results", tables.result_rows(run)),
        ("Samples", run.samples),
        ("Surprisal", run.passage),
        ("Data", run.data or run.vocabulary),
        ("Environment", run.environment),
        ("Configuration", True),
    )
    return [(name, name.lower()) for name, there in parts if there]
