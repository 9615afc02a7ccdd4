"""The task of trees: the labels of their nodes, and parsing."""

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import torch

from elman.config.recipe import Recipe
from elman.data.by_length import WholeWindows
from elman.data.parts import WHOLE, Part
from elman.data.text.block_reading import Progress
from elman.errors import UserError
from elman.evaluation.perplexity import Score
from elman.evaluation.result import Result
from elman.evaluation.tree_baselines import bag_of_words, majority
from elman.evaluation.trees import label_accuracy, training_loss
from elman.jobs import Advance
from elman.kinds.trees.corpus import TreeSymbols, open_trees
from elman.kinds.trees.drawing import drawing_of
from elman.kinds.trees.record import TreeData
from elman.kinds.trees.run import TreeRun
from elman.kinds.trees.shape import tree_of
from elman.network.model import LanguageModel
from elman.network.tree_model import TreeModel
from elman.tasks.task import Size, WholeSequences, write_results

SAMPLES = 4
"""Trees of the test split that a run folder shows."""

SHOWN_WORDS = (6, 24)
"""Words of the sentences that are shown, at least and at most."""

_NOMINAL = Size(70_000, 6_000, 85_000)
"""Constituents, words of the vocabulary and words of a treebank of some 4,000 trees."""


class TreeTask(WholeSequences):
    """A treebank, its words and its labels."""

    kind, run = "trees", TreeRun
    inputs: TreeSymbols

    def __init__(self, recipe: Recipe, source: str, progress: Progress | None = None) -> None:  # noqa: ARG002 - quick
        assert isinstance(recipe.data, TreeData)
        self.recipe, self.data = recipe, recipe.data
        self.require_whole()
        if recipe.training.slices != 1:
            raise UserError(f"training.slices = {recipe.training.slices}: a batch of trees is not cut; set it to 1")
        self.corpus = open_trees(source, recipe.data.options)
        self.inputs, self.digest, self.source = self.corpus.symbols, self.corpus.digest, source
        for split in ("valid", "test"):
            self.corpus.split(split)

    @classmethod
    def nominal_size(cls, recipe: Recipe) -> Size:  # noqa: ARG003 - recipes name no treebank
        """The approximate size of a treebank that recipes are meant for."""
        return _NOMINAL

    def windows(self, max_extra: int | None) -> WholeWindows:  # noqa: ARG002 - trees have no random windows
        """The training trees, in another order each epoch."""
        training, trees = self.recipe.training, self.corpus.split("train")
        gather = functools.partial(self.corpus.gather, trees, all_nodes=training.margin is not None)
        return WholeWindows(trees.lengths, gather, self.recipe.seed, batch_size=training.batch_size)

    def validate(self, model: LanguageModel, part: Part = WHOLE) -> Score:
        """Nats over the labels of the validation trees, with the margin of a parser; not divided, as in training."""
        assert part == WHOLE
        assert isinstance(model, TreeModel)
        return training_loss(model, self.corpus, self.corpus.split("valid"), self.recipe.training.margin)

    def finish(self, out: Path, device: torch.device, prompts: Sequence[str], advance: Advance) -> list[Result]:  # noqa: ARG002 - there are no prompts
        """results.json, and samples.json with trees of the test split as the network sees them."""
        run = TreeRun(out, device)
        search = self.data.evaluation.search

        def evaluated(name: str) -> Result:
            return run.result(self.corpus, self.corpus.split(name), search, advance=advance)

        return write_results(out, evaluated, lambda: {"samples.json": self._samples(run)})

    def baselines(self, order: int, splits: Sequence[str]) -> list[Result]:  # noqa: ARG002 - no order
        """The labels of constituents by the most frequent one, and by a bag of words."""
        chosen = [self.corpus.split(name) for name in splits]
        found = {
            "majority": [majority(self.corpus, split) for split in chosen],
            "bag of words": bag_of_words(self.corpus, chosen),
        }
        return [
            one.score.result(split.name, name=name, accuracy=label_accuracy(one, len(split)).value / 100)
            for name, labellings in found.items()
            for one, split in zip(labellings, chosen, strict=True)
        ]

    def summary(self) -> list[str]:
        """Sentences and constituents of each split, words and labels."""
        lines = [
            f"{name:5} {len(trees):>9,} trees, {trees.facts['tokens']:,} constituents, {trees.facts['words']:,} words"
            for name, trees in self.corpus.splits.items()
        ]
        return [*lines, f"vocabulary {len(self.inputs.words):,}, labels {len(self.inputs):,}"]

    def _samples(self, run: TreeRun) -> list[dict[str, Any]]:
        """Trees of the test split: as the parser finds them, or with the labels that are given to their nodes."""
        split = self.corpus.split("test")
        limit = min(self.data.max_words, self.data.evaluation.max_words) if run.is_parser else self.data.max_words
        short = [n for n, words in enumerate(split.sentences) if len(words) <= limit]
        shown = [n for n in short if SHOWN_WORDS[0] <= len(split.sentences[n]) <= SHOWN_WORDS[1]]
        places = (shown or short)[:SAMPLES]
        sentences, shapes = [split.sentences[n] for n in places], [split.shapes[n] for n in places]
        if run.is_parser:
            found = [one.tree for one in run.parse(sentences, self.data.evaluation.search)]
        else:
            named = run.label(sentences, shapes)
            found = [tree_of(*one) for one in zip(shapes, sentences, named, strict=True)]
        rows = []
        for words, shape, tree in zip(sentences, shapes, found, strict=True):
            drawn = drawing_of(tree, tree_of(shape, words), words, given=not run.is_parser)
            rows.append({"text": " ".join(words), "figure": msgspec.to_builtins(drawn)})
        return rows
