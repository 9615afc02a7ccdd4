"""A run folder: the recipe, where the data came from, the best model, and what every kind of run can do with them."""

import dataclasses
import functools
import math
import shlex
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Protocol, TypeVar

import msgspec
import torch
from msgspec import Meta

from elman.config.inference import Settings
from elman.config.plugins import resuming
from elman.config.recipe import Recipe
from elman.config.toml import changed_keys, decisive, flatten, load_recipe
from elman.data.catalog.prepare import is_known
from elman.data.kinds import begins_names
from elman.data.text.sources import one_text
from elman.data.windows import PositionedWindows, Windows
from elman.errors import UserError
from elman.evaluation.perplexity import Score
from elman.evaluation.result import Result
from elman.files import json_text
from elman.formats import parse_json
from elman.jobs import Advance
from elman.learning import checkpoint
from elman.learning.checkpoint import CHECKPOINT, MODEL
from elman.learning.progress import read_progress
from elman.learning.resumption import recorded_recipe
from elman.network.device import choose_device
from elman.network.model import LanguageModel


class Inputs(Protocol):
    """What a model reads: a vocabulary, two of them, or the pitches of a frame."""

    def __len__(self) -> int:
        """How many symbols, or numbers per frame, there are."""

    @property
    def digest(self) -> str:
        """Differs where the inputs differ."""


class EvaluationOptions(Settings, frozen=True, kw_only=True):
    """What is evaluated and how; a run refuses the options that its kind of data lacks.

    Raises UserError where a number is out of range.

    Attributes:
        split: `train`, `valid` or `test`, of a text also `all`.
        data: other data, encoded as that of the run was; None: the run's own.
        streams: columns, pieces or pairs read side by side; None: one stream of text, else as many as suit.
        warm_up: tokens that each column of a text reads, uncounted, before its part.
        skip_first: do not count the first token of a text.
        unknown_as_unk: read unknown words as `<unk>`, also by a model that reads spelling.
        beam: of pairs, hypotheses kept; None: as the recipe says.
        constrained: of pairs, search among trees alone; None: as the recipe says.
        search: of parsers, how trees are searched for; None: as the recipe says.
    """

    split: str = "test"
    data: str | Path | None = None
    streams: Annotated[int, Meta(ge=1)] | None = None
    warm_up: Annotated[int, Meta(ge=0)] = 0
    skip_first: bool = False
    unknown_as_unk: bool = False
    beam: Annotated[int, Meta(ge=1)] | None = None
    constrained: bool | None = None
    search: Literal["chart", "greedy"] | None = None

    def __post_init__(self) -> None:
        self.check()

    def require(self, kind: str, *allowed: str) -> None:
        """Raise UserError where an option is set that runs on this kind of data lack."""
        for field in msgspec.structs.fields(self):
            if field.name not in ("split", "data", *allowed) and getattr(self, field.name) != field.default:
                option = "unconstrained" if field.name == "constrained" else field.name.replace("_", "-")
                raise UserError(f"--{option} does not belong to a run on {kind}; leave it out")


DEFAULT = EvaluationOptions()


class AnyCorpus(Protocol):
    """Data as it was read: where it is from, and the digest of what was read."""

    @property
    def source(self) -> str:
        """Where it is from."""

    @property
    def digest(self) -> str:
        """Differs where the data or its options differ."""


CorpusT = TypeVar("CorpusT", bound=AnyCorpus)


