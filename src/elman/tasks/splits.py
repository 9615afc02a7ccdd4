"""What the runs and tasks of kinds of data share: splits that are read at once, evaluated and shown one by one."""

import functools
from abc import abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar, NoReturn

import msgspec
import torch

from elman.config.recipe import Recipe
from elman.data.by_length import WholeWindows
from elman.data.text.block_reading import Progress
from elman.errors import UserError
from elman.evaluation.result import Result
from elman.jobs import Advance
from elman.network.build import build_model
from elman.network.model import LanguageModel
from elman.tasks.evaluating import DEFAULT, EvaluationOptions
from elman.tasks.run import Run
from elman.tasks.samples import Sample
from elman.tasks.task import Size, Task, copy_weights, require_no_random_windows, write_results


class SplitRun(Run):
    """A run on data whose splits are evaluated by `result`, with the options of an evaluation that `allowed` names."""

    allowed: ClassVar[tuple[str, ...]] = ("streams",)
    data: Any
    options: Any
    inputs: Any

    def __init__(self, path: Path | str, device: torch.device | str = "cpu") -> None:
        super().__init__(path, device)
        self.data, self.options = self.recipe.data, self.recipe.data.options
        self.inputs = self.read_inputs()

    @abstractmethod
    def read_inputs(self) -> Any:
        """What the model reads, as its folder says; raises UserError where a file is missing or damaged."""

    @abstractmethod
    def result(self, corpus: Any, name: str, options: EvaluationOptions = DEFAULT, advance: Advance = None) -> Result:
        """The result of the split of this name."""

    def asked(self, options: EvaluationOptions) -> Any:
        """The data that an evaluation asks for."""
        return self.corpus(options.data)

    def evaluate(self, options: EvaluationOptions = DEFAULT, advance: Advance = None) -> Result:
        options.require(self.kind, *self.allowed)
        corpus = self.asked(options)
        result = self.result(corpus, options.split, options, advance)
        return msgspec.structs.replace(result, data=corpus.source)


class SymbolRun(SplitRun):
    """A run on sentences or pairs, each by itself, with the vocabularies in its folder.

    `symbols` loads the vocabularies, `opening` reads data with them; `alone` is why nothing adapts to them.
    """

    alone: ClassVar[str] = "adaptation reads one text from its beginning to its end"
    symbols: ClassVar[Any]
    opening: ClassVar[Callable[..., Any]]

    def read_inputs(self) -> Any:
        return self.symbols.load(self.path, self.options)

    def corpus(self, data: str | Path | None = None) -> Any:
        return self.opened(data, lambda source: type(self).opening(source, self.options, symbols=self.inputs))

    def adaptation_source(self, options: EvaluationOptions = DEFAULT) -> NoReturn:  # noqa: ARG002 - there is none
        """Raises UserError: sentences and pairs do not follow each other, and adaptation needs one stream."""
        raise UserError(f"{self.path} is a run on {self.kind}; {self.alone}")


class LabelledRun(SymbolRun):
    """A run on sentences whose words or phrases have labels (`elman.data.sentences`)."""

    @staticmethod
    def build(recipe: Recipe, inputs: Any) -> LanguageModel:
        words, labels = inputs.words, inputs.labels
        return build_model(recipe.model, len(words), labels.counts, words.words, num_labels=len(labels))


class SplitTask(Task):
    """A task whose data `opening` reads at once, and whose run evaluates each split."""

    run: ClassVar[type[SplitRun]]
    opening: ClassVar[Callable[..., Any]]
    inputs: Any
    data: Any

    def __init__(self, recipe: Recipe, source: str, progress: Progress | None = None) -> None:  # noqa: ARG002 - quick
        self.recipe, self.source, self.data = recipe, source, recipe.data
        self.require()
        self.corpus = type(self).opening(source, recipe.data.options)
        self.inputs, self.digest = self.corpus.symbols, self.corpus.digest
        for split in ("valid", "test"):
            self.corpus.split(split)

    def require(self) -> None:
        """Raise UserError where the recipe asks for what this kind of data lacks, or a library is missing."""

    def finish(self, out: Path, device: torch.device, prompts: Sequence[str], advance: Advance) -> list[Result]:
        """results.json, and samples.json with what the model makes of the test split, or draws."""
        run = self.run(out, device)

        return write_results(
            out, lambda name: self.result(run, name, advance), lambda: {"samples.json": self.samples(run, len(prompts))}
        )

    def result(self, run: Any, name: str, advance: Advance) -> Result:
        found: Result = run.result(self.corpus, name, advance=advance)
        return found

    @abstractmethod
    def samples(self, run: Any, count: int) -> list[Sample]:
        """The rows of samples.json; `count`: how many are drawn, where they are."""


class WholeSequences(SplitTask):
    """Sequences that training reads whole, in batches that differ in size: pairs, tagged sentences, trees."""

    run: ClassVar[type[SymbolRun]]
    nominal: ClassVar[Size]
    by_tokens: ClassVar[bool] = False
    unit: ClassVar[str]

    def require(self) -> None:
        """Raise UserError where training cuts its data at random, or fills batches by tokens unless it may."""
        training = self.recipe.training
        require_no_random_windows(training, self.unit)
        if training.tokens_per_batch is not None and not self.by_tokens:
            raise UserError(f"training.tokens_per_batch is for pairs; of {self.kind} set training.batch_size")

    @classmethod
    def nominal_size(cls, recipe: Recipe) -> Size:  # noqa: ARG003 - recipes name no data
        return cls.nominal

    def windows(self, max_extra: int | None) -> WholeWindows:  # noqa: ARG002 - no random windows
        training, split = self.recipe.training, self.corpus.split("train")
        tokens = training.tokens_per_batch
        size = {"tokens_per_batch": tokens} if tokens else {"batch_size": training.batch_size}
        gather = functools.partial(self.corpus.gather, split)
        return WholeWindows(split.lengths, gather, self.recipe.seed, in_order=training.order == "file", **size)

    def steps(self, spans: Sequence[Any]) -> tuple[Sequence[Any], float]:
        return spans, len(spans)

    def write(self, folder: Path) -> None:
        self.inputs.save(folder)
        super().write(folder)

    def start_from(self, model: LanguageModel, folder: Path) -> None:
        """Weights of a run with the same vocabularies and network."""
        run = self.run(folder)
        if run.inputs.digest != self.inputs.digest:
            raise UserError(f"--init {folder}: its vocabularies differ; use the same {self.kind} for both")
        copy_weights(model, run, "the same model section")


def shown(sentences: Sequence[Sequence[str]], count: int, longest: int, limit: int | None = None) -> list[int]:
    """The places of some sentences of a split that samples show: the first of 6 to `longest` words, if there are any.

    None has more words than the `limit`.
    """
    short = [n for n, words in enumerate(sentences) if limit is None or len(words) <= limit]
    return ([n for n in short if 6 <= len(sentences[n]) <= longest] or short)[:count]
