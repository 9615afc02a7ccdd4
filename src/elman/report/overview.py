"""The table of several runs: one row for runs that differ by their seed alone, as Markdown, LaTeX or CSV."""

import csv
import io
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal, TypeAlias

from elman.evaluation.spread import Spread
from elman.report.comparison import Group
from elman.report.tables import MISSING, mean_and_deviation, number

Format: TypeAlias = Literal["markdown", "latex", "csv"]


def facts(row: Group) -> dict[str, Any]:
    """A row as JSON and CSV write it, unrounded."""
    found: dict[str, Any] = {"name": row.name, "runs": len(row.runs), "measure": row.scale.name, "data": row.data}
    for name in ("valid", "test", "minutes"):
        value: Spread | None = getattr(row, name)
        found[f"{name}_mean"] = None if value is None else value.mean
        found[f"{name}_sd"] = None if value is None else value.deviation
        found[f"{name}_runs"] = 0 if value is None else value.count
    found["parameters"] = row.runs[0].parameters
    found["paired_difference"] = None if row.paired is None else row.paired.difference
    found["paired_p_value"] = None if row.paired is None else row.paired.p_value
    return found


def best_by_data(rows: Sequence[Group]) -> dict[str, Group]:
    """The row of lowest test loss among the rows of the same data."""
    found: dict[str, Group] = {}
    for row in sorted((row for row in rows if row.test and row.data), key=lambda row: row.test.mean if row.test else 0):
        found.setdefault(row.data, row)
    return found


def write(rows: Sequence[Group], form: Format) -> str:
    """The table as text, ready for its format."""
    if form == "csv":
        text = io.StringIO(newline="")
        writer = csv.DictWriter(text, list(facts(rows[0])), lineterminator="\n")
        writer.writeheader()
        writer.writerows({key: "" if value is None else value for key, value in facts(row).items()} for row in rows)
        return text.getvalue()
    header, cells = _cells(rows)
    return (_markdown if form == "markdown" else _latex)(header, cells)


def _cells(rows: Sequence[Group]) -> tuple[list[str], list[list[str]]]:
    """The columns that say something of these rows; the text stands there where the rows have read several."""
    columns: dict[str, Callable[[Group], str]] = {
        "recipe": lambda row: row.name,
        "runs": lambda row: f"{len(row.runs)}",
    }
    if len({row.data for row in rows}) > 1:
        columns["data"] = lambda row: row.data
    measures = {row.scale.name for row in rows}
    if len(measures) > 1:
        columns["measure"] = lambda row: row.scale.name
    what = f" {measures.pop()}" if len(measures) == 1 else ""
    columns |= {
        f"valid{what}": lambda row: mean_and_deviation(row.valid, len(row.runs), _loss_of(row)),
        f"test{what}": lambda row: mean_and_deviation(row.test, len(row.runs), _loss_of(row)),
        "parameters": lambda row: number(row.runs[0].parameters),
        "minutes": lambda row: mean_and_deviation(row.minutes, len(row.runs), partial(number, digits=1)),
    }
    if any(row.paired for row in rows):
        columns["nats to the best (95 %)"] = lambda row: (
            f"{row.paired.difference:+.4f} ({row.paired.low:+.4f} to {row.paired.high:+.4f})" if row.paired else MISSING
        )
        columns["p"] = lambda row: MISSING if row.paired is None else f"{row.paired.p_value:.2g}"
    return list(columns), [[cell(row) for cell in columns.values()] for row in rows]


def _loss_of(row: Group) -> Callable[[float], str]:
    return partial(number, digits=2 if row.scale.in_perplexity else 4)


def _markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [header, ["---", *["---:"] * (len(header) - 1)], *rows]
    return "".join(f"| {' | '.join(map(_in_markdown, cells))} |\n" for cells in lines)


def _in_markdown(text: str) -> str:
    """Text of one cell: what would end it, or begin a link, code or HTML, is escaped."""
    escaped = "".join(f"\\{mark}" if mark in "\\|`*_[]<>" else mark for mark in text)
    return " ".join(escaped.split())


_LATEX = {
    "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "±": r"$\pm$", MISSING: "--",
    "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", **{mark: rf"\{mark}" for mark in "&%$#_{}"},
}  # fmt: skip
"""Characters with a meaning in LaTeX, or outside its usual fonts, and how they are written."""


def _latex(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    written = [
        [" ".join("".join(_LATEX.get(mark, mark) for mark in cell).split()) for cell in row] for row in (header, *rows)
    ]
    lines = [" & ".join(row) + r" \\" for row in written]
    body = "\n".join([lines[0], r"\hline", *lines[1:]])
    return f"\\begin{{tabular}}{{l{'r' * (len(header) - 1)}}}\n\\hline\n{body}\n\\hline\n\\end{{tabular}}\n"
