"""The registry of trained models: what each is, its files with their digests, and the archive that holds them.

A registry is a TOML file with one table for each model. The package's own lists the models that come with elman;
another file or address is given by an option, or by the variable ELMAN_REGISTRY:

    [shakespeare-large]
    title = "..."
    kind = "text"
    parameters = 24000000
    licence = "public domain"
    data = "..."

    [shakespeare-large.archive]
    urls = ["shakespeare-large.zip"]     # within the folder of the registry, or complete addresses
    bytes = 48000000
    sha256 = "..."

    [shakespeare-large.files]
    "model.safetensors" = "..."          # the SHA-256 of every file
"""

import os
import re
import urllib.request
from pathlib import Path
from typing import Annotated, TypeAlias
from urllib.parse import urljoin

import msgspec
from msgspec import Meta

from elman.data.catalog.download import FAILURES, reason_of, require_address
from elman.errors import UserError, did_you_mean
from elman.files import expanded
from elman.formats import parse_toml

VARIABLE = "ELMAN_REGISTRY"  # the environment variable that names a further registry
HERE = Path(__file__).parent
OWN = HERE / "registry.toml"  # the registry of the models that come with elman, whose files are in folders beside it
ENTRY = "model.json"  # the file of a model's folder with its entry of the registry
LARGEST = 1 << 20  # bytes of a registry at most
NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
RESERVED = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?")  # names of models, and those that Windows refuses
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")

Digest: TypeAlias = Annotated[str, Meta(pattern=r"^[0-9a-f]{64}\Z")]
FileName: TypeAlias = Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]*(\.[A-Za-z0-9_-]+)*\Z", max_length=100)]


class Archive(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A zip file with the files of a model: its addresses, size and SHA-256."""

    urls: Annotated[tuple[str, ...], Meta(min_length=1)]
    bytes: Annotated[int, Meta(ge=1)]
    sha256: Digest


class Model(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """An entry of a registry.

    Attributes:
        title: what it is.
        kind: of its data, as in a recipe.
        parameters: how many weights it has.
        licence: of the weights.
        data: what it was trained on, and where that is from.
        files: the SHA-256 of every file, by name.
        notes: how it was made.
        archive: where the files are fetched; None: they come with elman.
    """

    title: str
    kind: str
    parameters: Annotated[int, Meta(ge=1)]
    licence: str
    data: str
    files: Annotated[dict[FileName, Digest], Meta(min_length=1)]
    notes: str = ""
    archive: Archive | None = None


def own() -> dict[str, Model]:
    return parse(OWN.read_text(encoding="utf-8"), str(OWN))


def known(further: str | None = None) -> dict[str, Model]:
    """The models that come with elman, and the ones in a further registry: `further`, or else $ELMAN_REGISTRY.

    Raises UserError where that registry cannot be read, or gives a name that a model of elman has.
    """
    source, found = further or os.environ.get(VARIABLE), own()
    if not source:
        return found
    others = parse(text_of(source), source)
    if both := sorted(found.keys() & others.keys()):
        raise UserError(f"{source}: a model that comes with elman is called {both[0]}; choose another name")
    return found | {name: _placed(model, source) for name, model in others.items()}


def require(name: str, models: dict[str, Model]) -> Model:
    if name not in models:
        raise UserError(f"no model is called {name!r}{did_you_mean(name, models)}; there are {', '.join(models)}")
    return models[name]


def parse(text: str, source: str) -> dict[str, Model]:
    """The entries of a registry by name; raises UserError where the text is not one."""
    try:
        models = msgspec.convert(parse_toml(text), dict[str, Model])
    except (ValueError, msgspec.ValidationError) as error:
        raise UserError(f"{source}: not a registry of models ({error})") from None
    for name, model in models.items():
        require_name(name, source)
        if any(file.lower() == ENTRY for file in model.files):
            raise UserError(f"{source}: {name} has a file {ENTRY}, the name of its entry here; rename the file")
    return models


def require_name(name: str, where: str) -> None:
    """Raise UserError where a model cannot have this name, which becomes the name of a folder."""
    if not NAME.fullmatch(name) or RESERVED.fullmatch(name) or name.endswith("."):
        raise UserError(
            f"{where}: {name!r} cannot be the name of a model; use lower-case letters, digits, hyphens, dots and"
            " underscores, and none of the names that Windows reserves"
        )


def is_address(source: str) -> bool:
    """Whether a source is an address rather than the path of a file; `C:` is a drive."""
    return _SCHEME.match(source) is not None


def text_of(source: str) -> str:
    """The text of a registry; raises UserError where it cannot be read."""
    try:
        if not is_address(source):
            with expanded(source).open("rb") as file:
                data = file.read(LARGEST + 1)
        else:
            require_address(source, VARIABLE)
            with urllib.request.urlopen(source, timeout=30.0) as response:
                data = response.read(LARGEST + 1)
    except FAILURES as error:
        raise UserError(f"the registry {source} cannot be read ({reason_of(error)})") from None
    if len(data) > LARGEST:
        raise UserError(f"the registry {source} has more than {LARGEST:,} bytes")
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise UserError(f"the registry {source} is not UTF-8") from None


def _placed(model: Model, source: str) -> Model:
    """A model of a further registry, whose archive has complete addresses; raises UserError where it has no archive."""
    if model.archive is None:
        raise UserError(f"{source}: {model.title!r} has no archive to be fetched from")
    base = source if is_address(source) else expanded(source).absolute().as_uri()
    try:
        urls = tuple(urljoin(base, url) for url in model.archive.urls)
    except ValueError as error:
        raise UserError(f"{source}: {model.title!r} has an archive whose address is none ({error})") from None
    for url in urls:
        require_address(url, source)
    return msgspec.structs.replace(model, archive=msgspec.structs.replace(model.archive, urls=urls))
