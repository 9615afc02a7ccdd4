"""Text as it comes, encoded a sentence at a time with a vocabulary that is there."""

import re
from collections.abc import Iterable, Iterator

import msgspec
import numpy as np
import numpy.typing as npt

from elman.config.text import TextOptions
from elman.data.text.lines import Line, passages
from elman.data.text.raw import split_raw
from elman.data.text.subwords import Subwords
from elman.data.text.tokeniser import Tokeniser, fold
from elman.data.text.vocabulary import Vocabulary

# FOLDED data/fitting.py: Ordinary text for a vocabulary that was made elsewhere: the tokens that its training text would have had.
_CLITICS = re.compile(r"(?i)(n't|'s|'re|'ve|'ll|'d|'m)$")


def fit(text: str, vocabulary: Vocabulary, tokeniser: Tokeniser) -> list[str]:
    """The tokens of a sentence of ordinary text.

    Where the model was trained on ordinary text, characters or subwords the sentence is read in the same way. Where its
    text was tokenised already (Penn Treebank, WikiText) the vocabulary tells how: capitals are folded if it has none,
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


# TARGET
def encode_lines(
    lines: Iterable[str], vocabulary: Vocabulary, options: TextOptions, subwords: Subwords | None = None
) -> Iterator[tuple[list[str], npt.NDArray[np.int32]]]:
    """Encode text as it comes, a sentence at a time: what `<eos>` ends, or without `<eos>` a line.

    With `eos = "exact"` a line has its `<eos>` only where it has its line feed.

    Yields:
        The tokens as they stand in the text (capitals kept but in subwords, unknown words shown) and their ids,
        [N] int32.

    Raises:
        UserError: a word is not known and the vocabulary has no `<unk>`.

    """
    as_written = msgspec.structs.replace(options, lowercase=False) if options.folds_tokens else options
    sentence: list[str] = []
    for passage in passages((Line(line, True) for line in lines), as_written, subwords):
        sentence += passage.words
        if (passage.closed or options.eos in ("none", "exact")) and sentence:
            yield sentence, vocabulary.encode(fold(sentence) if options.folds_tokens else sentence)
            sentence = []
