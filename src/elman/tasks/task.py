"""The interface between experiments and data: everything that differs between kinds of data."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import msgspec
import torch

from elman.config.recipe import Recipe
from elman.config.training import Training
from elman.data.parts import WHOLE, Part
from elman.data.text import encodings
from elman.data.text.block_reading import Progress
from elman.data.windows import Span, Windows
from elman.errors import UserError
from elman.evaluation.perplexity import Score
from elman.evaluation.result import RESULTS, Result
from elman.files import json_text, write_atomic
from elman.jobs import Advance
from elman.network.encoders.lookup import Lookup
from elman.network.model import LanguageModel
from elman.network.output.input_gate import is_of_gate
from elman.tasks.run import Inputs, Run


class Size(NamedTuple):
    """The approximate size of a recipe's own data, from published counts: training tokens, words, and source tokens."""

    tokens: int
    words: int
    source_tokens: int = 0


class Task(ABC):
    """A recipe's data, and what is done with a model of it.

    Raises UserError where the data cannot be used, or the recipe asks for what this kind of data lacks. `used_by`: the
    command that uses a trained run, which follows it.
    """

    kind: ClassVar[str]
    used_by: ClassVar[tuple[str, ...]] = ()
    run: ClassVar[type[Run]]
    recipe: Recipe
    corpus: Any
    inputs: Inputs
    digest: str
    source: str

    @abstractmethod
    def __init__(self, recipe: Recipe, source: str, progress: Progress | None = None) -> None: ...

    @classmethod
    def own_source(cls, recipe: Recipe) -> str | None:
        """Where the recipe's own data is, None where it names none; raises UserError where it cannot be made."""
        return recipe.data.corpus

    @classmethod
    @abstractmethod
    def nominal_size(cls, recipe: Recipe) -> Size:
        """The approximate size of the recipe's own data, without reading it."""

    @classmethod
    def elsewhere(cls, recipe: Recipe, source: str) -> Recipe:
        return msgspec.structs.replace(recipe, data=recipe.data.changed(corpus=source))

    def recorded_recipe(self) -> Recipe:
        """The recipe as its run folder holds it: it names the data, so that it can be trained again by itself."""
        return self._naming(self.source)

    def _naming(self, corpus: str | None) -> Recipe:
        data = self.recipe.data.changed(corpus=corpus, digest=self.digest)
        return msgspec.structs.replace(self.recipe, data=data)

    def build(self) -> LanguageModel:
        return self.run.build(self.recipe, self.inputs)

    def begin(self, model: LanguageModel) -> None:  # noqa: ARG002 - texts have some
        """Give a new model what its recipe takes from the training data before training."""
        encoder = self.recipe.model.encoder
        if isinstance(encoder, Lookup) and encoder.cooccurrence is not None:
            raise UserError(f"model.encoder.cooccurrence is for text, not for {self.kind}; leave it out")

    @abstractmethod
    def windows(self, max_extra: int | None) -> Windows:
        """The training split; `max_extra` caps random windows."""

    def steps(self, spans: Sequence[Span]) -> tuple[Sequence[Span], float]:
        """Windows of typical size for timing, and how many of them make an epoch of these windows."""
        length = self.recipe.training.window.length
        return [spans[0]._replace(length=length)], sum(span.length for span in spans) / length

    @abstractmethod
    def validate(self, model: LanguageModel, part: Part = WHOLE) -> Score:
        """The validation loss (nats over tokens or steps) of a part of the split, by the recipe's rules."""

    def write(self, folder: Path) -> None:
        """Begin a run folder: data.json, with the encoding that was given, and the vocabularies."""
        codec = encodings.given()
        write_json(folder / "data.json", self.corpus.describe() | ({"encoding": codec} if codec else {}))

    @abstractmethod
    def start_from(self, model: LanguageModel, folder: Path) -> None:
        """Copy the weights of a run into a model; raises UserError where they do not fit."""

    @abstractmethod
    def finish(self, out: Path, device: torch.device, prompts: Sequence[str], advance: Advance) -> list[Result]:
        """Evaluate the best model of a run on valid and test, draw samples, write both; the rows of results.json."""

    def baselines(self, order: int, splits: Sequence[str]) -> list[Result]:  # noqa: ARG002 - texts have some
        """Unigram and Kneser-Ney n-gram figures; raises UserError where they are not defined."""
        raise UserError(f"n-gram baselines are for text, not for {self.kind}; leave out --baselines")

    def remark(self, results: Sequence[Result], baselines: Sequence[Result]) -> str | None:
        """What is said where a baseline is as good as the model on the validation split, and what to try; else None.

        Rows are compared by the first of accuracy, NRMSE and NLL that the model has.
        """
        own = next((one for one in results if one.split == "valid"), None)
        rivals = [one for one in baselines if one.split == "valid"]
        if own is None or not rivals:
            return None
        name = next(name for name in ("accuracy", "nrmse", "nll") if getattr(own, name) is not None)
        sign = 1 if name == "accuracy" else -1
        figures = {one.name: value for one in rivals if (value := getattr(one, name)) is not None}
        best, mine = max(figures, key=lambda rival: sign * figures[rival], default=None), getattr(own, name)
        if best is None or sign * mine > sign * figures[best]:
            return None
        return (
            f"no better than the baseline {best} on the valid split ({name} {mine:.4g}, there {figures[best]:.4g}):"
            " give more --minutes, more data, or another training.optimiser.lr"
        )

    @abstractmethod
    def summary(self) -> list[str]: ...


def copy_weights(model: LanguageModel, run: Run, advice: str) -> None:
    """Copy the weights of a run into a model with the same parameters; raises UserError where they differ.

    An input-to-output gate that the run lacks keeps its random weights.
    """
    ours = model.state_dict()
    theirs = {name: tensor for name, tensor in ours.items() if is_of_gate(name)} | run.model.state_dict()
    if {name: tensor.shape for name, tensor in ours.items()} != {name: found.shape for name, found in theirs.items()}:
        raise UserError(f"--init {run.path}: its network differs; use {advice} for both")
    model.load_state_dict(theirs)


def require_no_random_windows(training: Training, what: str) -> None:
    """Raise UserError where training cuts its data into windows of random lengths, as suits streams alone."""
    if training.window.random:
        raise UserError(f"training.window.random: {what} are not cut into windows at random; set random = false")


def write_results(out: Path, evaluated: Callable[[str], Result], more: Callable[[], Mapping[str, Any]]) -> list[Result]:
    """Write the results of the best model on the valid and test splits, by their names, and more files of JSON.

    results.json is written last, since with it a run is complete.
    """
    results = [msgspec.structs.replace(evaluated(name), model="best") for name in ("valid", "test")]
    for name, value in more().items():
        write_json(out / name, msgspec.to_builtins(value))
    write_json(out / RESULTS, [one.as_dict() for one in results])
    return results


def write_json(path: Path, value: Any) -> None:
    """Write JSON, completely or not at all; numbers that are not finite become null."""
    write_atomic(path, json_text(value, indent=1) + "\n")
