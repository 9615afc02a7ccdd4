"""Known corpora: what they are, where they come from, how they are made ready."""

import json
from pathlib import Path
from urllib.parse import quote

from elman.data.catalog import builtin, chorales, pianoroll, unpack
from elman.data.catalog.download import download
from elman.data.catalog.music import MUSIC, PIANO_ROLLS
from elman.data.catalog.texts import TEXTS, Download, Entry
from elman.data.text.cache import Progress, cache_folder
from elman.errors import UserError
from elman.files import sha256_file, write_atomic

KNOWN = (*TEXTS, *MUSIC)


def list_corpora() -> tuple[Entry, ...]:
    """All known corpora."""
    return KNOWN


def is_known(name: str) -> bool:
    """Whether there is a known corpus of this name."""
    return any(entry.name == name for entry in KNOWN)


def info(name: str) -> Entry:
    """The known corpus of this name.

    Raises:
        UserError: there is none.

    """
    for entry in KNOWN:
        if entry.name == name:
            return entry
    raise UserError(f"no known corpus is called {name!r}; there are {', '.join(entry.name for entry in KNOWN)}")


def prepare(
    name: str,
    folder: Path | None = None,
    progress: Progress | None = None,
    *,
    base_url: str | None = None,
) -> Path:
    """Make a known corpus ready: fetch, check, unpack, write `train.txt`, `valid.txt` and `test.txt`.

    Music is written to `rolls.npz` (see `elman.data.catalog.pianoroll`). Downloads that are in the folder already are
    used, and removed when all is done. `corpus.json` is written last; it has the digests of what was
    downloaded and whether they were known beforehand.

    Args:
        name: of the corpus.
        folder: where to; by default `corpora/NAME` in the cache folder, where `open_corpus(NAME)` looks.
        progress: told what is being done, the bytes done and all bytes.
        base_url: an address to fetch all files from instead of their own.

    Returns:
        The folder.

    Raises:
        UserError: the name is not known, the network or an archive fails, or the folder cannot be written.

    """
    entry = info(name)
    folder = cache_folder() / "corpora" / name if folder is None else folder
    if entry.downloads and (folder / "corpus.json").is_file():
        return folder
    files, records = [], []
    for item in entry.downloads:
        path = folder / "downloads" / item.filename
        urls = item.urls if base_url is None else (f"{base_url.rstrip('/')}/{quote(item.filename)}",)
        sha256 = _digest_of(path, item, urls, progress)
        files.append(path)
        records.append({"file": item.filename, "urls": urls, "sha256": sha256, "verified": item.sha256 is not None})
    _unpack(name, files, folder)
    if entry.downloads:
        write_atomic(folder / "corpus.json", json.dumps({"name": name, "downloads": records}, indent=1) + "\n")
    for path in files:
        path.unlink()
    return folder


def locate(name: str, cache: Path) -> Path:
    """The folder of a known corpus; those that need no download are made ready.

    Raises:
        UserError: it has to be prepared first, or is no text.

    """
    entry = info(name)
    if entry.kind == "music":
        raise UserError(f"{name}: these are piano rolls, not text; give a corpus of words or characters")
    if entry.kind == "pairs":
        raise UserError(f"{name}: these are minimal pairs, not text; they are for: elman minimal-pairs RUN --pairs {name}")
    folder = cache / "corpora" / name
    if not entry.downloads:
        return prepare(name, folder)
    if not (folder / "corpus.json").is_file():
        raise UserError(
            f"{name}: this corpus is not here yet ({folder}); run: elman data prepare {name} "
            "or give a folder that has it"
        )
    return folder


def locate_music(name: str) -> Path:
    """The file of piano rolls of a known corpus of music.

    Raises:
        UserError: it has to be prepared first, or is text.

    """
    if info(name).kind != "music":
        raise UserError(f"{name}: this is text, not music; give a corpus of music")
    path = cache_folder() / "corpora" / name / "rolls.npz"
    if not info(name).downloads and not path.is_file():
        prepare(name)
    if not path.is_file():
        raise UserError(
            f"{name}: this corpus is not here yet ({path.parent}); run: elman data prepare {name} or give an .npz file"
            " that has it"
        )
    return path


def locate_pairs(name: str) -> Path:
    """The folder of a known set of minimal pairs.

    Raises:
        UserError: it has to be prepared first.

    """
    folder = cache_folder() / "corpora" / name
    if not any(folder.glob("*.jsonl")):
        raise UserError(
            f"{name}: these pairs are not here yet; run: elman data prepare {name} or put its .jsonl files"
            f" into {folder}"
        )
    return folder


def _digest_of(path: Path, item: Download, urls: tuple[str, ...], progress: Progress | None) -> str:
    if not path.is_file():
        return download(urls, path, sha256=item.sha256, progress=progress)
    found = sha256_file(path)
    if item.sha256 not in (None, found):
        raise UserError(f"{path}: SHA-256 {found} instead of {item.sha256}; delete it and prepare again")
    return found


def _unpack(name: str, files: list[Path], folder: Path) -> None:
    match name:
        case "shakespeare":
            builtin.write_shakespeare(folder)
        case "pydoc-topics":
            builtin.write_pydoc_topics(folder)
        case "ptb":
            unpack.copy_files(files, folder)
        case "wikitext-2":
            unpack.wikitext(files[0], folder)
        case "text8":
            unpack.text8(files[0], folder)
        case "ptb-characters":
            unpack.ptb_characters(files, folder)
        case "enwik8":
            unpack.enwik8(files[0], folder)
        case "one-billion-word":
            unpack.one_billion_word(files[0], folder)
        case "blimp":
            unpack.members(files[0], ".jsonl", folder)
        case "bach-chorales":
            chorales.write_chorales(folder / "rolls.npz")
        case _ if name in {entry.name for entry in PIANO_ROLLS}:
            pianoroll.convert_pickle(files[0], folder / "rolls.npz")
        case _:
            raise AssertionError(f"no way to unpack {name}")
