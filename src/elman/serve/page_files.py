"""The files of the page, which come with the package."""

from collections.abc import Iterator
from importlib import resources
from importlib.resources.abc import Traversable

TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}


def page_files() -> Iterator[tuple[str, bytes]]:
    """The files of the page by their paths; no other file can be asked for."""

    def below(folder: Traversable, path: str) -> Iterator[tuple[str, bytes]]:
        for one in folder.iterdir():
            if one.is_dir():
                yield from below(one, f"{path}{one.name}/")
            elif f".{one.name.rpartition('.')[2]}" in TYPES:
                yield f"{path}{one.name}", one.read_bytes()

    return below(resources.files("elman.serve") / "page", "")
