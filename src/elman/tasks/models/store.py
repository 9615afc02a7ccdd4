"""Trained models in the cache folder: each in a folder of its own, whose files have the digests of the registry."""

import contextlib
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec

from elman.data.archives import Archive
from elman.data.catalog.download import download
from elman.data.text.block_reading import Progress
from elman.errors import UserError, command, notice
from elman.files import cache_folder, explain, sha256_file, temporary_folder, write_atomic
from elman.formats import parse_json
from elman.jobs.locks import waiting_for
from elman.tasks.models import registry
from elman.tasks.models.registry import ENTRY, Model


def place(name: str) -> Path:
    return cache_folder() / "models" / name


def included(name: str) -> Path:
    return registry.HERE / name


def open_model(name: str) -> Path:
    """The folder of a model that comes with elman or was fetched, its digests checked.

    A model that comes with elman is copied into the cache, so that reports and other results can be written beside it;
    it is opened where it is installed if there can be no cache. Raises UserError where the model is not here, or a file
    has another digest than the registry.
    """
    models = registry.own()
    if name in models:
        return _own(name, models[name])
    folder = place(name)
    model, fetching = entry_of(folder), command("models", "fetch", name)
    if model is None:
        raise UserError(f"{name}: this model is not here yet; run: {fetching}")
    if wrong := altered(folder, model):
        raise UserError(f"{folder / wrong}: not the file of the registry; run again: {fetching}")
    return folder


def is_model(name: str) -> bool:
    """Whether a model of this name comes with elman or was fetched."""
    return bool(registry.NAME.fullmatch(name)) and (name in registry.own() or (place(name) / ENTRY).is_file())


def fetch(name: str, model: Model, progress: Progress | None = None) -> Path:
    """Fetch a model into the cache, unless it is there; returns its folder.

    Nothing is put in its place before size and digests of the archive and of every file are checked; an interrupted
    download is continued, and one process at a time fetches a model. Raises UserError where that fails.
    """
    if model.archive is None:
        return open_model(name)
    folder, archive = place(name), model.archive
    path = folder.parent / "downloads" / f"{name}-{archive.sha256[:12]}.zip"
    if _is_here(folder, model):
        return folder
    with waiting_for(folder):
        if _is_here(folder, model):
            return folder
        download(archive.urls, path, sha256=archive.sha256, size=archive.bytes, progress=progress)
        _fill(folder, model, lambda new: _unpack(path, model.files, new))
        path.unlink(missing_ok=True)
    return folder


def _is_here(folder: Path, model: Model) -> bool:
    return entry_of(folder) == model and altered(folder, model) is None


def fetched() -> dict[str, Model]:
    folders = sorted(place("").iterdir()) if place("").is_dir() else []
    found = ((folder.name, entry_of(folder)) for folder in folders)
    return {name: model for name, model in found if model is not None}


def entry_of(folder: Path) -> Model | None:
    """The entry of the registry that a folder holds; None where there is none that can be read."""
    try:
        return msgspec.convert(parse_json((folder / ENTRY).read_bytes()), Model)
    except (OSError, ValueError):
        return None


def altered(folder: Path, model: Model) -> str | None:
    """The first file of a model that is missing or has another digest; None where all are as the registry has them."""
    for name, digest in model.files.items():
        path = folder / name
        if not path.is_file() or sha256_file(path) != digest:
            return name
    return None


def _own(name: str, model: Model) -> Path:
    folder, source = place(name), included(name)
    before = entry_of(folder)
    wrong = altered(folder, model) if before == model else ENTRY
    if wrong is None:
        return folder
    if before == model:
        notice(f"{folder / wrong}: this file of the cache is damaged; it is copied again")
    if (missing := altered(source, model)) is not None:
        raise UserError(f"{source / missing}: not the file that comes with elman; install elman again")
    try:
        _fill(folder, model, lambda new: _copy(source, model.files, new))
    except UserError:
        return source
    return folder


def _copy(source: Path, names: Iterable[str], folder: Path) -> None:
    for name in names:
        shutil.copyfile(source / name, folder / name)


def _unpack(path: Path, names: Iterable[str], folder: Path) -> None:
    """Write members of a zip file under their last names; raises UserError where it lacks one, or is damaged."""
    archive = Archive(path)
    with archive.open_zip() as opened:
        for name in names:
            with archive.member(opened, name) as member, (folder / name).open("wb") as file:
                file.writelines(archive.blocks(member))


def _fill(folder: Path, model: Model, write: Callable[[Path], None]) -> None:
    """Let `write` fill a new folder, check its files, and put it in the place of `folder` in one step.

    Raises UserError where a file has another digest than the registry states, or the folder cannot be written.
    """
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with temporary_folder(folder) as beside:
            new = beside / "new"
            new.mkdir()
            write(new)
            if (wrong := altered(new, model)) is not None:
                raise UserError(f"{folder.name}: {wrong} is not the file of the registry; nothing was kept")
            write_atomic(new / ENTRY, msgspec.json.format(msgspec.json.encode(model)))
            if _is_here(folder, model):
                return  # another process was faster
            with contextlib.suppress(FileNotFoundError):
                folder.rename(beside / "old")
            try:
                new.rename(folder)
            except OSError:
                if entry_of(folder) != model:  # another process may have put it there meanwhile
                    raise
    except OSError as error:
        raise UserError(explain(folder, error)) from error
