"""The interface between experiments and data: everything that differs between kinds of data."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import msgspec
import torch

from elman.config.recipe import Recipe
from elman.config.training import Training
from elman.data.text import encodings
from elman.data.text.block_reading import Progress
from elman.data.windows import WHOLE, Part, Span, Windows
from elman.errors import UserError
from elman.evaluation.perplexity import Score
from elman.evaluation.result import RESULTS, Result
from elman.files import json_text, write_atomic
from elman.jobs import Advance
from elman.network.encoders.lookup import Lookup
from elman.network.model import LanguageModel
from elman.tasks.run import Inputs, Run


class Size(NamedTuple):
    """The approximate size of a recipe's own data, from published counts: training tokens, words, and source tokens."""

    tokens: int
    words: int
    source_tokens: int = 0


class Task(ABC):
    """A recipe's data, and what is done with a model of it.

    Raises UserError where the data cannot be used, or the recipe asks for what this kind of data lacks. `judged`: the
    measures by which a run is compared with baselines, of which the first counts that a split has.
    """

    kind: ClassVar[str]
    judged: ClassVar[tuple[str, ...]] = ("nll",)
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
    def own_corpus(cls, recipe: Recipe) -> str:
        """The corpus that the recipe names; raises UserError where it names none."""
        if recipe.data.corpus is None:
            raise UserError("a recipe without a corpus has no size of its own")
        return recipe.data.corpus

    @classmethod
    @abstractmethod
    def nominal_size(cls, recipe: Recipe) -> Size:
        """The approximate size of the recipe's own data, without reading it; raises UserError where it names none."""

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

    def baselines(self, order: int | None, splits: Sequence[str]) -> list[Result]:  # noqa: ARG002 - own kinds have some
        """What a model must exceed, by name and split; `order`: of n-grams, None: as suits the data.

        A baseline that writes outputs without probabilities has their measures as `written`, and a loss of NaN.
        """
        return []

    def mixed(
        self, out: Path, device: torch.device, results: Sequence[Result], baselines: Sequence[Result]
    ) -> list[Result]:
        """The model together with a baseline that is as good, where this kind of data has a way to use both."""
        del out, device, results, baselines
        return []

    def remark(self, results: Sequence[Result], baselines: Sequence[Result]) -> str | None:
        """What is said where a baseline is as good as the model, and what to try; else None.

        Losses and the like are compared on the validation split, outputs and tags on every split that has them.
        """
        for own in results:
            rivals = [one for one in baselines if one.split == own.split and one.name]
            for name, mine, figures in self._compared(own, rivals):
                sign = -1 if name in ("nll", "nrmse") else 1
                best = max(figures, key=lambda rival: sign * figures[rival], default=None)
                if best is not None and sign * mine <= sign * figures[best]:
                    return (
                        f"no better than the baseline {best} on the {own.split} split ({name} {mine:.4g}, there"
                        f" {figures[best]:.4g}): give more --minutes, more data, or another training.optimiser.lr"
                    )
        return None

    def _compared(self, own: Result, rivals: Sequence[Result]) -> Iterator[tuple[str, float, dict[str, float]]]:
        """Measures of a result, and of baselines by their names."""
        if own.split == "valid":
            name = next((name for name in self.judged if getattr(own, name) is not None), "nll")
            found = {str(one.name): getattr(one, name) for one in rivals if not one.written}
            yield name, getattr(own, name), {rival: value for rival, value in found.items() if value is not None}
        if own.output is not None:
            systems = {own.output.baseline_name: own.output.baseline}
            systems |= {str(one.name): one.written for one in rivals if one.written}
            ours = own.output.measures[0]
            yield ours.name, ours.value, {rival: values[0].value for rival, values in systems.items()}
        if own.tagging:
            ours, *others = ((system, values[0]) for system, values in own.tagging.items())
            yield ours[1].name, ours[1].value, {system: one.value for system, one in others}

    @abstractmethod
    def summary(self) -> list[str]: ...


def copy_weights(model: LanguageModel, run: Run, advice: str) -> None:
    """Copy the weights of a run into a model with the same parameters; raises UserError where they differ.

    An input-to-output gate that the run lacks keeps its random weights.
    """
    from elman.network.output.input_gate import is_of_gate

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
