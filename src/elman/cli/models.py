"""elman models: trained models by name, listed, described, fetched, and written so that others can fetch them."""

from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from cyclopts import Parameter

from elman.cli import progress, show
from elman.cli.groups import Common
from elman.cli.help import family
from elman.cli.options import AsJson, file_to_extend, writable
from elman.errors import UserError, command
from elman.files import write_atomic
from elman.tasks.models import registry, store

app = family("models", "Every command that takes a RUN takes the name of a model too: elman generate shakespeare")

Name = Annotated[str, Parameter(help="as `elman models list` shows it", metavar="NAME")]
Registry = Annotated[str | None, Parameter(name="--registry", metavar="FILE_OR_URL")]


def _where(name: str, own: bool, cached: bool, registry_: str | None) -> str:
    further = () if registry_ is None else ("--registry", registry_)
    return "comes with elman" if own else "in the cache" if cached else command("models", "fetch", name, *further)


@app.command(name="list")
def list_all(*, registry_: Registry = None, as_json: AsJson = False) -> None:
    """The models that come with elman, that a further registry has, and that were fetched.

    Args:
        registry_: a further registry, a TOML file or its address (default: the variable ELMAN_REGISTRY)
    """
    own, here = registry.own(), store.fetched()
    found = here | registry.known(registry_)
    facts, rows = [], []
    for name, model in found.items():
        where = _where(name, name in own, name in here, registry_)
        facts.append({"name": name, "where": where, **msgspec.to_builtins(model)})
        rows.append([name, model.title, model.kind, f"{model.parameters:,}", model.licence, where])
    columns = ["name", "title", "kind", "parameters", "licence", "where"]
    show.print_result(as_json, facts, ("models", columns, rows))


@app.command
def info(name: Name, /, *, registry_: Registry = None, as_json: AsJson = False) -> None:
    """One model: licence, data, files with their digests, and its card where it is here.

    Args:
        registry_: as of `elman models list`
    """
    models = store.fetched() | registry.known(registry_)
    model = registry.require(name, models)
    here = store.is_model(name)
    folder = store.open_model(name) if here else None
    facts: dict[str, Any] = {"name": name, **msgspec.to_builtins(model), "folder": str(folder) if folder else None}
    notes = [f"{key}: {value}" for key, value in facts.items() if key not in ("files", "archive")]
    notes += [f"{file}: SHA-256 {digest}" for file, digest in model.files.items()]
    if model.archive is not None:
        notes.append(f"archive: {model.archive.bytes:,} bytes, SHA-256 {model.archive.sha256}")
        notes += [f"address: {url}" for url in model.archive.urls]
    card = None if folder is None else folder / "README.md"
    if card is not None and card.is_file():
        notes += ["", card.read_text(encoding="utf-8").rstrip()]
    show.print_result(as_json, facts, notes=notes)


@app.command
def fetch(name: Name, /, *, registry_: Registry = None, as_json: AsJson = False) -> None:
    """Fetch a model into the cache; size and SHA-256 of it and of all its files are checked before it is kept.

    An interrupted download is continued. A model that was fetched before is known without its registry.

    Args:
        registry_: as of `elman models list`
    """
    model = registry.require(name, store.fetched() | registry.known(registry_))
    with progress.preparing(f"fetching {name}") as advance:
        folder = store.fetch(name, model, advance)
    facts = {"name": name, "folder": str(folder), "files": dict(model.files)}
    show.print_result(as_json, facts, notes=[f"{name}: ready in {folder}", f"try it: {command('info', name)}"])


@app.command
def publish(
    run: Path,
    /,
    *,
    name: Annotated[str, Parameter(metavar="NAME")],
    out: Annotated[Path, Parameter(metavar="FOLDER", validator=writable)],
    licence: Annotated[str, Parameter(metavar="TEXT")],
    data: Annotated[str, Parameter(metavar="TEXT")] = "",
    notes: Annotated[str, Parameter(metavar="TEXT")] = "",
    url: Annotated[str, Parameter(metavar="URL")] = "",
    weights: Literal["float32", "half", "int8"] = "float32",
    registry_: Annotated[Path | None, Parameter(name="--registry", metavar="FILE", validator=file_to_extend)] = None,
    common: Common = Common(),
) -> None:
    """Write a run so that others can fetch it as a model: a folder, a zip file and its entry for a registry.

    Nothing is sent anywhere: put the zip file where the entry says, and add the entry to a registry. Results are
    measured again where the weights are kept in fewer bits. Names of folders of this machine are left out.

    Args:
        run: a run folder
        name: what the model is called, in lower case
        out: a new folder
        licence: of the weights
        data: what it was trained on and where that is from (default: the name of the data)
        notes: how it was made
        url: where the zip file will be (default: beside the registry)
        weights: float32; half, float16; or int8, eight bits with a scale for each row of a matrix
        registry_: a registry file to which the entry is added too
    """
    from elman.export.publishing import About, entry_text, publish
    from elman.tasks.open import open_run

    listed = ""
    if registry_ is not None and registry_.exists():
        listed = registry.text_of(str(registry_))
        if name in registry.parse(listed, str(registry_)):
            raise UserError(f"{registry_}: a model {name} is there already; choose another --name, or remove its entry")
    opened = open_run(run, common.place())
    about = About(licence, data, notes, url)
    made = publish(
        opened, name, out, about, None if weights == "float32" else weights, lambda line: progress.log().print(line)
    )
    if registry_ is not None:
        entry = entry_text(name, made.model)
        try:
            write_atomic(registry_, f"{listed.rstrip()}\n\n{entry}" if listed.strip() else entry)
        except UserError as error:
            raise UserError(f"{error}; the model is written, and the entry to add there is {made.entry}") from error
    facts = {
        "folder": str(made.folder),
        "archive": str(made.archive),
        "entry": str(made.entry),
        "model": msgspec.to_builtins(made.model),
        "results": [one.as_dict() for one in made.after],
    }
    scale = opened.recipe.data.reporting
    trained = {one.split: f"{scale.of(one.nll):.3f}" for one in made.before}
    rows = [[one.split, trained.get(one.split, ""), f"{scale.of(one.nll):.3f}"] for one in made.after]
    size = made.model.archive.bytes if made.model.archive else 0
    lines = [f"{made.archive}: {size:,} bytes", f"{made.entry}: the entry for a registry"]
    tables = [(f"{name}: {scale.measure}", ["split", "as trained", "as published"], rows)] if rows else []
    show.print_result(common.as_json, facts, *tables, notes=lines)
