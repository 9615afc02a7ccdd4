"""A run on sentences with tags, and what can be computed with the model in its folder."""

from collections.abc import Sequence
from typing import NamedTuple

from elman.errors import UserError
from elman.evaluation.result import Result
from elman.evaluation.statistics import estimates
from elman.jobs import Advance
from elman.kinds.tags import evaluation as tagger
from elman.kinds.tags.corpus import TagCorpus, TagSymbols, open_tags
from elman.network.tag_model import TagModel
from elman.tasks.evaluating import DEFAULT, EvaluationOptions
from elman.tasks.splits import LabelledRun

NETWORK, BASELINE = "this network", "most frequent tag"  # what is measured, in results


class Tagged(NamedTuple):
    """The words of a sentence, the most probable tag of each, and its probability, 0 to 1."""

    words: list[str]
    tags: list[str]
    probabilities: list[float]


class TagRun(LabelledRun):
    """A trained tagger with its vocabularies and recipe; raises UserError where the folder is not such a run.

    Example (see docs/trees-and-tags.md)::

        run = elman.load("runs/tagger")
        run.tag([["we", "sleep"]])[0].tags
    """

    kind, reads = "tags", "set of tags"
    symbols, opening = TagSymbols, open_tags
    inputs: TagSymbols
    model: TagModel

    def result(
        self, corpus: TagCorpus, name: str, options: EvaluationOptions = DEFAULT, advance: Advance = None
    ) -> Result:
        split, size = corpus.split(name), options.streams or self.data.evaluation.streams
        tagged = tagger.tag(self.model, self.inputs, split.sentences, split.labels, batch_size=size, advance=advance)
        found = tagged.labelling(split.labels)
        systems = {NETWORK: found, BASELINE: tagger.most_frequent(self.inputs, split)}
        measured = {name: estimates(tagger.measures(one, split, self.inputs)) for name, one in systems.items()}
        return found.score.result(
            split.name,
            accuracy=float((found.found == found.right).mean()),
            unknown=split.facts["unknown"],
            pairs=len(split),
            context="every sentence by itself",
            method="static",
            tagging=measured,
            confusions=tagger.confusions(found, self.inputs),
        )

    def tag(
        self, sentences: Sequence[Sequence[str]], *, name: str = "sentence", advance: Advance = None
    ) -> list[Tagged]:
        """The most probable tag of every word of sentences, each a list of words.

        Raises UserError where a sentence is empty; the message calls the sentences by `name` and their numbers.
        """
        for number, words in enumerate(sentences, start=1):
            if not words or not all(words):
                raise UserError(f"{name}:{number}: {'an empty word' if words else 'no word'}; a sentence has words")
        size = self.data.evaluation.streams
        found = tagger.tag(self.model, self.inputs, sentences, batch_size=size, advance=advance)
        return [
            Tagged(list(words), self.inputs.labels.decode(ids), probability.tolist())
            for words, ids, probability in zip(sentences, found.found, found.probability, strict=True)
        ]
