"""Ordinary text for a vocabulary that was made elsewhere: the tokens that its training text would have had."""

import re
from collections.abc import Iterator

from elman.data.raw import split_raw
from elman.data.tokeniser import Tokeniser
from elman.data.vocabulary import Vocabulary

_CLITICS = re.compile(r"(?i)(n't|'s|'re|'ve|'ll|'d|'m)$")


def fit(text: str, vocabulary: Vocabulary, tokeniser: Tokeniser) -> list[str]:
    """The tokens of a sentence of ordinary text.

    Where the model was trained on ordinary text, characters or subwords the sentence is read in the same way. Where its
    text was tokenised already (Penn Treebank, WikiText) the vocabulary tells how: capitals are folded if it has none,
    n't, 's and the like stand apart if it has them so, and marks that it does not know are left out.

    >>> from collections import Counter
    >>> from elman.data.options import TextOptions
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
