"""Which words stand together in the tree: C clusters of V words, none so large that the cost outgrows sqrt(V)."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from elman.errors import UserError

Ids = npt.NDArray[np.int64]


class Clusters(NamedTuple):
    """Words [V], cluster by cluster and in rising order within each, and where each begins, [C + 1]."""

    order: Ids
    starts: Ids

    @classmethod
    def of(cls, groups: list[Ids]) -> "Clusters":
        """From the words of every cluster."""
        sizes = [len(group) for group in groups]
        assert min(sizes) > 0, "no cluster is empty"
        return cls(np.concatenate([np.sort(group) for group in groups]), np.cumsum([0, *sizes]))


def by_frequency(frequency: npt.NDArray[np.float64], num_clusters: int) -> Clusters:
    """Runs of words, by falling frequency [V], of equal mass (Mikolov et al. 2011) but at most 2 ceil(V / C) words.

    Frequent words so get small clusters. Without the bound the last cluster would hold most of the vocabulary.
    """
    num_words = len(frequency)
    order = np.argsort(-frequency, kind="stable")
    mass = np.concatenate([[0.0], np.cumsum(frequency[order])])
    bound = 2 * -(-num_words // num_clusters)
    starts = [0]
    for left in range(num_clusters, 0, -1):
        start = starts[-1]
        share = mass[start] + (mass[-1] - mass[start]) / left
        least = max(start + 1, num_words - (left - 1) * bound)
        most = min(start + bound, num_words - (left - 1))
        starts.append(min(max(int(np.searchsorted(mass, share)), least), most))
    return Clusters.of(np.split(order, starts[1:-1]))


def at_random(num_words: int, num_clusters: int, permute: Callable[[int], Ids]) -> Clusters:
    """Clusters of equal size; `permute` draws a permutation."""
    return Clusters.of(np.array_split(permute(num_words), num_clusters))


def by_similarity(vectors: npt.NDArray[np.floating], num_clusters: int) -> Clusters:
    """Clusters of equal size of words with similar vectors [V, E].

    The words are halved at the median along their principal direction, again and again (principal direction
    divisive partitioning, Boley 1998, with balanced halves).
    """
    groups: list[Ids] = []
    waiting = [(np.arange(len(vectors)), num_clusters)]
    while waiting:
        words, count = waiting.pop()
        if count == 1:
            groups.append(words)
            continue
        along = words[np.argsort(_projections(vectors[words]), kind="stable")]
        half = count // 2
        cut = round(len(words) * half / count)
        waiting += [(along[cut:], count - half), (along[:cut], half)]
    return Clusters.of(groups)


def check(num_words: int, num_clusters: int) -> None:
    """Raises UserError where there are more clusters than words."""
    if num_clusters > num_words:
        raise UserError(
            f"model.output.choice.clusters is {num_clusters}, but the vocabulary has {num_words} words; give at most"
            " that many, or leave the key out for ceil(sqrt(V))"
        )


def _projections(vectors: npt.NDArray[np.floating], steps: int = 10) -> npt.NDArray[np.floating]:
    """Of every vector onto the principal direction, by power iteration: the order of the words needs no more."""
    centred = vectors - vectors.mean(0)
    direction = centred[np.argmax(np.square(centred).sum(1))]
    for _ in range(steps):
        direction = (centred @ direction) @ centred
        direction = direction / max(np.linalg.norm(direction), np.finfo(centred.dtype).tiny)
    return centred @ direction
