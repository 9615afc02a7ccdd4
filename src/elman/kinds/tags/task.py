"""The task of tags: the tag of every word of a sentence."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import torch

from elman.config.recipe import Recipe
from elman.data.by_length import WholeWindows
from elman.data.parts import WHOLE, Part
from elman.data.text.block_reading import Progress
from elman.drawing.tags import TagDrawing
from elman.evaluation.chunks import require_nervaluate
from elman.evaluation.perplexity import Score
from elman.evaluation.result import Result
from elman.evaluation.tags import most_frequent, training_loss
from elman.jobs import Advance
from elman.kinds.tags.corpus import TagSymbols, gather, open_tags
from elman.kinds.tags.record import TagData
from elman.kinds.tags.run import BASELINE, TagRun
from elman.network.model import LanguageModel
from elman.network.tag_model import TagModel
from elman.tasks.task import Size, WholeSequences, write_results

SAMPLES = 6
"""Sentences of the test split that a run folder shows."""

SHOWN_WORDS = (6, 30)
"""Words of the sentences that are shown, at least and at most."""

_NOMINAL = Size(86_000, 6_000)
"""Words, and words of the vocabulary, of some 4,000 sentences."""


class TagTask(WholeSequences):
    """Sentences with tags, their words and their tags."""

    kind, run = "tags", TagRun
    inputs: TagSymbols

    def __init__(self, recipe: Recipe, source: str, progress: Progress | None = None) -> None:  # noqa: ARG002 - quick
        assert isinstance(recipe.data, TagData)
        self.recipe, self.data = recipe, recipe.data
        self.require_whole()
        self.corpus = open_tags(source, recipe.data.options)
        self.inputs, self.digest, self.source = self.corpus.symbols, self.corpus.digest, source
        for split in ("valid", "test"):
            self.corpus.split(split)
        if self.inputs.in_chunks:
            require_nervaluate()

    @classmethod
    def nominal_size(cls, recipe: Recipe) -> Size:  # noqa: ARG003 - recipes name no data
        """The approximate size of the data that recipes are meant for."""
        return _NOMINAL

    def windows(self, max_extra: int | None) -> WholeWindows:  # noqa: ARG002 - sentences have no random windows
        """The training sentences, in another order each epoch."""
        split = self.corpus.split("train")

        def side_by_side(indices: list[int]) -> Any:
            return gather([split.ids[index] for index in indices], [split.labels[index] for index in indices])

        return WholeWindows(split.lengths, side_by_side, self.recipe.seed, batch_size=self.recipe.training.batch_size)

    def validate(self, model: LanguageModel, part: Part = WHOLE) -> Score:
        """Nats over the words of the validation split, sentence by sentence."""
        assert isinstance(model, TagModel)
        rows = self.data.evaluation.streams
        return training_loss(model, self.inputs, self.corpus.split("valid"), part, batch_size=rows)

    def finish(self, out: Path, device: torch.device, prompts: Sequence[str], advance: Advance) -> list[Result]:  # noqa: ARG002 - there are no prompts
        """results.json, and samples.json with sentences of the test split and their tags."""
        run = TagRun(out, device)

        def evaluated(name: str) -> Result:
            return run.result(self.corpus.split(name), advance=advance)

        return write_results(out, evaluated, lambda: {"samples.json": self._samples(run)})

    def baselines(self, order: int, splits: Sequence[str]) -> list[Result]:  # noqa: ARG002 - no order
        """Every word with its most frequent tag in training."""
        rows = []
        for split in map(self.corpus.split, splits):
            found = most_frequent(self.inputs, split)
            accuracy = float((found.found == found.right).mean())
            rows.append(found.score.result(split.name, name=BASELINE, accuracy=accuracy))
        return rows

    def summary(self) -> list[str]:
        """Sentences and words of each split, words and tags."""
        lines = [
            f"{name:5} {len(split):>9,} sentences, {split.facts['tokens']:,} words"
            for name, split in self.corpus.splits.items()
        ]
        shown = " (chunks)" if self.inputs.in_chunks else ""
        return [*lines, f"vocabulary {len(self.inputs.words):,}, tags {len(self.inputs) - 1:,}{shown}"]

    def _samples(self, run: TagRun) -> list[dict[str, Any]]:
        """Sentences of the test split with the tags that were found and the given ones."""
        split = self.corpus.split("test")
        places = [n for n, words in enumerate(split.sentences) if SHOWN_WORDS[0] <= len(words) <= SHOWN_WORDS[1]]
        places = (places or list(range(len(split))))[:SAMPLES]
        rows = []
        for place, found in zip(places, run.tag([split.sentences[place] for place in places]), strict=True):
            drawn = TagDrawing(found.words, found.tags, split.tags[place])
            rows.append({"text": " ".join(found.words), "figure": msgspec.to_builtins(drawn)})
        return rows
