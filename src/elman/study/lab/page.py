"""The page of the laboratory: spans, learning curves, and errors propagated back in time."""

import math
from collections.abc import Sequence
from pathlib import Path

from markupsafe import Markup
from matplotlib.ticker import MaxNLocator

from elman.data.classic import classic_task
from elman.drawing.page import Figure, Section, Table, write_page
from elman.drawing.style import MUTED, SERIES, canvas, colour, legend, svg
from elman.study.lab.conduct import Results, Summary, reach, summarise
from elman.study.lab.trial import TrialResult

Line = tuple[Sequence[float], Sequence[float], int]  # x, y, and the colour

LEARNING = (
    "The error at the shortest span of each task, by steps; one line per seed. Below the dotted line the task"
    " counts as learnt; errors below 0.0001 are drawn as 0.0001."
)
FLOWS = (
    "The norm of the gradient of the last step's loss with respect to the state k steps back, averaged over"
    " sequences and divided by that at k = 0: falling lines vanish, rising ones explode; below 1e-12 they are"
    " drawn as 1e-12. First seed and longest span: untrained, and after training."
)


def write_laboratory(out: Path, results: Results, *, title: str, text: Sequence[str] = ()) -> Path:
    rows = summarise(results)
    names = list(dict.fromkeys(_name(row.cell, row.rule) for row in rows))
    tasks = list(dict.fromkeys(row.task for row in rows))
    back = [figure for task in tasks for figure in _flows(task, results, names)]
    sections = [
        Section("The longest span learnt", tables=[Table("", *table(rows))], figures=[_spans(t, rows) for t in tasks]),
        Section("Learning", [LEARNING], legend(names), [_learning(task, results, names) for task in tasks]),
        Section("Errors propagated back in time", [FLOWS], legend(names), back),
    ]
    return write_page(out, kind="Laboratory", title=title, verdict=verdict(rows), sections=sections, text=text)


def table(rows: list[Summary]) -> tuple[list[str], list[list[str]]]:
    header = ["task", "cell", "rule", "span learnt", "by seed", "steps at first", "error at first", "weights", "CPU s"]
    return header, [
        [row.task, row.cell, row.rule, _span(row.median), ", ".join(str(span or "none") for span in row.spans),
         "" if row.steps is None else f"{row.steps:g}", f"{row.error:.3g}", f"{row.parameters:,}",
         f"{row.seconds:,.0f}"]
        for row in rows
    ]  # fmt: skip


def verdict(rows: Sequence[Summary]) -> str:
    parts = []
    for task in dict.fromkeys(row.task for row in rows):
        best = max(row.median for row in rows if row.task == task)
        winners = [_name(row.cell, row.rule) for row in rows if row.task == task and row.median == best]
        found = f"{', '.join(winners)} to span {best:g}" if best else "none learns the first span"
        parts.append(f"{task}: {found}")
    return "; ".join(parts) + " (median over seeds)."


def _name(cell: str, rule: str) -> str:
    return cell if rule == "bptt" else f"{cell}, {rule}"


def _span(span: float) -> str:
    return f"{span:g}" if span else "none"


def _chains(task: str, results: Results) -> list[tuple[str, int, list[TrialResult]]]:
    chains = ((chain.first, outcomes) for chain, outcomes in results.items())
    return [(_name(t.cell, t.rule), t.seed, outcomes) for t, outcomes in chains if t.task == task]


def _spans(task: str, summaries: Sequence[Summary]) -> Figure:
    rows = [row for row in summaries if row.task == task]
    figure, axes = canvas("wide")
    first, longest = min(row.first for row in rows), max(span for row in rows for span in row.spans)
    none = first / 2  # one doubling below the shortest span
    for place, row in enumerate(rows):
        axes.plot([place] * len(row.spans), [span or none for span in row.spans], "o", color=SERIES[0], alpha=0.6)
        axes.plot([place - 0.3, place + 0.3], [row.median or none] * 2, color=SERIES[1], linewidth=2)
    axes.set_yscale("log", base=2)
    spans = [first * 2**doubling for doubling in range(1 + max(0, math.ceil(math.log2(max(longest, 1) / first))))]
    axes.set_yticks([none, *spans], ["none", *map(str, spans)])
    axes.set_ylim(none / 1.2, spans[-1] * 1.2)
    axes.set_xticks(range(len(rows)), [_name(row.cell, row.rule) for row in rows], rotation=30, ha="right")
    axes.set_ylabel("span learnt", color=MUTED, fontsize=9.5)
    text = ", ".join(f"{_name(row.cell, row.rule)} {_span(row.median)}" for row in rows)
    return Figure(task, svg(figure, f"spans-{task}", f"Span learnt, {task}", text))


def _learning(task: str, results: Results, names: Sequence[str]) -> Figure:
    lines: list[Line] = []
    for name, _, outcomes in _chains(task, results):
        points = [(step, error) for step, error in outcomes[0].curve if math.isfinite(error)]
        x, y = [float(step) for step, _ in points], [max(error, 1e-4) for _, error in points]
        lines.append((x, y, names.index(name)))
    span = min(outcomes[0].trial.span for _, _, outcomes in _chains(task, results))
    drawing = _drawn(f"learning-{task}", f"Error by step, {task}", "steps", lines, classic_task(task).solved)
    return Figure(f"{task}, span {span}", drawing)


def _flows(task: str, results: Results, names: Sequence[str]) -> list[Figure]:
    first = min(seed for _, seed, _ in _chains(task, results))
    chains = [(name, outcomes) for name, seed, outcomes in _chains(task, results) if seed == first]
    farthest = ", ".join(f"{name}: {_span(reach(outcomes))}" for name, outcomes in chains)
    figures = []
    for pick, (when, note) in enumerate((("untrained", ""), ("after training", f"Longest span learnt by {farthest}."))):
        lines: list[Line] = []
        for name, outcomes in chains:
            flow = (outcomes[-1].flow_before, outcomes[-1].flow_after)[pick]
            if flow and flow[0] > 0:
                points = [(k, value) for k, value in enumerate(flow) if math.isfinite(value)]
                y = [max(value / flow[0], 1e-12) for _, value in points]
                lines.append(([float(k) for k, _ in points], y, names.index(name)))
        drawing = _drawn(f"flow-{task}-{pick}", f"Error by distance, {task}, {when}", "steps back, k", lines)
        figures.append(Figure(f"{task}, {when}", drawing, note))
    return figures


def _drawn(name: str, title: str, across: str, lines: Sequence[Line], wanted: float | None = None) -> Markup:
    figure, axes = canvas("wide")
    if wanted is not None:
        axes.axhline(wanted, color=MUTED, linewidth=1.0, linestyle=":")
    for x, y, series in lines:
        axes.plot(x, y, color=colour(series), linewidth=1.4, alpha=0.85)
    axes.set_yscale("log")
    axes.xaxis.set_major_locator(MaxNLocator(nbins=7, integer=True))
    axes.set_xlabel(across, color=MUTED, fontsize=9.5)
    return svg(figure, name, title, f"{len(lines)} lines")
