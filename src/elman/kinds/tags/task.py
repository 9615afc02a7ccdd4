"""The task of tags: the tag of every word of a sentence."""

from collections.abc import Sequence

from elman.config.recipe import Recipe
from elman.data.text.block_reading import Progress
from elman.data.windows import WHOLE, Part
from elman.drawing.tags import TagDrawing
from elman.evaluation.perplexity import Score
from elman.evaluation.result import Result
from elman.kinds.tags.corpus import TagSymbols, open_tags
from elman.kinds.tags.evaluation import most_frequent, require_nervaluate, training_loss
from elman.kinds.tags.run import BASELINE, TagRun
from elman.network.model import LanguageModel
from elman.network.tag_model import TagModel
from elman.tasks.samples import Sample
from elman.tasks.splits import WholeSequences, shown
from elman.tasks.task import Size

SAMPLES = 6  # sentences of the test split that a run folder shows


class TagTask(WholeSequences):
    """Sentences with tags, their words and their tags; `nominal`: of some 4,000 sentences."""

    kind, run, unit, opening = "tags", TagRun, "sentences", open_tags
    judged = ("accuracy",)
    nominal = Size(86_000, 6_000)
    inputs: TagSymbols

    def __init__(self, recipe: Recipe, source: str, progress: Progress | None = None) -> None:
        super().__init__(recipe, source, progress)
        if self.inputs.in_chunks:
            require_nervaluate()

    def validate(self, model: LanguageModel, part: Part = WHOLE) -> Score:
        assert isinstance(model, TagModel)
        rows = self.data.evaluation.streams
        return training_loss(model, self.inputs, self.corpus.split("valid"), part, batch_size=rows)

    def baselines(self, order: int | None, splits: Sequence[str]) -> list[Result]:  # noqa: ARG002 - no order
        rows = []
        for split in map(self.corpus.split, splits):
            found = most_frequent(self.inputs, split)
            accuracy = float((found.found == found.right).mean())
            rows.append(found.score.result(split.name, name=BASELINE, accuracy=accuracy))
        return rows

    def summary(self) -> list[str]:
        lines = [
            f"{name:5} {len(split):>9,} sentences, {split.facts['tokens']:,} words"
            for name, split in self.corpus.splits.items()
        ]
        chunks = " (chunks)" if self.inputs.in_chunks else ""
        return [*lines, f"vocabulary {len(self.inputs.words):,}, tags {len(self.inputs) - 1:,}{chunks}"]

    def samples(self, run: TagRun, count: int) -> list[Sample]:  # noqa: ARG002 - the same for all
        split = self.corpus.split("test")
        places = shown(split.sentences, SAMPLES, longest=30)
        rows = []
        for place, found in zip(places, run.tag([split.sentences[place] for place in places]), strict=True):
            drawn = TagDrawing(found.words, found.tags, split.tags[place])
            rows.append(Sample(text=" ".join(found.words), figure=drawn))
        return rows
