"""The task of trees: the labels of their nodes, and parsing."""

import functools
from collections.abc import Sequence

from elman.data.by_length import WholeWindows
from elman.data.trees.shape import tree_of
from elman.data.windows import WHOLE, Part
from elman.errors import UserError
from elman.evaluation.perplexity import Score
from elman.evaluation.result import Result, written_by
from elman.kinds.trees.baselines import bag_of_words, branching_measures, majority
from elman.kinds.trees.corpus import TreeSymbols, open_trees
from elman.kinds.trees.drawing import drawing_of
from elman.kinds.trees.evaluation import label_accuracy, require_short, training_loss
from elman.kinds.trees.run import TreeRun
from elman.network.model import LanguageModel
from elman.network.tree_model import TreeModel
from elman.tasks.samples import Sample
from elman.tasks.splits import WholeSequences, shown
from elman.tasks.task import Size

SAMPLES = 4  # trees of the test split that a run folder shows


class TreeTask(WholeSequences):
    """A treebank, its words and labels; `nominal`: constituents, words of the vocabulary and words of 4,000 trees."""

    kind, run, unit, opening = "trees", TreeRun, "trees", open_trees
    judged = ("accuracy",)
    nominal = Size(70_000, 6_000, 85_000)
    inputs: TreeSymbols

    def require(self) -> None:
        """Raise UserError as every task of whole sequences does, and where batches are cut."""
        super().require()
        slices = self.recipe.training.slices
        if slices != 1:
            raise UserError(f"training.slices = {slices}: a batch of trees is not cut; set it to 1")

    def windows(self, max_extra: int | None) -> WholeWindows:
        """The training trees, in another order each epoch; all nodes of a parser have labels."""
        if self.recipe.training.margin is not None:  # so that validation, which fills charts, does not end training
            require_short(self.corpus.split("valid").lengths)
        windows = super().windows(max_extra)
        all_nodes = self.recipe.training.margin is not None
        windows.gather = functools.partial(self.corpus.gather, self.corpus.split("train"), all_nodes=all_nodes)
        return windows

    def validate(self, model: LanguageModel, part: Part = WHOLE) -> Score:
        """Nats over the labels of the validation trees, with the margin of a parser; not divided, as in training."""
        assert part == WHOLE
        assert isinstance(model, TreeModel)
        return training_loss(model, self.corpus, self.corpus.split("valid"), self.recipe.training.margin)

    def baselines(self, order: int | None, splits: Sequence[str]) -> list[Result]:  # noqa: ARG002 - no order
        """The labels of constituents by the most frequent one, and by a bag of words; left-branching trees of a parser.

        Right-branching trees stand in the results.
        """
        chosen = [self.corpus.split(name) for name in splits]
        found = {
            "majority": [majority(self.corpus, split) for split in chosen],
            "bag of words": bag_of_words(self.corpus, chosen),
        }
        rows = [
            one.score.result(split.name, name=name, accuracy=label_accuracy(one, len(split)).value / 100)
            for name, labellings in found.items()
            for one, split in zip(labellings, chosen, strict=True)
        ]
        if self.recipe.training.margin is not None:
            rows += [
                written_by("left-branching", split.name, len(split), branching_measures(self.corpus, split, left=True))
                for split in chosen
            ]
        return rows

    def summary(self) -> list[str]:
        lines = [
            f"{name:5} {len(trees):>9,} trees, {trees.facts['tokens']:,} constituents, {trees.facts['words']:,} words"
            for name, trees in self.corpus.splits.items()
        ]
        return [*lines, f"vocabulary {len(self.inputs.words):,}, labels {len(self.inputs):,}"]

    def samples(self, run: TreeRun, count: int) -> list[Sample]:  # noqa: ARG002 - the same for all
        """Trees of the test split: as the parser finds them, or with the labels that are given to their nodes."""
        split = self.corpus.split("test")
        limit = min(self.data.max_words, self.data.evaluation.max_words) if run.is_parser else self.data.max_words
        places = shown(split.sentences, SAMPLES, longest=24, limit=limit)
        sentences, shapes = [split.sentences[n] for n in places], [split.shapes[n] for n in places]
        if run.is_parser:
            found = [one.tree for one in run.parse(sentences, self.data.evaluation.search)]
        else:
            named = run.label(sentences, shapes)
            found = [tree_of(*one) for one in zip(shapes, sentences, named, strict=True)]
        rows = []
        for words, shape, tree in zip(sentences, shapes, found, strict=True):
            drawn = drawing_of(tree, tree_of(shape, words), words, given=not run.is_parser)
            rows.append(Sample(text=" ".join(words), figure=drawn))
        return rows
