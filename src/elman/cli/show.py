"""What a person sees: progress on stderr, tables and JSON on stdout."""

import contextlib
import json
import sys
from collections.abc import Callable, Iterator
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn
from rich.table import Table


def log() -> Console:
    """The console of logs and progress, on stderr."""
    return Console(stderr=True, highlight=False, soft_wrap=True)


def print_json(value: Any) -> None:
    """One JSON value on stdout; text that is not UTF-8 is told in escapes."""
    text = json.dumps(value, ensure_ascii=False)
    print(text if _is_utf8(text) else json.dumps(value))


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def print_table(title: str, header: list[str], rows: list[list[str]]) -> None:
    """A table on stdout; columns after the first are aligned to the right."""
    table = Table(title=title, title_justify="left", title_style="bold", header_style="bold")
    for index, name in enumerate(header):
        table.add_column(name, justify="right" if index else "left", overflow="fold")
    for row in rows:
        table.add_row(*row)
    Console(highlight=False, width=None if sys.stdout.isatty() else 120).print(table)


_COLUMNS = {
    "words": {
        "perplexity": ("perplexity", ".2f"),
        "nll": ("nats/token", ".4f"),
        "bits_per_token": ("bits/token", ".4f"),
        "bits_per_character": ("bits/char", ".4f"),
        "bits_per_byte": ("bits/byte", ".4f"),
        "word_perplexity": ("ppl/word", ".5g"),
        "tokens": ("tokens", ","),
        "unknown": ("unknown", ","),
    },
    "music": {
        "nll": ("nats/step", ".4f"),
        "accuracy": ("accuracy", ".4f"),
        "tokens": ("steps", ","),
        "pieces": ("pieces", ","),
    },
}


_OF_PARTS = ("bits_per_byte", "word_perplexity")
"""Columns that say something where tokens are parts of words."""


def print_figures(title: str, first: str, rows: list[dict[str, Any]]) -> None:
    """The figures of models on splits, of text or of music; each row has a `name`, headed `first`."""
    columns = dict(_COLUMNS["music" if "pieces" in rows[0] else "words"])
    if all(row.get("words", row["tokens"]) == row["tokens"] for row in rows):
        columns = {key: column for key, column in columns.items() if key not in _OF_PARTS}
    columns = {key: column for key, column in columns.items() if any(row.get(key) is not None for row in rows)}
    table = [
        [
            row["name"],
            row["split"],
            *("" if row.get(key) is None else format(row[key], form) for key, (_, form) in columns.items()),
        ]
        for row in rows
    ]
    print_table(title, [first, "split", *(heading for heading, _ in columns.values())], table)


def bar(*columns: str) -> Progress:
    """A progress bar on stderr with extra text columns."""
    texts = [TextColumn(column) for column in columns]
    parts = (TextColumn("{task.description}"), BarColumn(bar_width=24), TaskProgressColumn(), *texts)
    return Progress(*parts, console=log(), transient=True)


@contextlib.contextmanager
def counting(description: str) -> Iterator[Callable[[int, int], None]]:
    """A bar for something that tells (done, in all)."""
    with bar() as shown:
        task = shown.add_task(description, total=None)
        yield lambda done, total: shown.update(task, completed=done, total=total)


@contextlib.contextmanager
def preparing() -> Iterator[Callable[[str, int, int], None]]:
    """A bar for the preparation of data, which tells (what, bytes done, bytes in all)."""
    with bar() as shown:
        task = shown.add_task("reading text", total=None)
        yield lambda what, done, total: shown.update(task, description=what, completed=done, total=total)