@dataclasses.dataclass(frozen=True)
class AdaptationSource:
    """A split that a model reads in one column, from its beginning to its end, and may adapt to.

    The state of a text is carried throughout; in music it starts afresh with every piece.

    Attributes:
        data, sha256, size: where it is from, its digest, and its tokens or steps.
        beginning: the source that its first tokens or steps are, so many (None: all).
        column: the run's model, which knows the words of the text, and windows of at most so many steps in one column.
        statistics_windows: the windows over which gradient statistics are computed.
        result: the result of a score.
        discrete: symbols can recur, so that a cache is defined.
        spelled: unknown words are read by their spelling.
    """

    data: str
    sha256: str
    size: int
    beginning: Callable[[int | None], "AdaptationSource"]
    column: Callable[[int], tuple[LanguageModel, PositionedWindows]]
    statistics_windows: Callable[[], Windows]
    result: Callable[[Score], Result]
    discrete: bool = True
    spelled: bool = False

    @property
    def facts(self) -> dict[str, Any]:
        """What distinguishes it from other sources, and from other ways to read it."""
        return {"text": self.sha256, "tokens": self.size} | ({"spelled": True} if self.spelled else {})


class _ModelFacts(msgspec.Struct):
    """The facts that every model has."""

    vocabulary: str
    step: int
    epoch: float
    valid_nll: float | None
    averaged: bool = False


