"""Pairs of a source and a target."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import torch

from elman import config
from elman.data.pairs.corpus import open_pairs
from elman.data.pairs.windows import PairWindows
from elman.errors import UserError
from elman.evaluation.result import Result
from elman.evaluation.targets import evaluate_output, evaluate_pairs, pair_result
from elman.evaluation.transduction import references, require_libraries, rules_of
from elman.files import write_atomic
from elman.network.model import LanguageModel
from elman.network.seq2seq import SequenceToSequence
from elman.tasks.pairs.run import PairRun, Transduction
from elman.tasks.task import Advance, Task, write_json

SAMPLES = 6
"""Sources of the test split whose targets a run folder shows."""


class Transduce(Task):
    """A corpus of pairs.

    Raises:
        UserError: the pairs cannot be used, or the recipe asks for what only streams have.

    """

    kind, in_perplexity = "pairs", True

    def __init__(self, recipe: config.Recipe, source: str) -> None:
        self.recipe = recipe
        _require_fit(recipe.training)
        require_libraries(rules_of(recipe.data.pairs))  # better said now than after training
        self.corpus = open_pairs(source, recipe.data.pairs)
        self.inputs, self.digest, self.source = self.corpus.symbols, self.corpus.digest, source
        self.counts = self.corpus.target_vocabulary.counts
        self.num_source = len(self.corpus.source_vocabulary)

    def windows(self, max_extra: int | None) -> PairWindows:  # noqa: ARG002 - batches of pairs have no random windows
        """The training pairs, in another order each epoch."""
        training = self.recipe.training
        pairs = self.corpus.split("train")
        return PairWindows(self.corpus, pairs, training.batch_size, training.tokens_per_batch, self.recipe.seed)

    def validate(self, model: LanguageModel) -> float:
        """Nats a token of the validation targets."""
        assert isinstance(model, SequenceToSequence)
        return evaluate_pairs(model, self.corpus, self.corpus.split("valid")).nll

    def write(self, folder: Path) -> None:
        """Both vocabularies and data.json."""
        self.corpus.symbols.save(folder)
        write_json(folder / "data.json", self.corpus.describe())

    def start_from(self, model: LanguageModel, folder: Path) -> None:
        """Weights of a run with the same vocabularies and network."""
        run = PairRun(folder)
        theirs = run.model.state_dict()
        ours = {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}
        same = run.inputs.digest == self.inputs.digest
        if not same or ours != {name: tuple(tensor.shape) for name, tensor in theirs.items()}:
            raise UserError(
                f"--init {folder}: its {'network' if same else 'vocabularies'} differ; use the same model section and"
                " the same pairs for both"
            )
        model.load_state_dict(theirs)

    def finish(self, out: Path, device: torch.device, prompts: Sequence[str], advance: Advance) -> list[Result]:  # noqa: ARG002
        """results.json over whole pairs; output-test.txt and its quality; samples.json: test sources with theirs."""
        run = PairRun(out, device)
        results = []
        for name in ("valid", "test"):
            pairs = self.corpus.split(name)
            score = evaluate_pairs(run.model, self.corpus, pairs, advance=advance)
            results.append(msgspec.structs.replace(pair_result(score, pairs), model="best"))
        pairs = self.corpus.split("test")
        lines, quality = evaluate_output(run.model, self.corpus, pairs, self.recipe.evaluation, advance)
        results[-1] = msgspec.structs.replace(results[-1], output=quality)
        write_lines(out / "output-test.txt", lines)
        write_lines(out / "reference-test.txt", references(pairs, self.corpus.symbols))
        write_json(out / "results.json", msgspec.to_builtins(results))
        write_json(out / "samples.json", self._samples(run))
        return results

    def summary(self) -> list[str]:
        """Pairs and tokens of each split, words of both vocabularies."""
        lines = [
            f"{name:5} {len(pairs):>9,} pairs, {pairs.facts['source_symbols']:,} source and"
            f" {pairs.facts['tokens']:,} target symbols"
            for name, pairs in self.corpus.splits.items()
        ]
        return [*lines, f"vocabularies {self.num_source:,} and {len(self.inputs):,}"]

    def _samples(self, run: PairRun) -> list[dict[str, Any]]:
        pairs, limit = self.corpus.split("test"), self.recipe.data.pairs.max_source
        symbols = self.corpus.symbols
        shown = [
            place
            for place, ids in enumerate(pairs.source)
            if len(symbols.source_words(pairs.source_text[place])) <= limit
            and set(ids.tolist()) != {symbols.source.unk}
        ][:SAMPLES]
        found = run.transduce([pairs.source_text[place] for place in shown])
        return [
            {"prompt": pairs.source_text[place], "reference": pairs.target_text[place], **sample(best[0])}
            for place, best in zip(shown, found, strict=True)
        ]


def write_lines(path: Path, lines: Sequence[str]) -> None:
    """Write texts, a line each."""
    write_atomic(path, "".join(f"{line}\n" for line in lines))


def sample(found: Transduction) -> dict[str, Any]:
    """What samples.json holds of a target."""
    return {
        "text": found.text,
        "attention": {
            "source": found.source,
            "target": [*found.words, "<eos>"],
            "weights": found.attention.astype(float).round(3).tolist(),
        },
    }


def _require_fit(training: config.Training) -> None:
    if training.window.random:
        raise UserError("training.window.random: pairs are not cut into windows; set random = false")
    if training.slices != 1:
        raise UserError(f"training.slices = {training.slices}: a batch of pairs is not cut into slices; set it to 1")
