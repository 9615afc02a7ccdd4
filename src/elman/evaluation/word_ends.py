"""The end of a word in models of subwords, whose pieces carry the white space in front of the next word.

A word w of pieces s_1 ... s_k ends where a piece that begins with white space follows, so that

    p(w | c) = p(white space | c, s_1 ... s_k) prod_i p(s_i | c, s_1 ... s_{i-1}) / p(white space | c)

after a context c that ends with a word; at the beginning of a sentence the denominator is 1. Without the end "cat"
would be as probable as all words that begin with its pieces together (Pimentel & Meister 2024, How to compute the
probability of a word; Oh & Schuler 2024, Leading whitespaces of language models' subword vocabulary). A word before
`<eos>` ends with it, as in models of characters. Sums over a sentence do not change.
"""

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from elman.config.text import TextOptions
from elman.data.text.reading import Sentence
from elman.data.text.tokeniser import Tokeniser, begins_with_space, is_space
from elman.data.text.vocabulary import EOS


def spaces_of(words: Iterable[str], options: TextOptions) -> tuple[int, ...]:
    """The ids of the pieces that begin with white space; none where tokens are no subwords."""
    if options.tokenisation != "subwords":
        return ()
    return tuple(number for number, token in enumerate(words) if begins_with_space(token, options))


def with_word_ends(
    log_probs: npt.NDArray[np.floating],
    space: npt.NDArray[np.floating],
    sentence: Sentence,
    tokeniser: Tokeniser,
) -> npt.NDArray[np.floating]:
    """Log-probabilities [n] of a sentence, in any unit, whose sums over words count the ends of the words too.

    `space` [n or more] is the log-probability that a piece that begins with white space comes, before each symbol. What
    is added to the last piece of a word is subtracted from the first of the next. Where tokens are no subwords, words
    contain their ends, and the argument is returned.
    """
    if tokeniser.options.tokenisation != "subwords":
        return log_probs
    begins = [word.read.start for word in sentence.words(tokeniser) if word.read.start < word.read.stop]
    return ends_moved(log_probs, space, sentence.read, begins, tokeniser.options)


def ends_moved(
    log_probs: npt.NDArray[np.floating],
    space: npt.NDArray[np.floating],
    tokens: Sequence[str],
    begins: Sequence[int],
    options: TextOptions,
) -> npt.NDArray[np.floating]:
    """Add the ends of words to log-probabilities [n] of subwords in a row, whose words begin at these rising places."""
    moved = np.array(log_probs, dtype=np.float64)
    for begin in begins[1:]:
        end = begin
        while end > 1 and is_space(tokens[end - 1], options):
            end -= 1
        between = float(space[end]) - float(np.sum(log_probs[end:begin], dtype=np.float64))
        follows = begins_with_space(tokens[end], options) and tokens[end - 1] != EOS
        if follows and np.isfinite(between):
            moved[begin - 1] += between
            moved[begin] -= between
    return moved
