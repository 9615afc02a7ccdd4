"""A run as a model that others can fetch: its folder, a zip file of it, and its entry for a registry."""

import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import msgspec
import tomli_w

from elman import __version__
from elman.config.text import TextData
from elman.errors import UserError, notice
from elman.evaluation.result import RESULTS, Result, static_results
from elman.export.folder import new_folder
from elman.export.readme import load_model, source_name, write_origin
from elman.files import json_text, replacing, sha256_file, write_atomic
from elman.learning import checkpoint
from elman.learning.checkpoint import MODEL, UNPACKED
from elman.learning.packing import Form, save_packed
from elman.tasks.evaluating import EvaluationOptions
from elman.tasks.models import registry
from elman.tasks.models.registry import Archive, Model
from elman.tasks.open import open_run
from elman.tasks.run import Run

SYMBOLS = (
    "vocabulary.tsv",
    "subwords.model",
    "source-vocabulary.tsv",
    "target-vocabulary.tsv",
    "source-subwords.model",
    "target-subwords.model",
    "labels.tsv",
    "tags.tsv",
    "lexicon.tsv",
)
"""Files in which the kinds of runs keep what they read and what they choose from."""

SHOWN = ("metrics.jsonl", "samples.json", "surprisal.json", "baselines.json")
"""Files that a report shows with the results. No other file of a run is kept, since it may name this machine."""

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
    before = [msgspec.structs.replace(one, data=None) for one in static_results(run.path)]
    with new_folder(out) as new:
        folder = new / name
        folder.mkdir()
        for file in (*SYMBOLS, *SHOWN):
            if (run.path / file).is_file():
                shutil.copyfile(run.path / file, folder / file)
        write_origin(run, folder)
        opened = open_run(folder)  # raises UserError where what a plug-in needs is not kept
        tensors, facts = load_model(run)
        facts.pop(UNPACKED, None)
        if form is None:
            checkpoint.save(folder / MODEL, tensors, facts)
            digest, after = checkpoint.digest_of(tensors), before
        else:
            digest = save_packed(folder / MODEL, tensors, facts, form)
            after = _measured(run, opened, say)
        write_atomic(folder / RESULTS, json_text([one.as_dict() for one in after], indent=1) + "\n")
        parameters = sum(parameter.numel() for parameter in run.model.parameters())
        source = about.data or source_name(run)
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


def _measured(run: Run, rounded: Run, say: Callable[[str], None]) -> list[Result]:
    """The results of the rounded weights on the run's own data; empty where that is not at hand, or has changed."""
    skip, results = isinstance(run.recipe.data, TextData) and run.recipe.data.evaluation.skip_first, []
    try:
        source = run.source
        if rounded.corpus(source).digest != run.facts["digest"]:
            raise UserError(f"{source} has changed since {run.path} was trained on it")
        for split in SPLITS:
            say(f"evaluating the {split} split with the rounded weights")
            result = rounded.evaluate(EvaluationOptions(split=split, data=source, skip_first=skip))
            results.append(msgspec.structs.replace(result, data=None, method="static", model="best"))
    except UserError as error:
        say(f"not evaluated: {error}")
        return []
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
