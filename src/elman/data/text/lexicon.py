"""Words that a vocabulary does not have, told apart for models that read spelling."""

import dataclasses
from collections.abc import Iterable, Sequence

import msgspec
import numpy as np
import numpy.typing as npt

from elman.config.text import TextOptions
from elman.data.text.corpus import Corpus, Split, open_corpus
from elman.data.text.tokeniser import fold
from elman.data.text.vocabulary import UNK, Vocabulary


class Lexicon:
    """Numbers V, V + 1, ... for words beyond a vocabulary of V, in the order in which they are met.

    They are of the text at hand and for reading only: what is predicted stays `<unk>`.

    Example:
        >>> lexicon = Lexicon(Vocabulary(("to", "be", "<unk>"), (2, 2, 1)))
        >>> lexicon.read(["to", "sleep", "perchance", "to", "sleep"])
        array([0, 3, 4, 0, 3])
        >>> lexicon.words
        ['sleep', 'perchance']

    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary, self.words = vocabulary, list[str]()
        self._numbers: dict[str, int] = {}

    def read(self, words: Iterable[str]) -> npt.NDArray[np.int64]:
        """The numbers of words [N], folded as the vocabulary's are; a word that is met anew gets the next."""
        known = self.vocabulary.ids
        numbers = [known[word] if word in known or word == UNK else self._number(word) for word in words]
        return np.array(numbers, dtype=np.int64)

    def _number(self, word: str) -> int:
        if word not in self._numbers:
            self._numbers[word] = len(self.vocabulary) + len(self.words)
            self.words.append(word)
        return self._numbers[word]


def spelled_sentences(
    sentences: Iterable[Sequence[str]], vocabulary: Vocabulary, options: TextOptions
) -> tuple[list[npt.NDArray[np.int64]], list[str]]:
    """The numbers of sentences as they stand in a text, and the words that V, V + 1, ... stand for in them."""
    lexicon = Lexicon(vocabulary)
    numbers = [lexicon.read(fold(words) if options.folds_tokens else words) for words in sentences]
    return numbers, lexicon.words


def spelled_split(corpus: Corpus, name: str) -> Split:
    """A split of a corpus with its unknown words told apart, for models that read spelling.

    Raises:
        UserError: the corpus does not have the split, or its text cannot be used any more.

    """
    split = corpus.split(name)
    if not split.unknown:
        return split
    options = msgspec.structs.replace(corpus.options, min_count=1, max_vocabulary=None, vocabulary_from="all")
    whole = open_corpus(corpus.source, options, partial=True)
    tokens = whole.split(name).tokens
    used = np.unique(tokens)
    lexicon = Lexicon(corpus.vocabulary)
    table = np.zeros(len(whole.vocabulary), dtype=np.int32)
    table[used] = lexicon.read(whole.vocabulary.decode(used))
    return dataclasses.replace(split, inputs=table[tokens], unknown_words=tuple(lexicon.words))
