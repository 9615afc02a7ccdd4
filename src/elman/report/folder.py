"""A run folder as the report reads it: everything but the recipe and the metrics may be missing."""

import dataclasses
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from elman.config.data import reporting_of
from elman.config.recipe import Expected
from elman.config.record import Reporting
from elman.data.text.vocabulary import TABLE, Vocabulary
from elman.drawing.heat_map import Word
from elman.errors import UserError
from elman.evaluation.result import Result, recorded_results
from elman.formats import SCALE, opened_tensors, parse_json, parse_toml, read_json
from elman.report.metrics import Metrics, SavedModel, read_metrics, with_model
from elman.tasks.hub import fetched
from elman.tasks.samples import Passage, Sample

T = TypeVar("T")

_SYMBOLS = {"words": "word", "raw": "word", "characters": "character", "bytes": "byte", "subwords": "piece"}
_FORMS = {"pronunciations": "sound", "trees": "symbol"}
"""What the targets of pairs consist of, where that is no text."""


class SplitFacts(msgspec.Struct, frozen=True):
    """A split in data.json; the tokens of music are steps."""

    tokens: int
    unknown: int | None = None
    characters: int | None = None
    lines: int | None = None
    words: int | None = None
    sha256: str | None = None
    pieces: int | None = None


class DataFacts(msgspec.Struct, frozen=True):
    """data.json."""

    name: str
    source: str | None = None
    tokenisation: str | None = None
    lowercase: bool | None = None
    eos: str | None = None
    min_count: int | None = None
    splits: dict[str, SplitFacts] = {}
    digest: str | None = None


class TrainingFacts(msgspec.Struct, frozen=True):
    """The keys of [training] that are drawn; with a margin losses while training are not those of results."""

    margin: Any = None
    clip: float | None = None
    clip_by: str = "global"


class RecipeFacts(msgspec.Struct, frozen=True):
    """The keys of a recipe that the report uses; recipes of other versions may have others."""

    title: str | None = None
    notes: str | None = None
    citation: str | None = None
    seed: int | None = None
    training: TrainingFacts = TrainingFacts()
    expected: Expected | None = None


@dataclasses.dataclass(frozen=True)
class RunFolder:
    """The files of a run; None or empty where one is missing. `written`: baselines that have no loss."""

    path: Path
    recipe: RecipeFacts
    recipe_table: dict[str, Any]
    recipe_text: str
    metrics: Metrics
    data: DataFacts | None
    environment: dict[str, Any]
    results: list[Result]
    baselines: list[Result]
    written: list[Result]
    samples: list[Sample]
    passage: list[Word]
    vocabulary: Vocabulary | None
    parameters: int | None

    @property
    def title(self) -> str:
        """The recipe's title, else the folder's name."""
        return self.recipe.title or self.path.name

    @property
    def scale(self) -> Reporting:
        """How its losses and its data are reported."""
        data = self.recipe_table.get("data")
        kind = data.get("kind") if isinstance(data, dict) else None
        return reporting_of(kind)

    @property
    def symbol(self) -> str:
        """What is predicted, in the singular: word, character, byte or piece of a text, sound, symbol of a tree.

        Else the unit of its losses.
        """
        data = self.recipe_table.get("data")
        if isinstance(data, dict) and data.get("kind") == "pairs" and (symbol := _FORMS.get(str(data.get("form")))):
            return symbol
        tokenisation = None if self.data is None else self.data.tokenisation
        return _SYMBOLS.get(tokenisation or "", self.scale.unit)

    @property
    def read(self) -> str:
        """What the vocabulary has and may lack, in the singular."""
        return self.scale.read or self.symbol

    @property
    def fine_tuned(self) -> bool:
        """Whether the fine-tuning phase was reached."""
        return any(event.event == "fine-tune" for event in self.metrics.events)

    def result(self, split: str) -> Result | None:
        """The result to quote: the static evaluation of the best model, else the first one."""
        rows = [row for row in self.results if row.split == split]
        quoted = [row for row in rows if (row.method, row.model) == ("static", "best")]
        return next(iter(quoted or rows), None)

    @property
    def valid_loss(self) -> float | None:
        """As evaluated after training, else the best one during training; infinite where it is so in nats."""
        found = self.result("valid") or self.metrics.best
        return None if found is None else self.reported(found.nll)

    @property
    def test_loss(self) -> float | None:
        """As evaluated after training; infinite where it is so in nats."""
        found = self.result("test")
        return None if found is None else self.reported(found.nll)

    def reported(self, nll: float) -> float:
        """The loss of an NLL (nats) on the run's scale, infinite where that is not finite."""
        return self.scale.of(nll) if math.isfinite(nll) else math.inf


