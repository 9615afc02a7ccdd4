"""Published figures at their size: each recipe that states one, beside the runs that were trained by it."""

import dataclasses
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from elman.config.recipe import Expected, Recipe
from elman.config.record import Reporting
from elman.config.toml import FOLDER, decisive, flatten, load_recipe, parse_recipe, read_tables
from elman.errors import UserError, counted, notice
from elman.evaluation.spread import Spread, spread
from elman.files import write_atomic
from elman.formats import read_json
from elman.learning.progress import phases_of
from elman.report.folder import NotARunError, RunFolder, read_folder
from elman.report.tables import MISSING, duration, mean_and_deviation
from elman.study.conduct import training_minutes
from elman.study.summary_files import markdown

RECORDS = FOLDER / "published.json"  # of the runs that the project has trained; their weights are not kept with it

WITHIN, SHARE = 0.5, 0.01  # a figure is met within this perplexity, or this share of it

FREE = frozenset({"seed", "training.log_every", "training.checkpoint_minutes"})
"""Settings that decide no figure but by chance."""


class Trained(msgspec.Struct, frozen=True, omit_defaults=True):
    """A run by a recipe with a published figure: what it reached, on what, and what that took.

    Attributes:
        recipe: as `elman recipes` lists it.
        changed: the settings in which the run differs from the recipe: of training, of how it begins, and rates.
        text, digest: the name of its data, and the digest.
        epochs, planned: passes over the data done and asked for, in all phases.
        losses: nats per token (of music: per step) by split, and by split and method such as `test dynamic`.
        seconds: of training.
        machine: the processor or the GPU, and the threads.
    """

    recipe: str
    seed: int
    text: str
    digest: str
    epochs: float
    planned: int
    finished: bool
    losses: dict[str, float]
    seconds: float
    machine: str
    elman: str
    started: str
    changed: tuple[str, ...] = ()
    fine_tuned: bool = False

    @property
    def key(self) -> tuple[object, ...]:
        return self.recipe, self.changed, self.digest, self.seed


class Records(msgspec.Struct, frozen=True):
    """The file of finished runs; it names what wrote it, so that it may be written again."""

    runs: list[Trained]
    about: str = "Written by `elman reproduce published`"


@dataclasses.dataclass(frozen=True)
class Target:
    """A recipe, the figure that is published for it, and how its losses are reported."""

    path: str
    recipe: Recipe
    expected: Expected

    @property
    def scale(self) -> Reporting:
        return self.recipe.data.reporting

    @property
    def text(self) -> str:
        return getattr(self.recipe.data, "corpus", None) or ""


@dataclasses.dataclass(frozen=True)
class Row:
    """A published figure and ours, by split: means over `runs`, which differ by their seed alone; none: never trained.

    `method` is static or dynamic evaluation; losses are perplexities, or nats per step.
    """

    target: Target
    method: str
    runs: tuple[Trained, ...]
    published: Mapping[str, float | None]
    ours: Mapping[str, Spread | None]

    @property
    def verdict(self) -> str:
        if not self.runs:
            return "not run"
        first = self.runs[0]
        if first.text.casefold() != self.target.text.casefold():
            return f"on another text, {first.text}"
        if not first.finished:
            return f"in training: {first.epochs:.0f} of {first.planned} epochs"
        split = "valid" if self.published["test"] is None else "test"
        found = verdict(self.published[split], self.ours[split], self.target.scale)
        return found + (" with other settings" if first.changed else "")

    @property
    def facts(self) -> dict[str, object]:
        """The figures, runs and verdict, for JSON."""
        target = self.target
        return {
            "recipe": target.path, "source": target.expected.source, "text": target.text, "method": self.method,
            "measure": target.scale.measure, "published": self.published,
            "ours": {split: one and one.mean for split, one in self.ours.items()},
            "runs": msgspec.to_builtins(self.runs), "verdict": self.verdict,
        }  # fmt: skip


def verdict(published: float | None, ours: Spread | None, scale: Reporting) -> str:
    """Whether a published loss was met within .5 perplexity or 1 %, beaten by more, or missed.

    Example:
        >>> from elman.config.record import TOKENS
        >>> [verdict(82.7, Spread(ours, None, 1), TOKENS) for ours in (80.1, 83.4, 84.0)]
        ['beaten by 2.60', 'met', 'missed by 1.30']
    """
    if published is None or ours is None:
        return "not measured"
    tolerance = max(SHARE * published, WITHIN if scale.in_perplexity else 0.0)
    distance = ours.mean - published
    if abs(distance) <= tolerance:
        return "met"
    return f"{'beaten' if distance < 0 else 'missed'} by {abs(distance):.2f}"


