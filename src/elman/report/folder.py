"""A run folder as the report reads it: everything but the recipe and the metrics may be missing."""

import dataclasses
import json
import math
import tomllib
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from safetensors import SafetensorError, safe_open

from elman.config.earlier import in_present_form
from elman.config.recipe import KINDS
from elman.config.record import TOKENS, Reporting
from elman.data.text.vocabulary import Vocabulary
from elman.drawing.heat_map import Word
from elman.errors import UserError
from elman.report.metrics import DataFacts, Metrics, Passage, RecipeFacts, Result, Sample, read_metrics

T = TypeVar("T")


@dataclasses.dataclass(frozen=True)
class RunFolder:
    """What a run left behind; None or empty where a file is not there."""

    path: Path
    recipe: RecipeFacts
    recipe_table: dict[str, Any]
    recipe_text: str
    metrics: Metrics
    data: DataFacts | None
    environment: dict[str, Any]
    results: list[Result]
    baselines: list[Result]
    samples: list[Sample]
    passage: list[Word]
    vocabulary: Vocabulary | None
    parameters: int | None

    @property
    def title(self) -> str:
        """The recipe's title, else the folder's name."""
        return self.recipe.title or self.path.name

    @property
    def measure(self) -> Reporting:
        """How its losses and its data are reported."""
        kind = in_present_form(self.recipe_table).get("data", {}).get("kind")
        return KINDS[kind].reporting if kind in KINDS else TOKENS

    @property
    def fine_tuned(self) -> bool:
        """Whether the fine-tuning phase was reached."""
        return any(event.event == "fine-tune" for event in self.metrics.events)

    def result(self, split: str) -> Result | None:
        """The figure to quote: the static evaluation of the best model, else the first there is."""
        rows = [row for row in self.results if row.split == split]
        quoted = [row for row in rows if (row.method, row.model) == ("static", "best")]
        return next(iter(quoted or rows), None)


def read_folder(path: Path) -> RunFolder:
    """Read a run folder.

    Raises:
        UserError: it is not a run folder, it has no metrics, or one of its files is damaged.

    """
    recipe_file, metrics_file = path / "recipe.toml", path / "metrics.jsonl"
    if not recipe_file.is_file():
        raise UserError(
            f"{path} is not a run folder: it has no recipe.toml; give the folder that `elman train --out` wrote"
        )
    if not metrics_file.is_file():
        raise UserError(f"{path} has no metrics.jsonl: nothing to report; train first, or restore the file")
    try:
        recipe_text = recipe_file.read_text(encoding="utf-8")
        recipe_table = tomllib.loads(recipe_text)
        recipe = msgspec.convert(recipe_table, RecipeFacts)
    except ValueError as error:
        raise UserError(f"{recipe_file}: not a readable recipe ({error}); restore the file") from None
    vocabulary_file = path / "vocabulary.tsv"
    return RunFolder(
        path=path,
        recipe=recipe,
        recipe_table=recipe_table,
        recipe_text=recipe_text,
        metrics=read_metrics(metrics_file),
        data=_read(path / "data.json", DataFacts | None, None),
        environment=_read(path / "environment.json", dict[str, Any], {}),
        results=_read(path / "results.json", list[Result], []),
        baselines=_read(path / "baselines.json", list[Result], []),
        samples=_read(path / "samples.json", list[Sample], []),
        passage=_read(path / "surprisal.json", Passage, Passage()).sentence,
        vocabulary=Vocabulary.load(vocabulary_file) if vocabulary_file.is_file() else None,
        parameters=_parameters(path / "model.safetensors"),
    )


def _read(path: Path, kind: Any, missing: T) -> T:
    if not path.is_file():
        return missing
    try:
        return msgspec.convert(json.loads(path.read_text(encoding="utf-8")), kind)
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path}: damaged ({error}); restore or remove the file") from None


def _parameters(path: Path) -> int | None:
    """How many numbers a model file holds, by its header alone."""
    if not path.is_file():
        return None
    try:
        with safe_open(path, framework="numpy") as file:
            return sum(math.prod(file.get_slice(name).get_shape()) for name in file.keys())  # noqa: SIM118
    except (SafetensorError, OSError) as error:
        raise UserError(f"{path}: truncated or not a model file ({error}); restore or remove it") from None
