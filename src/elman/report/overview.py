"""The table of several runs: one row for runs that differ by their seed alone, as Markdown, LaTeX or CSV."""

import csv
import dataclasses
import io
from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeAlias

from elman.evaluation.statistics import Comparison, Spread, spread
from elman.report.comparison import group_runs
from elman.report.folder import RunFolder
from elman.report.tables import MISSING, number, test_loss, valid_loss

Format: TypeAlias = Literal["markdown", "latex", "csv"]


@dataclasses.dataclass(frozen=True)
class Row:
    """Runs that differ by their seed alone: means and sample standard deviations of their finite figures.

    `measure` is what `valid` and `test` are, `data` the text and its digest, `paired` the comparison of the row with
    the one of lowest test loss on the same tokens, a positive difference favouring that one; None where none was made.
    """

    name: str
    runs: tuple[RunFolder, ...]
    measure: str
    data: str
    valid: Spread | None
    test: Spread | None
    parameters: int | None
    minutes: Spread | None
    paired: Comparison | None = None

    def facts(self) -> dict[str, Any]:
        """As JSON and CSV write it, unrounded."""
        found: dict[str, Any] = {"name": self.name, "runs": len(self.runs), "measure": self.measure, "data": self.data}
        for name in ("valid", "test", "minutes"):
            value: Spread | None = getattr(self, name)
            found[f"{name}_mean"] = None if value is None else value.mean
            found[f"{name}_sd"] = None if value is None else value.deviation
            found[f"{name}_runs"] = 0 if value is None else value.count
        found["parameters"] = self.parameters
        found["paired_difference"] = None if self.paired is None else self.paired.difference
        found["paired_p_value"] = None if self.paired is None else self.paired.p_value
        return found


def rows_of(runs: Sequence[RunFolder]) -> list[Row]:
    """The rows, in the order in which each recipe first appears."""
    return [
        Row(
            name=group.label,
            runs=group.runs,
            measure=group.runs[0].scale.name,
            data=_data(group.runs[0]),
            valid=spread(map(valid_loss, group.runs)),
            test=spread(map(test_loss, group.runs)),
            parameters=group.runs[0].parameters,
            minutes=spread(run.metrics.seconds / 60 for run in group.runs),
        )
        for group in group_runs(runs)
    ]


def _data(run: RunFolder) -> str:
    if run.data is None:
        return ""
    return f"{run.data.name} {run.data.digest[:8]}" if run.data.digest else run.data.name


def best_by_data(rows: Sequence[Row]) -> dict[str, Row]:
    """The row of lowest test loss among those that have read the same data."""
    found: dict[str, Row] = {}
    for row in sorted((row for row in rows if row.test and row.data), key=lambda row: row.test.mean if row.test else 0):
        found.setdefault(row.data, row)
    return found


def write(rows: Sequence[Row], form: Format) -> str:
    """The table as text, ready for its format."""
    if form == "csv":
        text = io.StringIO(newline="")
        writer = csv.DictWriter(text, list(rows[0].facts()), lineterminator="\n")
        writer.writeheader()
        writer.writerows({key: "" if value is None else value for key, value in row.facts().items()} for row in rows)
        return text.getvalue()
    header, cells = _cells(rows)
    return (_markdown if form == "markdown" else _latex)(header, cells)


def _cells(rows: Sequence[Row]) -> tuple[list[str], list[list[str]]]:
    """The columns that say something of these rows; the text stands there where the rows have read several."""
    columns: dict[str, Callable[[Row], str]] = {"recipe": lambda row: row.name, "runs": lambda row: f"{len(row.runs)}"}
    if len({row.data for row in rows}) > 1:
        columns["data"] = lambda row: row.data
    measures = {row.measure for row in rows}
    if len(measures) > 1:
        columns["measure"] = lambda row: row.measure
    what = f" {measures.pop()}" if len(measures) == 1 else ""
    columns |= {
        f"valid{what}": lambda row: _spread(row.valid, _digits(row), len(row.runs)),
        f"test{what}": lambda row: _spread(row.test, _digits(row), len(row.runs)),
        "parameters": lambda row: MISSING if row.parameters is None else f"{row.parameters:,}",
        "minutes": lambda row: _spread(row.minutes, 1, len(row.runs)),
    }
    if any(row.paired for row in rows):
        columns["nats to the best (95 %)"] = _paired
        columns["p"] = lambda row: MISSING if row.paired is None else f"{row.paired.p_value:.2g}"
    return list(columns), [[cell(row) for cell in columns.values()] for row in rows]


def _digits(row: Row) -> int:
    return 2 if row.runs[0].scale.in_perplexity else 4


def _spread(value: Spread | None, digits: int, runs: int) -> str:
    """The figure, and of how many runs it is where some have none, or one that is not finite."""
    if value is None:
        return MISSING
    deviation = "" if value.deviation is None else f" ± {number(value.deviation, digits)}"
    return f"{number(value.mean, digits)}{deviation}" + ("" if value.count == runs else f" ({value.count} of {runs})")


def _paired(row: Row) -> str:
    found = row.paired
    return MISSING if found is None else f"{found.difference:+.4f} ({found.low:+.4f} to {found.high:+.4f})"


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
    lines = [" & ".join(map(_in_latex, cells)) + r" \\" for cells in (header, *rows)]
    body = "\n".join([lines[0], r"\hline", *lines[1:]])
    return f"\\begin{{tabular}}{{l{'r' * (len(header) - 1)}}}\n\\hline\n{body}\n\\hline\n\\end{{tabular}}\n"


def _in_latex(text: str) -> str:
    return " ".join("".join(_LATEX.get(mark, mark) for mark in text).split())