def targets(words: Sequence[str] = ()) -> list[Target]:
    """The shipped recipes with published figures whose paths, titles and sources have all of these words."""
    found = []
    for file in sorted(FOLDER.rglob("*.toml")):
        if "expected" not in read_tables(file):
            continue
        recipe = load_recipe(file)
        path, expected = str(Path("recipes") / file.relative_to(FOLDER)), recipe.expected
        assert expected is not None
        if all(word.casefold() in f"{path} {recipe.title} {expected.source}".casefold() for word in words):
            found.append(Target(path, recipe, expected))
    return found


def shipped() -> list[Trained]:
    """The runs that the project has trained."""
    return read_json(RECORDS, Records).runs if RECORDS.is_file() else []


def trained_in(out: Path, known: Sequence[Target]) -> Iterator[Trained]:
    """The runs among the folders in `out`, and in their folders, of networks of these recipes at their size."""
    for folder in sorted({file.parent for depth in ("*", "*/*") for file in out.glob(f"{depth}/metrics.jsonl")}):
        try:
            run = read_folder(folder)
            if "plugins" in run.recipe_table:  # no shipped recipe needs one, and none is executed for a table
                continue
            recipe = parse_recipe(run.recipe_table, str(folder / "recipe.toml"))
        except NotARunError:
            continue
        except UserError as error:
            notice(f"{folder} is left out: {error}")
            continue
        if (by := _by(recipe, known)) is not None:
            yield _record(run, recipe, *by)


def merged(records: Iterable[Trained]) -> list[Trained]:
    """One record of each recipe, settings, data and seed: the one with the most epochs; ties go to the last."""
    best = dict[tuple[object, ...], Trained]()
    for record in records:
        other = best.get(record.key)
        if other is None or (record.finished, record.epochs) >= (other.finished, other.epochs):
            best[record.key] = record
    return list(best.values())


def rows_of(known: Sequence[Target], records: Sequence[Trained]) -> list[Row]:
    """The rows of the table: of each recipe its runs as published, then those with other settings, or one of none.

    Runs that are not finished stand in rows of their own.
    """
    rows = list[Row]()
    for target in known:
        groups = dict[tuple[object, ...], list[Trained]]()
        for record in sorted(records, key=lambda one: (len(one.changed), one.key)):
            if record.recipe == target.path:
                groups.setdefault((record.changed, record.digest, record.finished), []).append(record)
        for runs in groups.values() or [[]]:
            static, dynamic = (_row(target, method, runs) for method in ("static", "dynamic"))
            rows.append(static)
            rows += [dynamic] if any(one is not None for one in dynamic.published.values()) else []
    return rows


def write(path: Path, rows: Sequence[Row], records: Sequence[Trained]) -> Path:
    """Write the table as Markdown, what was trained first, or the finished runs where the path ends in .json."""
    if path.suffix == ".json":
        finished = msgspec.json.encode(Records([one for one in records if one.finished]), order="deterministic")
        write_atomic(path, msgspec.json.format(finished, indent=1).decode() + "\n")
        return path
    rows = sorted(rows, key=lambda row: not row.runs)
    header = ["recipe", "source", "published valid, test", "ours: valid, test", "training", "verdict"]
    table = markdown(header, ((f"`{name}`", *rest) for name, *rest in map(cells, rows)))
    text = (
        "# Published figures at their size\n\n"
        "Written by `elman reproduce published`. Losses are perplexities, or nats per step of music, of the text that"
        " the recipe names; ours are means over the seeds, ± their standard deviation. A figure is met within .5"
        " perplexity or 1 %. What was not run has an estimate of its time on one thread of a CPU, and on an H100."
        f"\n\n{tally(rows)}.\n\n{table}\n"
    )
    write_atomic(path, text)
    return path


def tally(rows: Sequence[Row]) -> str:
    """How many figures were met, beaten, missed, and so on, in one line."""
    first = [re.sub(r" by [\d.]+|[:,].*", "", row.verdict) for row in rows]
    counts = ", ".join(
        f"{first.count(word)} {word}" for word in sorted(set(first), key=lambda word: (-first.count(word), word))
    )
    return f"{counted(len(rows), 'figure')}: {counts}"