class NotARunError(UserError):
    """A path is no run folder, or one in which nothing has been trained."""


def read_folders(paths: Sequence[Path]) -> tuple[list[RunFolder], list[Path]]:
    """Read run folders; which of several paths are no run folders, such as pages in `runs/*`, is returned too.

    Raises UserError where none is a run folder, or a file of a run is damaged.
    """
    found, others = list[RunFolder](), list[Path]()
    for path in map(fetched, paths):
        try:
            found.append(read_folder(path))
        except NotARunError:
            if len(paths) == 1:
                raise
            others.append(path)
    if not found:
        names = ", ".join(map(str, others))
        raise UserError(f"no run among {names or 'no folders'}; give folders that `elman train --out` wrote")
    return found, others


def read_folder(path: Path) -> RunFolder:
    """Read a run folder; raises UserError where a file is damaged, NotARunError without a recipe or metrics."""
    recipe_file, metrics_file = path / "recipe.toml", path / "metrics.jsonl"
    if not recipe_file.is_file():
        raise NotARunError(
            f"{path} is not a run folder: it has no recipe.toml; give the folder that `elman train --out` wrote"
        )
    if not metrics_file.is_file():
        raise NotARunError(f"{path} has no metrics.jsonl: nothing to report; train first, or restore the file")
    try:
        recipe_text = recipe_file.read_text(encoding="utf-8")
        recipe_table = parse_toml(recipe_text)
        recipe = msgspec.convert(recipe_table, RecipeFacts)
    except ValueError as error:
        raise UserError(f"{recipe_file}: not a readable recipe ({error}); restore the file") from None
    vocabulary_file = path / TABLE
    baselines = recorded_results(path, "baselines.json")
    parameters, saved = _model(path / "model.safetensors")
    return RunFolder(
        path=path,
        recipe=recipe,
        recipe_table=recipe_table,
        recipe_text=recipe_text,
        metrics=with_model(read_metrics(metrics_file), saved),
        data=_read(path / "data.json", DataFacts | None, None),
        environment=_read(path / "environment.json", dict[str, Any], {}),
        results=recorded_results(path),
        baselines=[one for one in baselines if not one.written],
        written=[one for one in baselines if one.written],
        samples=_read(path / "samples.json", list[Sample], []),
        passage=_read(path / "surprisal.json", Passage, Passage()).sentence,
        vocabulary=Vocabulary.load(vocabulary_file) if vocabulary_file.is_file() else None,
        parameters=parameters,
    )


def _read(path: Path, kind: Any, missing: T) -> T:
    if not path.is_file():
        return missing
    found: T = read_json(path, kind)
    return found


def _model(path: Path) -> tuple[int | None, SavedModel | None]:
    """The number of parameters in a model file, and what it says of its validation, by its header alone."""
    if not path.is_file():
        return None, None
    with opened_tensors(path, "numpy", "restore or remove it") as file:
        names = [name for name in file.keys() if not name.endswith(SCALE)]  # noqa: SIM118
        count = sum(math.prod(file.get_slice(name).get_shape()) for name in names)
        facts = (file.metadata() or {}).get("facts", "")
    try:
        saved = msgspec.convert(parse_json(facts), SavedModel)
        return saved.parameters or count, saved
    except ValueError:
        return count, None