class Run(ABC):
    """An open run folder; `elman.load` opens one as the run of its kind of data.

    `reads` is what its inputs are called. Raises UserError where the folder is not a run, or one on another kind of
    data.
    """

    kind: ClassVar[str]
    reads: ClassVar[str] = "vocabulary"
    inputs: Inputs

    def __init__(self, path: Path | str, device: torch.device | str = "cpu") -> None:
        self.path, self.device = Path(path), choose_device(device)
        self.recipe = recipe_of(self.path)
        if self.recipe.kind != self.kind:
            raise UserError(f"{path} is a run on {self.recipe.kind}; here a run on {self.kind} is needed")

    @property
    def source(self) -> str:
        """Where its data is."""
        return self.recorded_source(self.path, self.recipe)

    @functools.cached_property
    def facts(self) -> dict[str, Any]:
        """data.json: where the data came from, and its counts."""
        return data_facts(self.path)

    @functools.cached_property
    def saved(self) -> dict[str, Any]:
        """The facts saved with the best model: its step, epoch and validation loss."""
        return self._load_file()[1]

    @functools.cached_property
    def model(self) -> LanguageModel:
        """The best model in evaluation mode; raises UserError where it is missing, damaged or of other inputs."""
        with torch.inference_mode(False):  # parameters that count their changes, whoever asks first
            return self._load_model()

    @classmethod
    def recorded_source(cls, path: Path, recipe: Recipe) -> str:  # noqa: ARG003 - a text may be generated by its recipe
        """Where the data of a run folder is; raises UserError where data.json is missing or damaged."""
        return str(data_facts(path)["source"])

    @classmethod
    def present_source(cls, path: Path, recipe: Recipe) -> str:
        """As `recorded_source`; raises UserError where the data is not there any more, too."""
        source = cls.recorded_source(path, recipe)
        return present(source, f"{path / 'data.json'} names the data {source}")

    @abstractmethod
    def corpus(self, data: str | Path | None = None) -> Any:
        """The run's own data, or other data encoded as that was; raises UserError where it cannot be used.

        The run's own data must be as it was in training.
        """

    def opened(self, data: str | Path | None, opening: Callable[[str | Path], CorpusT]) -> CorpusT:
        """Other data, or the run's own, which is compared with that of the training."""
        if data is not None:
            return opening(data)
        corpus = opening(self.present_source(self.path, self.recipe))
        if corpus.digest != (trained_on := self.facts["digest"]):
            if (self.path / MODEL).exists():
                self._require_own(self.saved)
            raise UserError(
                f"{corpus.source}: changed since {self.path} was trained on it (its digest is {corpus.digest:.12}, it"
                f" was {trained_on:.12}); restore it, or give --data {shlex.quote(corpus.source)} to use it as other"
                " data"
            )
        return corpus

    @staticmethod
    @abstractmethod
    def build(recipe: Recipe, inputs: Any) -> LanguageModel:
        """The network of a recipe for these inputs, with random weights."""

    def uniform_nll(self) -> float:
        """Nats per token or step of a model that predicts uniformly, by default among as many symbols as it reads."""
        return math.log(len(self.inputs))

    @abstractmethod
    def evaluate(self, options: EvaluationOptions = DEFAULT, advance: Advance = None) -> Result:
        """The static result of a split; raises UserError where the data or an option does not fit this kind of run."""

    @abstractmethod
    def adaptation_source(self, options: EvaluationOptions = DEFAULT) -> AdaptationSource:
        """A split for models that adapt; raises UserError where this kind of data has no streams, or an option."""

    def _load_model(self) -> LanguageModel:
        file = self.path / MODEL
        tensors, facts = self._load_file()
        self._require_own(facts)
        with torch.random.fork_rng(devices=[]):
            model = self.build(self.recipe, self.inputs).to(self.device)
        checkpoint.require_fit(file, checkpoint.model_tensors(model), tensors, self.path / "recipe.toml")
        checkpoint.load_model(model, tensors)
        return model.eval()

    def _load_file(self) -> tuple[dict[str, torch.Tensor], dict[str, Any]]:
        """The tensors and facts of the best model."""
        last = self.path / CHECKPOINT
        stopped = not (self.path / MODEL).exists() and last.exists()
        if stopped and read_progress(last, checkpoint.load(last, "progress")[1]["progress"]).best is None:
            raise UserError(
                f"{self.path / MODEL}: there is no model yet, since training stopped before its first validation;"
                f" continue it with: {resuming('train', self.path)}"
            )
        tensors, facts = checkpoint.load(self.path / MODEL, "vocabulary")
        try:
            msgspec.convert(facts, _ModelFacts)
        except msgspec.ValidationError as error:
            raise UserError(f"{self.path / MODEL}: its header is damaged ({error}); restore the file") from None
        return tensors, facts

    def _require_own(self, facts: dict[str, Any]) -> None:
        """Raise UserError where vocabulary or recipe of the folder are not those of the model with these facts."""
        file, recipe = self.path / MODEL, self.path / "recipe.toml"
        trained = recorded_recipe(file, facts) or self.recipe  # earlier versions recorded none
        reading = {"kind", *self.recipe.data.options.__struct_fields__}
        for key in changed_keys(trained, self.recipe):
            table, *rest = key.split(".")
            if table == "model" or (table == "data" and rest[0] in reading):
                was, now = (json_text(dict(flatten(decisive(one))).get(key)) for one in (trained, self.recipe))
                raise UserError(
                    f"{recipe}: {key} is {now}, but the model was trained with {was}; restore the recipe of the run"
                )
        if facts["vocabulary"] != self.inputs.digest:
            raise UserError(
                f"{file}: trained with another {self.reads} than that of {self.path} (its digest is"
                f" {facts['vocabulary'][:12]}, there it is {self.inputs.digest[:12]}); restore the files of the run"
            )


def present(source: str, statement: str) -> str:
    """A source of data that is there; raises UserError with the statement that names it where it is not.

    It may be the beginning of the names of parallel files, or a pattern that finds the files of a text.
    """
    path = Path(source).expanduser()
    if not is_known(source) and not path.exists() and not begins_names(path) and not one_text(path):
        raise UserError(f"{statement}, which is not there; give the place where it is now with --data")
    return source


def recipe_of(folder: Path) -> Recipe:
    """The recipe of a run folder; raises UserError where the folder is not a run."""
    if not (folder / "recipe.toml").is_file():
        raise UserError(
            f"{folder} is not a run folder: it has no recipe.toml; give the folder that `elman train --out` wrote"
        )
    return load_recipe(folder / "recipe.toml")


def data_facts(folder: Path) -> dict[str, Any]:
    """data.json of a run folder (source, counts, digest); raises UserError where it is missing or damaged."""
    path = folder / "data.json"
    try:
        facts = parse_json(path.read_bytes())
    except (OSError, ValueError):
        facts = None
    if not isinstance(facts, dict) or not {"source", "digest"} <= facts.keys():
        raise UserError(f"{path}: missing or damaged; restore the file of the run, or train again")
    return facts
