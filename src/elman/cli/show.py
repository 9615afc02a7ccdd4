"""Results on standard output: tables and JSON."""

import json
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from elman.config.record import TOKENS, Reporting
from elman.data.text.utf8 import to_bytes
from elman.errors import UserError, counted, notice
from elman.evaluation.result import Estimate, Result
from elman.files import finite, write_atomic

if TYPE_CHECKING:
    from elman.evaluation.statistics import Difference


def print_json(value: Any) -> None:
    """Print one JSON value as `json_line` writes it."""
    print(json_line(value))


def json_line(value: Any) -> str:
    """One JSON value, numbers that are not finite as null; text that is not UTF-8 is written in escapes."""
    value = finite(value)
    text = json.dumps(value, ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError:
        text = json.dumps(value)
    return text


def write_or_print(out: Path | None, text: str, what: str) -> None:
    """Write a text to a file, and print its name and `what` it has; or print the text, also where the name is -.

    Lone surrogates, of a command line that is not UTF-8, become the bytes that they stand for.
    """
    from elman.cli.texts import write_any_text

    if out is None or out == Path("-"):
        write_any_text()
        sys.stdout.write(text)
    else:
        write_atomic(out, to_bytes(text))
        print(f"{out}: {what}")


def say_left_out(paths: Sequence[Path]) -> None:
    """Name on standard error the paths that are left out since they are no run folders."""
    if paths:
        more = f" and {len(paths) - 5} more" if len(paths) > 5 else ""
        notice(f"left out, no run with metrics: {', '.join(map(str, paths[:5]))}{more}")


def say_excluded(option: str, left_out: int, whole: int, what: str) -> None:
    """Say on standard error what --unknown leaves out; raises UserError where that is all."""
    if left_out == whole:
        raise UserError(f"--unknown {option} leaves out all {counted(whole, what)}; give others, or leave it out")
    notice(f"--unknown {option} leaves out {left_out:,} of {counted(whole, what)}")


def better(low: float | None, high: float | None) -> str:
    """What the interval of a difference in which positive values favour B says of A and B."""
    if low is not None and low > 0:
        return "B is better"
    return "A is better" if high is not None and high < 0 else "no clear difference"


Table: TypeAlias = tuple[str, list[str], list[list[str]]]  # a title, the headings of the columns and the rows


def print_result(as_json: bool, facts: Any, *tables: Table, notes: Sequence[str] = ()) -> None:
    """Print the result of a command: with --json its facts, otherwise its tables and the lines below them."""
    if as_json:
        print_json(facts)
        return
    for table in tables:
        print_table(*table)
    for note in notes:
        print(note)


_NUMBER = re.compile(r"(-|inf|nan)?$|[-+<>~(]*[.]?[0-9]")  # how a cell begins that holds a number, or nothing


def print_table(title: str, header: list[str], rows: list[list[str]]) -> None:
    """Print a table; columns of numbers are aligned to the right.

    A table that is wider than the terminal and has few rows is turned: its rows are columns; another one has headings
    that are broken after a stroke, and narrow cells where that is not enough. File names and others without a space are
    not broken in the first column: lines are longer where there is no room.
    """
    from rich.cells import cell_len
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False, markup=False, emoji=False, width=None if sys.stdout.isatty() else 120)
    natural = sum(max(map(cell_len, column)) + 3 for column in zip(header, *rows, strict=True)) + 1
    if turned := natural > console.width and len(rows) < min(4, len(header) - 1):
        header, *rows = map(list, zip(header, *rows, strict=True))
    elif natural > console.width:
        header = [name.replace("/", "/\n") for name in header]
    whole = not any(" " in row[0] for row in rows)
    columns = [[name, *(row[index] for row in rows)] for index, name in enumerate(header)]
    words = [max((len(word) for cell in column for word in cell.split()), default=0) for column in columns]
    wide = natural > console.width and sum(words) + 3 * len(words) + 1 > console.width
    table = Table(header_style="bold", padding=(0, 0) if wide else (0, 1))
    for index, (name, *cells) in enumerate(columns):
        numbers = index > 0 and (turned or all(map(_NUMBER.match, cells)))
        table.add_column(name, justify="right" if numbers else "left", overflow="fold", no_wrap=whole and not index)
    for row in rows:
        table.add_row(*row)
    if whole:
        console.width = max(console.width, sum(words) + 3 * len(words) + 1)
    if title:
        console.print(title, style="bold")
    console.print(table)


