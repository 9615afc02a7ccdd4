"""A text under an n-gram model by sentence, by word, and in the sums of KenLM's `query` and SRILM's `ngram -ppl`."""

import math
from collections.abc import Generator, Iterable, Iterator
from typing import NamedTuple

import msgspec
import numpy as np

from elman.data.text.reading import Sentence
from elman.data.text.tokeniser import Tokeniser
from elman.data.text.vocabulary import EOS, UNK
from elman.evaluation.ngram.model import BEGIN, END, NGramModel
from elman.evaluation.ngram.table import Floats, Int64s
from elman.objective import perplexity

BLOCK = 1 << 16  # words scored at once


class Scored(NamedTuple):
    """A sentence of n words, its end among them as `<eos>`.

    Attributes:
        words: as they are read, [n].
        ids: of the model, -1 where it has neither the word nor `<unk>`, [n].
        log_prob: in nats, -inf where a word has no probability, [n].
        length: of the n-gram that gave each probability, [n].
        unknown: whether the model lacks each word, [n].
    """

    words: list[str]
    ids: Int64s
    log_prob: Floats
    length: Int64s
    unknown: np.ndarray


class Totals(msgspec.Struct, frozen=True, kw_only=True):
    """The sums of a text.

    Attributes:
        tokens: words and sentence ends that are predicted.
        unknown: words that the model lacks; a word that is written `<unk>` is one of them.
        impossible: words without a probability, since the model has no `<unk>`; they are in no sum.
        log_prob: of all tokens, nats.
        perplexity: of all tokens: "including OOVs" of KenLM.
        known_perplexity: without unknown words: "excluding OOVs" of KenLM, and `ppl` of SRILM.
        word_perplexity: the log-probability of all known tokens for each known word, sentence ends not counted: `ppl1`
            of SRILM.
    """

    sentences: int
    tokens: int
    unknown: int
    impossible: int
    log_prob: float
    known_log_prob: float
    perplexity: float | None
    known_perplexity: float | None
    word_perplexity: float | None


def score_sentences(model: NGramModel, sentences: Iterable[list[str]]) -> Iterator[Scored]:
    """The sentences of a text in order, of which each is its words.

    A model of a running stream reads each after those before it.
    """
    history: Int64s | None = None
    group, size = list[list[str]](), 0
    for words in sentences:
        group.append(words)
        size += len(words)
        if size >= BLOCK:
            history = yield from _score_group(model, group, history)
            group, size = [], 0
    if group:
        yield from _score_group(model, group, history)


def _score_group(model: NGramModel, group: list[list[str]], history: Int64s | None) -> Generator[Scored, None, Int64s]:
    """The sentences of a group; returns the words before the next group."""
    ids = model.encode(word for words in group for word in words)
    log_prob, length = model.score(ids, history)
    unknown = ids < 0 if model.unk is None else ids == model.unk
    at = 0
    for words in group:
        part = slice(at, at + len(words))
        yield Scored(words, ids[part], log_prob[part], length[part], unknown[part])
        at += len(words)
    before = ids if history is None else np.concatenate([history, ids])
    return before[max(0, len(before) - model.table.order + 1) :]


class Tally:
    """The sums of sentences, added one by one."""

    def __init__(self) -> None:
        self._counts = np.zeros(6, np.int64)  # sentences, tokens, unknown, impossible, known, ends of sentences
        self._nats = np.zeros(2)  # of all tokens that are possible, and of the known ones

    def add(self, scored: Scored) -> None:
        """Add the words of a sentence to the sums."""
        possible = np.isfinite(scored.log_prob)
        known = possible & ~scored.unknown
        ends = bool(scored.words) and scored.words[-1] == EOS and possible[-1]
        self._counts += [1, len(scored.words), scored.unknown.sum(), (~possible).sum(), known.sum(), ends]
        self._nats += [scored.log_prob[possible].sum(), scored.log_prob[known].sum()]

    @property
    def totals(self) -> Totals:
        """The sums so far, with their perplexities."""
        sentences, tokens, unknown, impossible, known, ends = self._counts.tolist()
        of_all, of_known = self._nats.tolist()
        return Totals(
            sentences=sentences,
            tokens=tokens,
            unknown=unknown,
            impossible=impossible,
            log_prob=of_all,
            known_log_prob=of_known,
            perplexity=_perplexity(of_all, tokens - impossible),
            known_perplexity=_perplexity(of_known, known),
            word_perplexity=_perplexity(of_known, known - ends),
        )


def _perplexity(log_prob: float, count: int) -> float | None:
    return perplexity(-log_prob / count) if count > 0 and math.isfinite(log_prob) else None


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
