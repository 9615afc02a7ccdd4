"""A run as a model that others can fetch: its folder, a zip file of it, and its entry for a registry."""

import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import msgspec
import tomli_w

from elman import __version__
from elman.config.toml import dump_recipe
from elman.errors import UserError, notice
from elman.evaluation.result import RESULTS, Result, recorded_results
from elman.export.folder import new_folder
from elman.files import json_text, replacing, sha256_file, write_atomic
from elman.learning import checkpoint
from elman.learning.checkpoint import MODEL
from elman.learning.packing import UNPACKED, Form
from elman.tasks.evaluating import EvaluationOptions
from elman.tasks.models import registry
from elman.tasks.models.registry import Archive, Model
from elman.tasks.open import open_run
from elman.tasks.run import Run

KEPT = (".json", ".jsonl", ".model", ".tsv")
"""Endings of the files of a run that go with its model."""

LEFT = ("data.json", "environment.json", "extras.json", RESULTS, "tuning.json")
"""Files with these endings that do not, or are written again."""

CARD = "README.md"
SPLITS = ("valid", "test")

_WHEN = (1980, 1, 1, 0, 0, 0)
"""The time of every file in a zip file, so that the same files give the same digest."""


class About(NamedTuple):
    """What the run itself does not state: licence of the weights, origin of the data, notes, where it will be kept."""

    licence: str
    data: str = ""
    notes: str = ""
    url: str = ""


class Published(NamedTuple):
    """What was written: the folder, the zip file, the file of the entry, the entry, and results of both weights."""

    folder: Path
    archive: Path
    entry: Path
    model: Model
    before: list[Result]
    after: list[Result]


def publish(
    run: Run, name: str, out: Path, about: About, form: Form | None = None, say: Callable[[str], None] = notice
) -> Published:
    """Write a run as a model NAME into a new folder: NAME/, NAME.zip and NAME.toml, its entry for a registry.

    With `form` the weights are kept in fewer bits, and the results of the run are measured again with them where its
    data is at hand. Nothing that names this machine is kept. Raises UserError where the folder is not empty, the name
    cannot be one, or the run has no model.
    """
    registry.require_name(name, "--name")
    if not about.licence:
        raise UserError("--licence is empty; state the licence of the weights, such as 'CC BY 4.0'")
    before = recorded_results(run.path)
    with new_folder(out) as new:
        folder = new / name
        folder.mkdir()
        _copy(run, folder)
        tensors, facts = checkpoint.load(run.path / MODEL)
        facts.pop(UNPACKED, None)
        if form is None:
            checkpoint.save(folder / MODEL, tensors, facts)
            digest, after = checkpoint.digest_of(tensors), before
        else:
            digest = checkpoint.save_packed(folder / MODEL, tensors, facts, form)
            after = _measured(run, folder, say)
        write_atomic(folder / RESULTS, json_text([one.as_dict() for one in after], indent=1) + "\n")
        parameters = sum(parameter.numel() for parameter in run.model.parameters())
        source = about.data or str(_source(run))
        write_atomic(folder / CARD, _card(run, name, about, source, parameters, digest, form, before, after))
        archive = new / f"{name}.zip"
        write_zip(folder, archive)
        url = about.url or archive.name
        model = Model(
            run.recipe.title,
            run.kind,
            parameters,
            about.licence,
            source,
            {path.name: sha256_file(path) for path in sorted(folder.iterdir())},
            about.notes,
            Archive((url,), archive.stat().st_size, sha256_file(archive)),
        )
        entry = new / f"{name}.toml"
        write_atomic(entry, entry_text(name, model))
        registry.parse(entry.read_text(encoding="utf-8"), str(entry))
    return Published(out / name, out / archive.name, out / entry.name, model, before, after)


def entry_text(name: str, model: Model) -> str:
    """The table of a model, to be added to a registry."""
    return tomli_w.dumps({name: msgspec.to_builtins(model)})


def _copy(run: Run, folder: Path) -> None:
    for path in run.path.iterdir():
        if path.suffix in KEPT and path.name not in LEFT:
            shutil.copyfile(path, folder / path.name)
    source, data = _source(run), run.recipe.data
    named = data if data.corpus is None else msgspec.structs.replace(data, corpus=source)
    write_atomic(folder / "recipe.toml", dump_recipe(msgspec.structs.replace(run.recipe, data=named)))
    write_atomic(folder / "data.json", json_text({**run.facts, "source": source}, indent=1) + "\n")


def _source(run: Run) -> str:
    """Where the data of a run is, without the place on this machine."""
    return Path(str(run.facts["source"])).name


def _measured(run: Run, folder: Path, say: Callable[[str], None]) -> list[Result]:
    """The results of the rounded weights on the run's own data; empty where that is not at hand."""
    opened, results = open_run(folder), []
    for split in SPLITS:
        try:
            say(f"evaluating the {split} split with the rounded weights")
            result = opened.evaluate(EvaluationOptions(split=split, data=run.source))
        except UserError as error:
            say(f"not evaluated: {error}")
            return []
        results.append(msgspec.structs.replace(result, data=None, method="static", model="best"))
    return results


def write_zip(folder: Path, archive: Path) -> None:
    """Write the files of a folder into a zip file, under the folder's name, the same bytes for the same files."""
    with replacing(archive) as temporary, zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED) as opened:
        for path in sorted(folder.iterdir()):
            member = zipfile.ZipInfo(f"{folder.name}/{path.name}", _WHEN)
            member.compress_type, member.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
            opened.writestr(member, path.read_bytes())


def _card(
    run: Run,
    name: str,
    about: About,
    source: str,
    parameters: int,
    digest: str,
    form: Form | None,
    before: list[Result],
    after: list[Result],
) -> str:
    """The card of the model, in Markdown."""
    kept = {"int8": "eight bits with a scale for each row of a matrix", "half": "float16", None: "float32"}[form]
    trained = {one.split: one for one in before}
    scale = run.recipe.data.reporting
    digits = 2 if scale.in_perplexity else 4
    rows = [
        f"| {one.split} | {scale.of(one.nll):.{digits}f} |"
        + (f" {one.nll:.4f} |" if scale.in_perplexity else "")
        + f" {one.tokens:,} |"
        + (f" {scale.of(trained[one.split].nll):.{digits}f} |" if one.split in trained else " |")
        for one in after
    ]
    lines = [
        f"# {name}: {run.recipe.title}",
        "",
        f"{parameters:,} parameters, trained with elman on {run.kind}; weights kept as {kept}, opened as float32.",
        "",
        f"- data: {source}",
        f"- licence of the weights: {about.licence}",
        f"- SHA-256 of the weights as float32 (`elman info` shows it): {digest}",
        f"- written by elman {__version__}",
        *([f"- {about.notes}"] if about.notes else []),
        "",
    ]
    if rows:
        nats = [f"nats per {scale.unit}"] if scale.in_perplexity else []
        columns = ["split", scale.measure, *nats, f"{scale.unit}s", f"{scale.measure} as trained"]
        lines += [f"| {' | '.join(columns)} |", "|---" * len(columns) + "|", *rows, ""]
    return "\n".join(lines)
