"""An n-gram model and its words: spelling as in ARPA files, the marks of sentences, and text in its own numbers."""

import dataclasses
import re
from collections.abc import Iterable, Sequence

import numpy as np

from elman.data.lines import fields
from elman.data.text.vocabulary import EOS, UNK, Numbered, Vocabulary
from elman.errors import UserError
from elman.evaluation.ngram import kneser_ney
from elman.evaluation.ngram.table import NOTHING, BackoffTable, Floats, Ids, Int64s, Markers

BEGIN, END = "<s>", "</s>"

_SPACE = re.compile(r"[\t\n\v\f\r\x00 ]")


@dataclasses.dataclass(frozen=True)
class NGramModel(Numbered):
    """A table and the words of its ids, spelt as in ARPA files (`spelling`).

    Its form follows from its words: with `<eos>` among them, the sentence ends of elman's texts, it is a model of a
    running stream, whose contexts run across `<eos>`; otherwise `<eos>` is `</s>`, and after it the context is `<s>`.
    """

    words: tuple[str, ...]
    table: BackoffTable

    @property
    def end(self) -> int | None:
        """The id of what ends a sentence: `</s>`, or in a model of a running stream `<eos>`; None: there is neither."""
        return self.eos if self.table.markers is None else self.table.markers.end

    def number(self, word: str) -> int:
        """The id of a word of elman's texts, as it is predicted; -1 where the model lacks it."""
        if word == EOS:
            return NOTHING if self.end is None else self.end
        return self.ids.get(word, self.ids.get(spelling(word), NOTHING))

    def split(self, line: str) -> list[str]:
        """The words of a line, between blanks of ASCII as KenLM has them."""
        return fields(line)

    def encode(self, words: Iterable[str]) -> Int64s:
        """The ids of words of elman's texts, [n]; those that the model lacks are `<unk>`, or -1 where it has none."""
        unknown = NOTHING if self.unk is None else self.unk
        found = np.fromiter(map(self.number, words), dtype=np.int64)
        return np.where(found == NOTHING, unknown, found)

    def score(self, ids: Int64s, history: Int64s | None = None) -> tuple[Floats, Int64s]:
        """The log-probability (nats) of each word of a text [n], and the length of its n-gram.

        The history precedes the first word; None: the text begins there. A word of id -1 has probability 0, and is in
        no context.
        """
        start = np.array([] if self.end is None else [self.end], dtype=np.int64)
        before = start if history is None else history
        stream = np.concatenate([before, ids])
        read = self.table.as_read(stream)
        log_prob, length = self.table.score(np.maximum(stream, 0), read)
        return np.where(stream == NOTHING, -np.inf, log_prob)[len(before) :], length[len(before) :]


def markers_of(words: dict[str, int]) -> Markers | None:
    """The marks of sentences, where a model reads sentence by sentence."""
    if EOS in words or END not in words or BEGIN not in words:
        return None
    return Markers(begin=words[BEGIN], end=words[END])


def spelling(word: str) -> str:
    r"""A word as ARPA files spell it: white space in it, as among characters, is written `\u0020`."""
    return _SPACE.sub(lambda found: f"\\u{ord(found[0]):04x}", word)


def train(
    tokens: Ids, vocabulary: Vocabulary, order: int, *, stream: bool = False, thresholds: Sequence[int] = ()
) -> NGramModel:
    """The Kneser-Ney model of a text of a vocabulary, sentence by sentence or as one running stream.

    Sentence by sentence `<unk>` is a word of the model, whether or not the vocabulary has it.

    Raises UserError where the vocabulary lacks `<eos>`, which ends sentences, or has a word twice by its spelling.
    """
    words = list(map(spelling, vocabulary.words))
    if stream:
        table = kneser_ney.train(tokens, len(words), order)
    else:
        if vocabulary.eos is None:
            raise UserError("the text has no <eos> between sentences; add --stream to read it as one running stream")
        words[vocabulary.eos] = END
        words += [UNK] * (vocabulary.unk is None)
        table = kneser_ney.train_sentences(tokens, len(words), vocabulary.eos, order, thresholds)
        words.append(BEGIN)
    for word in (BEGIN, END):
        if words.count(word) > (not stream):
            raise UserError(f"the text has the word {word}, which n-gram files keep for sentences; take it out")
    if len(set(words)) < len(words):
        raise UserError("two words of the vocabulary have one spelling in an n-gram file; use another tokenisation")
    return NGramModel(tuple(words), table)
