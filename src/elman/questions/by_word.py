"""Word by word: surprisal, entropy and its reduction, rank, frequency, length."""

import math
from collections.abc import Iterable, Iterator
from typing import TypeAlias

import msgspec
import numpy as np

from elman.data.tokeniser import fold
from elman.data.vocabulary import Vocabulary
from elman.data.word_starts import spelt, word_slices, word_starts
from elman.evaluation.open_vocabulary import Sentences
from elman.evaluation.prediction import Prediction, predict_document, predict_sentences
from elman.evaluation.scoring import surprisal
from elman.evaluation.unknown import Unknown
from elman.run import Run

Predicted: TypeAlias = Iterable[tuple[list[str], Prediction]]
"""The tokens of each sentence and how they were predicted."""


class WordRow(msgspec.Struct, frozen=True, kw_only=True):
    """A word in its sentence; bits are logarithms of base two, None is "there is no such figure".

    Attributes:
        sentence: number of its sentence, from 1.
        position: its number in the sentence, from 1.
        word: as it stands in the text.
        surprisal: -log2 p(word | what came before), the sum over its tokens (Hale 2001, A probabilistic Earley parser
            as a psycholinguistic model, NAACL; Levy 2008, Expectation-based syntactic comprehension, Cognition 106).
        entropy: of the distribution of the next token before the word (bits).
        entropy_reduction: max(0, entropy before the word - entropy after it), in bits: one step ahead of Hale 2006,
            Uncertainty about the rest of the sentence, Cognitive Science 30, whose entropy is over whole sentences.
        rank: of the word's first token among all, 1 the most probable.
        frequency: how often the training text has the word, 0 if it is unknown; None for models of smaller parts.
        length: its characters.
        unknown: 1 if the word, or a part of it, is not in the vocabulary.

    """

    sentence: int
    position: int
    word: str
    surprisal: float | None
    entropy: float
    entropy_reduction: float
    rank: int
    frequency: int | None
    length: int
    unknown: int


def predict_text(run: Run, text: Sentences, *, document: bool = False) -> Predicted:
    """How the model predicts each sentence of a text; with `document` each in the context of those before it."""
    ask = predict_document if document else predict_sentences
    return zip(text.words, ask(text.model, text.ids, run.first, inputs=text.inputs), strict=True)


def word_rows(run: Run, predicted: Predicted, treatment: Unknown | None = None) -> Iterator[WordRow]:
    """A row for every word.

    Args:
        run: whose vocabulary and rules of text.
        predicted: from `predict_text`, or by a model that adapts.
        treatment: of unknown words; those excluded have no surprisal.

    """
    rules = run.recipe.data.text
    counts = None if rules.spelt else _counts(run.vocabulary)
    treatment = treatment or Unknown()
    for number, (tokens, prediction) in enumerate(predicted, start=1):
        read = fold(tokens) if rules.folds_tokens else tokens
        unknown = [token not in run.vocabulary.ids for token in read]
        bits = surprisal(treatment.apply(prediction.log_prob, unknown))
        entropy = surprisal(-prediction.entropy)
        for position, part in enumerate(word_slices(word_starts(tokens, rules)), start=1):
            word = spelt(tokens[part], rules) if counts is None else tokens[part.start]
            yield WordRow(
                sentence=number,
                position=position,
                word=word,
                surprisal=_known(bits[part].sum()),
                entropy=round(float(entropy[part.start]), 6),
                entropy_reduction=round(max(0.0, float(entropy[part.start] - entropy[part.stop])), 6),
                rank=int(prediction.rank[part.start]),
                frequency=None if counts is None else counts.get(read[part.start], 0),
                length=len(word),
                unknown=int(any(unknown[part])),
            )


def _counts(vocabulary: Vocabulary) -> dict[str, int]:
    return dict(zip(vocabulary.words, vocabulary.counts, strict=True))


def _known(bits: np.floating) -> float | None:
    return None if math.isnan(bits) else round(float(bits), 6)
