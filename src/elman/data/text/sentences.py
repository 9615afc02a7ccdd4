"""New text for an existing vocabulary: encoded sentence by sentence, its unknown words distinguished where needed."""

import dataclasses
import re
from collections.abc import Iterable, Iterator, Sequence

import msgspec
import numpy as np
import numpy.typing as npt

from elman.config.text import TextOptions
from elman.data.text.corpus import Split, TextCorpus, open_corpus
from elman.data.text.passages import passages
from elman.data.text.subwords import Subwords
from elman.data.text.tokeniser import Tokeniser, fold, split_raw
from elman.data.text.utf8 import Line
from elman.data.text.vocabulary import UNK, Vocabulary

_CLITICS = re.compile(r"(?i)(n't|'s|'re|'ve|'ll|'d|'m)$")


def encode_lines(
    lines: Iterable[str], vocabulary: Vocabulary, options: TextOptions, subwords: Subwords | None = None
) -> Iterator[tuple[list[str], npt.NDArray[np.int32]]]:
    """Encode lines sentence by sentence; a sentence is what `<eos>` ends, or without `<eos>` a line.

    With `eos = "exact"` a line has its `<eos>` only where it has its line feed. Yields the tokens as they stand in the
    text (in upper and lower case except in subwords, unknown words shown) and their ids, [N] int32.

    Raises UserError where a word is not known and the vocabulary has no `<unk>`.
    """
    as_written = msgspec.structs.replace(options, lowercase=False) if options.folds_tokens else options
    sentence: list[str] = []
    for passage in passages((Line(line, True) for line in lines), as_written, subwords):
        sentence += passage.words
        if (passage.closed or options.eos in ("none", "exact")) and sentence:
            yield sentence, vocabulary.encode(fold(sentence) if options.folds_tokens else sentence)
            sentence = []


def fit(text: str, vocabulary: Vocabulary, tokeniser: Tokeniser) -> list[str]:
    """The tokens that a sentence of ordinary text would have had in the training text of a vocabulary.

    Where the model was trained on ordinary text, characters or subwords the sentence is read in the same way. Where its
    text was tokenised already (Penn Treebank, WikiText) the vocabulary decides: capitals are folded if it has none,
    n't, 's and the like stand apart if it has them so, and marks that it does not know are left out.

    >>> from collections import Counter
    >>> from elman.config.text import TextOptions
    >>> ptb = Vocabulary.from_counts(Counter(["do", "n't", "the", "cat"]), add_unk=True)
    >>> fit("Don't the dog's cats go?", ptb, Tokeniser(TextOptions()))
    ['do', "n't", 'the', "dog's", 'cats', 'go']
    """
    if tokeniser.options.tokenisation != "words":
        return tokeniser.encode(text)
    known = vocabulary.ids
    folded = tokeniser.options.lowercase or not any(word != word.lower() and len(word) > 1 for word in known)
    tokens = split_raw(text.lower() if folded else text)
    parts = (part for token in tokens for part in _apart(token, known))
    return [part for part in parts if part in known or any(character.isalnum() for character in part)]


def _apart(token: str, known: dict[str, int]) -> Iterator[str]:
    found = _CLITICS.search(token)
    if token in known or found is None or not found.start() or found[0].lower() not in known:
        yield token
    else:
        yield token[: found.start()]
        yield token[found.start() :]


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
