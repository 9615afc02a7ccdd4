"""The surprisal of the words of a sentence under an n-gram model alone."""

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from elman.data.text.reading import Sentence
from elman.data.text.tokeniser import Tokeniser
from elman.data.text.vocabulary import UNK
from elman.evaluation.ngram.model import BEGIN, END, NGramModel


class WordSurprisal(NamedTuple):
    """-log2 p(word | the words before it in its sentence), None where it has none; whether the model lacks it."""

    bits: float | None
    unknown: bool


def word_surprisals(
    model: NGramModel, sentence: Sentence, tokeniser: Tokeniser, *, exclude: bool = False
) -> Iterator[WordSurprisal]:
    """The words of a sentence (`Sentence.words`) under a model, which reads them from the beginning of a sentence.

    The model reads the tokens of the sentence, and the surprisal of a word is the sum over its tokens. Where tokens
    spell the text, as characters and subwords do, it reads the words that white space separates, each as one. A word
    that the model lacks has the probability of its `<unk>`, and none where there is no `<unk>` or with `exclude`; so
    has one that is written `<s>` or `</s>`, which in the model are beginnings and ends of sentences.
    """
    words = list(sentence.words(tokeniser))
    if tokeniser.options.spelt:
        tokens, parts = [word.text for word in words], [slice(at, at + 1) for at in range(len(words))]
    else:
        tokens, parts = sentence.read, [word.read for word in words]
    ids = model.encode(UNK if token in (BEGIN, END) else token for token in tokens)
    log_prob, _ = model.score(ids)
    for part in parts:
        own = ids[part]
        unknown = bool(((own == model.unk) | (own < 0)).any()) or not len(own)
        bits = -float(log_prob[part].sum()) / math.log(2)
        lacks = not len(own) or not np.isfinite(bits) or (unknown and exclude)
        yield WordSurprisal(None if lacks else round(bits, 6), unknown)
