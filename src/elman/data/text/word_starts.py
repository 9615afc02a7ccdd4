"""Which symbols begin a word: what sums of sub-word scores need to know."""

import itertools
from collections.abc import Sequence

from elman.config.text import TextOptions
from elman.data.text.bytewise import from_bytes
from elman.data.text.subwords import piece_bytes
from elman.data.text.vocabulary import EOS


def word_starts(tokens: Sequence[str], options: TextOptions) -> list[bool]:
    """Whether each token of a sentence begins a word, [n]; the first always does.

    Where tokens are words, `<eos>` among them, each does. Characters and bytes: a word runs to the next one, so the
    white space or the `<eos>` that ends it belongs to it, and its surprisal says that the word ends there,
    too. White space at the
    beginning of a sentence belongs to the first word. (That the boundary has to be counted for the probabilities of
    words to sum to one: Pimentel & Meister 2024; Oh & Schuler 2024.) Subwords carry their white space in front: there a
    piece that begins with white space, and more than that, begins a word.

    Example:
        >>> word_starts([*"to be", "<eos>"], TextOptions(tokenisation="characters"))
        [True, False, False, True, False, False]

    """
    if not options.spelt:
        return [True] * len(tokens)
    starts, between, found = [], True, False
    for index, token in enumerate(tokens):
        text = _text(token, options)
        boundary = token == EOS or text.isspace()
        starts.append(index == 0 or (found and not boundary and (between or text[:1].isspace())))
        found, between = found or not boundary, boundary or text[-1:].isspace()
    return starts


def word_slices(starts: Sequence[bool]) -> list[slice]:
    """The tokens of each word: together all of them, in order."""
    edges = [index for index, begins in enumerate(starts) if begins] + [len(starts)]
    return [slice(begin, end) for begin, end in itertools.pairwise(edges)]


def spelt(tokens: Sequence[str], options: TextOptions) -> str:
    """The word that tokens spell, without its boundary; a boundary alone is itself, as `<eos>` is."""
    told = [token for token in tokens if token != EOS]
    spells = options.tokenisation == "characters"
    text = "".join(told) if spells else from_bytes(b"".join(map(piece_bytes, told)))
    return text.strip() or (EOS if EOS in tokens else " ")


def _text(token: str, options: TextOptions) -> str:
    return token if options.tokenisation == "characters" else from_bytes(piece_bytes(token))