def cells(row: Row, *, brief: bool = False) -> list[str]:
    """Recipe and method, source, published losses, ours, what the runs took and how they differ, verdict.

    Settings that differ are counted where they are to be `brief`.
    """
    name = row.target.path.removeprefix("recipes/").removesuffix(".toml")
    published = ", ".join(MISSING if value is None else f"{value:,.4g}" for value in row.published.values())
    ours = ""
    if not row.runs:
        alone, gpu = (duration(60 * training_minutes(row.target.recipe, gpu=gpu)) for gpu in (False, True))
        training = f"about {alone}, on a GPU {gpu}"
    else:
        ours = ", ".join(mean_and_deviation(one, len(row.runs)) for one in row.ours.values())
        hours, epochs = max(run.seconds for run in row.runs) / 3600, max(run.epochs for run in row.runs)
        took = f"{epochs:.0f} epochs, {hours:.1f} h, {row.runs[0].machine}, {counted(len(row.runs), 'seed')}"
        changed = row.runs[0].changed
        training = "; ".join((took, *([counted(len(changed), "other setting")] if brief and changed else changed)))
    method = "" if row.method == "static" else f", {row.method} evaluation"
    return [name + method, row.target.expected.source, published, ours, training, row.verdict]


def _row(target: Target, method: str, runs: Sequence[Trained]) -> Row:
    suffix = "" if method == "static" else f" {method}"
    tuned = runs[0].fine_tuned if runs else True  # without runs the figure at which the recipe aims
    published = {split: target.expected.of(split, fine_tuned=tuned, method=method) for split in ("valid", "test")}
    ours = {
        split: spread(target.scale.of(run.losses[split + suffix]) for run in runs if split + suffix in run.losses)
        for split in published
    }
    return Row(target, method, tuple(runs), published, ours)


def _by(recipe: Recipe, known: Sequence[Target]) -> tuple[str, tuple[str, ...]] | None:
    """The recipe of a network of this kind and size on such data that differs in the fewest settings, and those."""
    own, best = dict(flatten(decisive(recipe))), None
    for target in known:
        other = dict(flatten(decisive(target.recipe)))
        keys = [key for key in sorted(own.keys() | other.keys()) if own.get(key) != other.get(key) and key not in FREE]
        kinds = {key.removesuffix("kind") for key in keys if key.endswith(".kind")}
        keys = [key for key in keys if own.get(key) is not None or key.rpartition(".")[0] + "." not in kinds]
        if all(_keeps_size(key, own.get(key), other.get(key)) for key in keys):
            changed = tuple(f"{key} = {'none' if own.get(key) is None else own[key]}" for key in keys)
            if best is None or len(changed) < len(best[1]):
                best = target.path, changed
    return best


def _keeps_size(key: str, *values: object) -> bool:
    """Whether the setting leaves kind and size of the network: one of training, of how it begins, blanks, or a rate."""
    rates = all(value is None or isinstance(value, float) for value in values)
    free = "training.", "model.initialisation.", "model.encoder.padding"
    return key.startswith(free) or (key.startswith("model.") and rates)


def _record(run: RunFolder, recipe: Recipe, path: str, changed: tuple[str, ...]) -> Trained:
    losses = {
        row.split + ("" if row.method in (None, "static") else f" {row.method}"): row.nll
        for row in run.results
        if (row.model or "best") == "best" and math.isfinite(row.nll)
    }
    if not losses and run.metrics.best is not None:
        losses["valid"] = run.metrics.best.nll
    threads = run.environment.get("threads")
    return Trained(
        recipe=path, seed=recipe.seed, changed=changed, fine_tuned=run.fine_tuned,
        text="" if run.data is None else run.data.name, digest="" if run.data is None else run.data.digest or "",
        epochs=round(run.metrics.epochs, 2), planned=sum(phase.epochs for phase in phases_of(recipe.training)),
        finished=bool(run.results), losses=losses, seconds=round(run.metrics.seconds, 1),
        machine=f"{run.environment.get('processor', 'unknown')}, {counted(threads or 0, 'thread')}",
        elman=str(run.environment.get("elman", "")), started=str(run.environment.get("started", "")),
    )  # fmt: skip
