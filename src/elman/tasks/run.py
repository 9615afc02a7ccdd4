"""A run folder: the recipe, where the data came from, the best model, and what every kind of run can do with them."""

import dataclasses
import functools
import json
import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar, Protocol

import msgspec
import torch

from elman.config.recipe import Recipe
from elman.config.toml import load_recipe
from elman.data.windows import PositionedWindows, Windows
from elman.errors import UserError
from elman.evaluation.perplexity import Score
from elman.evaluation.result import Result
from elman.jobs import Advance
from elman.learning import checkpoint
from elman.network.model import LanguageModel


class Inputs(Protocol):
    """What a model reads: a vocabulary, two of them, or the pitches of a frame."""

    def __len__(self) -> int:
        """How many symbols, or numbers per frame, there are."""

    @property
    def digest(self) -> str:
        """Differs where the inputs differ."""


class EvaluationOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What is evaluated and how; a run refuses the options that its kind of data lacks.

    Attributes:
        split: `train`, `valid` or `test`, of a text also `all`.
        data: other data, encoded as that of the run was; None: the run's own.
        streams: columns, pieces or pairs read side by side; None: one stream of text, else as many as suit.
        warm_up: tokens that each column of a text reads, uncounted, before its part.
        skip_first: do not count the first token of a text.
        unknown_as_unk: read unknown words as `<unk>`, also by a model that reads spelling.
        beam: of pairs, hypotheses kept; None: as the recipe says.
        constrained: of pairs, search among trees alone; None: as the recipe says.
    """

    split: str = "test"
    data: str | Path | None = None
    streams: int | None = None
    warm_up: int = 0
    skip_first: bool = False
    unknown_as_unk: bool = False
    beam: int | None = None
    constrained: bool | None = None

    def require(self, kind: str, *allowed: str) -> None:
        """Raise UserError where an option is set that runs on this kind of data lack."""
        for field in msgspec.structs.fields(self):
            if field.name not in ("split", "data", *allowed) and getattr(self, field.name) != field.default:
                option = "unconstrained" if field.name == "constrained" else field.name.replace("_", "-")
                raise UserError(f"--{option} does not belong to a run on {kind}; leave it out")


DEFAULT = EvaluationOptions()


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


class Run(ABC):
    """An open run folder; `elman.load` opens one as the run of its kind of data.

    `reads` is what its inputs are called. Raises UserError where the folder is not a run, or one on another kind of
    data.
    """

    kind: ClassVar[str]
    reads: ClassVar[str] = "vocabulary"
    inputs: Inputs

    def __init__(self, path: Path | str, device: torch.device | str = "cpu") -> None:
        self.path, self.device = Path(path), torch.device(device)
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
        return checkpoint.load(self.path / "model.safetensors")[1]

    @functools.cached_property
    def model(self) -> LanguageModel:
        """The best model in evaluation mode; raises UserError where it is missing, damaged or of other inputs."""
        with torch.inference_mode(False):  # parameters that count their changes, whoever asks first
            return self._load_model()

    @classmethod
    def recorded_source(cls, path: Path, recipe: Recipe) -> str:  # noqa: ARG003 - a text may be generated by its recipe
        """Where the data of a run folder is; raises UserError where data.json is missing or damaged."""
        return str(data_facts(path)["source"])

    @abstractmethod
    def corpus(self, data: str | Path | None = None) -> Any:
        """The run's own data, or other data encoded as that was; raises UserError where it cannot be used."""

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
        file = self.path / "model.safetensors"
        tensors, facts = checkpoint.load(file)
        if facts["vocabulary"] != self.inputs.digest:
            raise UserError(
                f"{file}: trained with another {self.reads} than that of {self.path} (its digest is"
                f" {facts['vocabulary'][:12]}, there it is {self.inputs.digest[:12]}); restore the files of the run"
            )
        with torch.random.fork_rng(devices=[]):
            model = self.build(self.recipe, self.inputs).to(self.device)
        expected = {name: tuple(tensor.shape) for name, tensor in checkpoint.model_tensors(model).items()}
        found = {name: tuple(tensor.shape) for name, tensor in tensors.items()}
        for name in sorted(expected.keys() | found.keys()):
            if expected.get(name) != found.get(name):
                raise UserError(
                    f"{file}: does not fit {self.path / 'recipe.toml'}: {name} is {found.get(name, 'missing')}, the"
                    f" recipe needs {expected.get(name, 'nothing of that name')}; restore the recipe of the run"
                )
        checkpoint.load_model(model, tensors)
        return model.eval()


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
        facts = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        facts = None
    if not isinstance(facts, dict) or not {"source", "digest"} <= facts.keys():
        raise UserError(f"{path}: missing or damaged; restore the file of the run, or train again")
    return facts
