"""Pages: HTML files that load nothing. The page of an analysis has sections of text, figures and tables."""

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

import elman
from elman.drawing import player
from elman.errors import UserError
from elman.files import is_signed, is_stream, write_atomic


def render(
    template: str,
    *,
    title: str,
    text: Sequence[str] = (),
    playable: bool = False,
    filters: Mapping[str, Callable[..., str]] | None = None,
    **facts: Any,
) -> str:
    """A self-contained page: a template of this package that extends `page.html`, filled in.

    `text` holds the paragraphs below the title; `playable`: the page has buttons that play notes. Text is escaped, and
    a name that is missing is an error.
    """
    facts |= {"title": title, "text": text, "playable": playable, "player": player, "version": elman.__version__}
    return _environment(tuple((filters or {}).items())).get_template(template).render(**facts)


@functools.cache
def _environment(filters: tuple[tuple[str, Callable[..., str]], ...]) -> Environment:
    loader = PackageLoader("elman", "drawing/templates")
    made = Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    made.filters |= dict(filters)
    return made


def write(out: Path, page: str) -> Path:
    """Write a page and return its path; raises UserError for a folder, a page of others, or what cannot be written."""
    if out.is_file() and not is_stream(out) and not is_signed(out):
        raise UserError(f"{out} is not a page that elman has written; choose another --out, or move it")
    write_atomic(require_file_name(out), page.encode(errors="replace"))
    return out


@dataclasses.dataclass(frozen=True)
class Figure:
    """A drawing (see `elman.drawing.style.svg`) under its title, with a note below."""

    title: str
    drawing: Markup
    note: str = ""


@dataclasses.dataclass(frozen=True)
class Table:
    """Rows of cells under a header; the first column is text, the others are numbers, or text too if `prose`."""

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str = ""
    prose: bool = False


@dataclasses.dataclass(frozen=True)
class Section:
    """A part of the page: paragraphs, what the colours mean, (label, number of the series), figures and tables.

    Figures stand side by side, with `small` three in a row; `body` is anything else, ready for the page, at the end.
    `anchor` names the place within the page for links to it.
    """

    heading: str
    text: Sequence[str] = ()
    legend: Sequence[tuple[str, int]] = ()
    figures: Sequence[Figure] = ()
    small: bool = False
    tables: Sequence[Table] = ()
    body: Markup | None = None
    anchor: str = ""


def with_code(text: str) -> Markup:
    """Text in which what stands between backticks is code.

    Example:
        >>> with_code("`a < b` holds")
        Markup('<code>a &lt; b</code> holds')
    """
    parts = [escape(part) for part in text.split("`")]
    if len(parts) % 2 == 0:
        return escape(text)
    return Markup("").join(Markup("<code>{}</code>").format(part) if i % 2 else part for i, part in enumerate(parts))


def require_file_name(out: Path) -> Path:
    """The path of a page, checked before long work; raises UserError where it is a folder."""
    if out.is_dir():
        raise UserError(f"{out} is a folder; give the name of a file, such as {out / 'page.html'}")
    return out


def part_of(shown: int, total: int, nouns: str) -> str:
    """Which of several things a page shows: "the first 3 of 10 tokens", or "all 10 tokens"."""
    return f"the first {shown:,} of {total:,} {nouns}" if shown < total else f"all {total:,} {nouns}"


def write_page(
    out: Path, *, kind: str, title: str, verdict: str, sections: Sequence[Section], text: Sequence[str] = ()
) -> Path:
    """Write the page and return its path.

    `kind` stands in small letters above the title, `verdict` states the finding in one or two sentences, `text` holds
    the paragraphs before the sections. Raises UserError where `out` is a folder or cannot be written.
    """
    page = render("analysis.html", title=title, text=text, kind=kind, verdict=verdict, sections=sections)
    return write(out, page)