_OF_PARTS = ("bits_per_byte", "word_perplexity")  # columns shown only where tokens are parts of words


def print_figures(
    title: str,
    first: str,
    rows: Sequence[tuple[str, Result]],
    reporting: Reporting = TOKENS,
    beside: Sequence[Result] = (),
) -> None:
    """Print the results of models by name, in the column headed `first`, and the measures of what they wrote.

    `beside`: rows of baselines that were written too.
    """
    results = [result for _, result in rows]
    whole = all(one.words in (None, one.tokens) for one in results)
    columns = {
        key: (heading, form)
        for key, heading, form in reporting.columns
        if any(getattr(one, key) is not None for one in results) and not (whole and key in _OF_PARTS)
    }
    table = [
        [
            name,
            result.split,
            *(
                "" if getattr(result, key) is None else _number(getattr(result, key), form)
                for key, (_, form) in columns.items()
            ),
        ]
        for name, result in rows
    ]
    print_table(title, [first, "split", *(heading for heading, _ in columns.values())], table)
    for name, result in rows:
        if result.labels is not None:
            by_system = {system: [measured] for system, measured in result.labels.items()}
            print_measures(f"{name}, {result.split}", by_system)
        if result.tagging is not None:
            print_measures(f"{name}, {result.split}", result.tagging)
        if result.confusions:
            title = f"{name}, {result.split}: most often confused"
            cells = [[one.right, one.found, f"{one.count:,}", f"{one.total:,}"] for one in result.confusions]
            print_table(title, ["right", "found", "words", "of"], cells)
        if (output := result.output) is not None:
            copied = ", unknown words copied" if output.copy_unknown else ""
            kept = {None: "", True: ", constrained", False: ", unconstrained"}[output.constrained]
            how = f"{output.search} search" if output.search else f"beam {output.beam}{copied}{kept}"
            others = {str(one.name): one.written for one in beside if one.split == result.split}
            systems = {how: output.measures, output.baseline_name: output.baseline, **others}
            print_measures(f"{name}, {result.split}", systems)


def _number(value: float, form: str) -> str:
    """A number in a form, and one of a diverged model, of up to 300 digits, by its power of ten."""
    return f"{value:.4g}" if form.endswith("f") and abs(value) >= 1e9 else format(value, form)


def _interval(low: float | None, high: float | None, form: str) -> str:
    """The bounds of an interval in a form; a dash where there is none."""
    return "\N{EN DASH}" if low is None or high is None else f"{low:{form}} to {high:{form}}"


def print_measures(title: str, systems: Mapping[str, Sequence[Estimate]]) -> None:
    """Print the figures of systems by name, each with its interval, and how they were computed."""
    columns = list(systems.values())
    rows = [
        [row[0].name, *(f"{one.value:.2f} ({_interval(one.low, one.high, '.2f')})" for one in row)]
        for row in zip(*columns, strict=True)
    ]
    print_table(title, ["measure", *(f"{name} (95 %)" for name in systems)], rows)
    for signature in dict.fromkeys(one.signature for one in columns[0]):
        print(signature)


def print_differences(title: str, compared: Sequence["Difference"]) -> None:
    """Print the comparison of two systems on the same lines."""
    rows = [
        [one.name, f"{one.difference:+.2f}", _interval(one.low, one.high, "+.2f"), f"{one.p_value:.3g}"]
        for one in compared
    ]
    print_table(title, ["measure", "difference", "95 % interval", "p-value"], rows)
