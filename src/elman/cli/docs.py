"""elman docs: the pages of the documentation, as they come with the package."""

import pydoc
import re
import sys

from elman.cli import show
from elman.cli.options import AsJson
from elman.errors import UserError, did_you_mean
from elman.files import shipped_folder

FOLDER = shipped_folder("docs")


def docs(page: str | None = None, /, *, as_json: AsJson = False) -> None:
    """Show a page of the documentation, or list all pages. Messages and help name pages as docs/PAGE.md.

    Args:
        page: as the list shows it, such as training or docs/training.md
    """
    pages = {path.stem: path for path in sorted(FOLDER.glob("*.md"))}
    if page is None:
        titles = {
            name: path.read_text(encoding="utf-8").partition("\n")[0].lstrip("# ") for name, path in pages.items()
        }
        show.print_result(as_json, titles, ("documentation", ["page", "title"], [list(row) for row in titles.items()]))
        return
    name = page.removeprefix("docs/").removesuffix(".md")
    if name not in pages:
        raise UserError(f"no page is called {page!r}{did_you_mean(name, pages)}; `elman docs` lists the pages")
    text = pages[name].read_text(encoding="utf-8")
    if as_json:
        show.print_json({"page": name, "text": text})
    elif sys.stdout.isatty():
        pydoc.pager(_plain(text))
    else:
        print(_plain(text), end="")


def _plain(text: str) -> str:
    """Markdown whose links within the documentation are names of pages."""
    return re.sub(r"\[([^\]]+)\]\(([\w-]+)\.md(?:#[^)]*)?\)", r"\1 (elman docs \2)", text)
