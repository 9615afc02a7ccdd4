"""Perplexity by how often words were seen in training: of the words themselves, and of what follows them."""

import dataclasses
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from elman.data.vocabulary import UNK
from elman.evaluation.figures import score_of
from elman.units import perplexity

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
