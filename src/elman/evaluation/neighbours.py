"""The words whose vectors lie nearest to that of a string (Kim et al. 2016, Table 6)."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import normalize

from elman.data.vocabulary import Vocabulary
from elman.encoders.characters import Characters
from elman.encoders.lookup import Lookup
from elman.errors import UserError
from elman.model import LanguageModel


class Neighbour(NamedTuple):
    """A word of the vocabulary and the cosine of the angle between its vector and the string's."""

    word: str
    cosine: float


class Neighbourhood(NamedTuple):
    """A string, whether the vocabulary has it, and its neighbours, nearest first."""

    word: str
    known: bool
    neighbours: list[Neighbour]


@torch.inference_mode()
def neighbourhoods(
    model: LanguageModel, vocabulary: Vocabulary, words: Sequence[str], k: int, *, highway: bool = True
) -> list[Neighbourhood]:
    """The k nearest words of the vocabulary to each string, itself left out.

    Args:
        model: whose encoder gives the vectors.
        vocabulary: of the model.
        words: strings; with word vectors they must be in the vocabulary.
        k: how many.
        highway: whether the vectors are those above the highways, of an encoder that has them, or those below.

    Raises:
        UserError: a string has no vector, or there is no highway to look below.

    """
    known, asked = _vectors(model, vocabulary, words, highway=highway)
    cosines = normalize(asked, dim=1) @ normalize(known, dim=1).t()
    found = []
    for word, row in zip(words, cosines, strict=True):
        own = vocabulary.ids.get(word)
        if own is not None:
            row[own] = -torch.inf
        best = row.topk(min(k, len(vocabulary) - (own is not None)))
        pairs = zip(vocabulary.decode(best.indices.tolist()), best.values.tolist(), strict=True)
        found.append(Neighbourhood(word, own is not None, [Neighbour(*pair) for pair in pairs]))
    return found


def _vectors(
    model: LanguageModel, vocabulary: Vocabulary, words: Sequence[str], *, highway: bool
) -> tuple[Tensor, Tensor]:
    match model.encoder:
        case Characters() as encoder:
            if not highway and not len(encoder.highways):
                raise UserError(
                    "--before-highway: the encoder has no highway (model.encoder.highways = 0); leave it out"
                )
            known = encoder.encode_words(vocabulary.words, highway=highway)
            return known, encoder.encode_words(words, highway=highway)
        case Lookup() as lookup:
            if not highway:
                raise UserError('--before-highway is for runs with model.encoder.kind = "characters"; leave it out')
            missing = next((word for word in words if word not in vocabulary.ids), None)
            if missing is not None:
                raise UserError(
                    f"{missing!r} is not in the vocabulary of {len(vocabulary):,} words; only an encoder of spelling"
                    ' (model.encoder.kind = "characters") has vectors for others'
                )
            return lookup.weight, lookup.weight[[vocabulary.ids[word] for word in words]]
        case _:
            raise AssertionError("a run on text reads words")
