"""The words whose vectors lie nearest to that of a string (Kim et al. 2016, Table 6)."""

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn.functional import normalize

from elman.data.text.vocabulary import UNK, Vocabulary
from elman.errors import UserError
from elman.evaluation.perplexity import score_of
from elman.network.encoders.characters import Characters
from elman.network.encoders.lookup import Lookup
from elman.network.model import LanguageModel
from elman.objective import perplexity

# FOLDED evaluation/frequency.py: Perplexity by how often words were seen in training: of the words themselves, and of what follows them.
EDGES = (1, 5, 25, 100, 1000)
"""Where bins of frequency begin, beside 0."""


@dataclasses.dataclass(frozen=True)
class Bin:
    """Words seen about equally often in training, or `<unk>`.

    Attributes:
        name: how often, such as 5-24.
        tokens: tokens of the split that are such words.
        nll: their mean negative log-likelihood (nats); None where there are none.
        following: tokens of the split that come next to one.
        following_nll: theirs.

    """

    name: str
    tokens: int
    nll: float | None
    following: int
    following_nll: float | None

    @property
    def perplexity(self) -> float | None:
        """Of the words."""
        return None if self.nll is None else perplexity(self.nll)

    @property
    def following_perplexity(self) -> float | None:
        """Of what follows them."""
        return None if self.following_nll is None else perplexity(self.following_nll)


def by_frequency(
    log_probs: np.ndarray,
    tokens: np.ndarray,
    train: np.ndarray,
    num_words: int,
    unk: int | None,
    edges: Sequence[int] = EDGES,
) -> list[Bin]:
    """A split by the training frequency of its words, rarest first, and last `<unk>` by itself where there is one.

    Args:
        log_probs: of each token (nats), [N]; NaN is not counted.
        tokens: the split, [N].
        train: the training split.
        num_words: V.
        unk: the id of `<unk>`.
        edges: where bins begin, rising, above 0.

    """
    seen = np.bincount(train, minlength=num_words)[tokens]
    known = np.full(len(tokens), fill_value=True) if unk is None else tokens != unk
    bins = []
    for low, high in zip((0, *edges), (*edges, None), strict=True):
        inside = known & (seen >= low)
        inside = inside if high is None else inside & (seen < high)
        bins.append(_bin(_name(low, high), log_probs, inside))
    return bins if unk is None else [*bins, _bin(UNK, log_probs, ~known)]


def _name(low: int, high: int | None) -> str:
    if high is None:
        return f"{low} or more"
    return str(low) if high == low + 1 else f"{low}-{high - 1}"


def _bin(name: str, log_probs: np.ndarray, inside: npt.NDArray[np.bool_]) -> Bin:
    own, following = log_probs[inside], log_probs[1:][inside[:-1]]
    here, after = score_of(own), score_of(following)
    return Bin(name, here.count, here.nll if here.count else None, after.count, after.nll if after.count else None)


# TARGET
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
