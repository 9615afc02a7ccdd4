"""Labels of words or phrases of sentences that a model chose, and the right ones; words that a vocabulary lacks."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from elman.data.sentences import Ids, LabelledSymbols
from elman.data.text.sentences import spelled_sentences
from elman.evaluation.perplexity import Score
from elman.evaluation.statistics import Floats, Measure, precision
from elman.jobs import Advance
from elman.network.encoders.characters import CharactersEncoder
from elman.network.model import LanguageModel

Model = TypeVar("Model", bound=LanguageModel)


class Labelling(NamedTuple):
    """What was labelled in a split: the log-probability of the right label and the label found.

    Arrays [n]: log-probabilities (nats), ids of labels that were found and that are right, and the number of the
    sentence.
    """

    log_prob: Floats
    found: Ids
    right: Ids
    sentence: Ids

    @property
    def score(self) -> Score:
        """The NLL of the right labels."""
        return Score(-float(self.log_prob.sum()), len(self.log_prob))

    def accuracy(
        self, sentences: int, name: str, signature: str = "", among: npt.NDArray[np.bool_] | None = None
    ) -> Measure:
        """The share of labels that are right (percent), by sentence; `among`, bool [n]: which are counted."""
        counted = np.ones(len(self.right), bool) if among is None else among
        right = np.bincount(self.sentence, (self.found == self.right) & counted, minlength=sentences)
        counts = np.bincount(self.sentence, counted, minlength=sentences)
        return Measure(name, np.stack([right, counts], 1).astype(np.float64), precision, signature)


def reading(model: Model, symbols: LabelledSymbols, sentences: Sequence[Sequence[str]]) -> tuple[Model, list[Ids]]:
    """The ids of sentences, and a model that reads them: one of spelling knows the words that the vocabulary lacks."""
    if not isinstance(model.encoder, CharactersEncoder):
        return model, [symbols.encode(words) for words in sentences]
    ids, unknown = spelled_sentences(map(symbols.folded, sentences), symbols.words)
    wider = model.knowing(unknown)
    assert isinstance(wider, type(model))
    return wider, [*ids]


def progressing(batches: list[list[int]], total: int, advance: Advance) -> Iterator[list[int]]:
    """The batches; `advance` hears how many of the `total` sentences are done."""
    done = 0
    for indices in batches:
        yield indices
        done += len(indices)
        if advance is not None:
            advance(done, total)
