"""New text for an existing vocabulary: fitted to it, its unknown words distinguished where needed."""

import dataclasses
from collections.abc import Iterable, Sequence

import msgspec
import numpy as np
import numpy.typing as npt

from elman.data.text.corpus import Split, TextCorpus, open_corpus
from elman.data.text.reading import TextReader
from elman.data.text.tokeniser import Tokeniser
from elman.data.text.vocabulary import UNK, Vocabulary


def fit(text: str, vocabulary: Vocabulary, tokeniser: Tokeniser) -> list[str]:
    """The tokens that a sentence of ordinary text would have had in the training text of a vocabulary.

    >>> from collections import Counter
    >>> from elman.config.text import TextOptions
    >>> ptb = Vocabulary.from_counts(Counter(["do", "n't", "the", "cat"]), add_unk=True)
    >>> fit("Don't the dog's cats go?", ptb, Tokeniser(TextOptions()))
    ['do', "n't", 'the', "dog's", 'cats', 'go']
    """
    return TextReader(vocabulary, tokeniser).tokens(text)


class Lexicon:
    """Numbers V, V + 1, ... for the words of a text beyond a vocabulary of V, in the order of their appearance.

    They are for models that read spelling, and for input only: the predicted symbol is still `<unk>`.

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
        """The numbers of words [N], folded as the vocabulary's are; a new word gets the next number."""
        known = self.vocabulary.ids
        numbers = []
        for word in words:
            if word not in known and word != UNK and word not in self._numbers:
                self._numbers[word] = len(known) + len(self.words)
                self.words.append(word)
            numbers.append(known[word] if word in known or word == UNK else self._numbers[word])
        return np.array(numbers, dtype=np.int64)


def spelled_sentences(
    sentences: Iterable[Sequence[str]], vocabulary: Vocabulary
) -> tuple[list[npt.NDArray[np.int64]], list[str]]:
    """The numbers of sentences of tokens, and the words that V, V + 1, ... stand for in them."""
    lexicon = Lexicon(vocabulary)
    return [lexicon.read(words) for words in sentences], lexicon.words


def spelled_split(corpus: TextCorpus, name: str) -> Split:
    """A split of a corpus with its unknown words distinguished, for models that read spelling.

    Raises UserError where the corpus does not have the split, or its text cannot be used any more.
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
