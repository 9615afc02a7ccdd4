"""Hierarchical softmax: a cluster, then a word; C clusters of V words, none so large that costs outgrow sqrt(V)."""

import heapq
import math
from collections.abc import Sequence
from typing import Annotated, Literal, NamedTuple, final

import numpy as np
import numpy.typing as npt
import torch
from jaxtyping import Float
from msgspec import Meta
from torch import Tensor, nn
from torch.nn.functional import linear

from elman import config
from elman.errors import UserError
from elman.network.fast import tails
from elman.network.output.activation import log_g
from elman.network.output.choice import Choice, PerContext, Surroundings, Targets, Vectors, chosen, normalised, zipf

Ids = npt.NDArray[np.int64]


class Clusters(NamedTuple):
    """Words [V], cluster by cluster and in rising order within each, and where each begins, [C + 1]."""

    order: Ids
    starts: Ids

    @classmethod
    def of(cls, groups: list[Ids]) -> "Clusters":
        sizes = [len(group) for group in groups]
        assert min(sizes) > 0, "no cluster is empty"
        return cls(np.concatenate([np.sort(group) for group in groups]), np.cumsum([0, *sizes]))


class Tree(config.Choice, frozen=True, tag="tree"):
    """Hierarchical softmax, of ceil(sqrt(V)) clusters unless `clusters` is set."""

    clusters: Annotated[int, Meta(ge=2)] | None = None
    assignment: Literal["frequency", "random", "similarity"] = "frequency"
    tied: bool = False
    bias: bool = True


@final
class TreeChoice(Choice, of=Tree):
    """log p(y) = log p(cluster of y) + log p(y | cluster) (Goodman 2001; Mikolov et al. 2011, section 4).

    Both are normalised log g of products with the context. With C = ceil(sqrt(V)) clusters a target costs about
    2 sqrt(V) D multiply-adds instead of V D. The rows of W are in the order of the words, so they can be an encoder's;
    the clusters are saved with the model.
    """

    order: Tensor
    place: Tensor
    starts: Tensor

    def __init__(self, record: Tree, surroundings: Surroundings) -> None:
        super().__init__()
        self.weight = surroundings.matrix(record.tied)
        clusters = _first_clusters(record, surroundings)
        num_clusters, size = len(clusters.starts) - 1, self.weight.shape[1]
        self.activation, self.fast = surroundings.activation, True
        self.bias = nn.Parameter(torch.zeros(len(self.weight))) if record.bias else None
        self.cluster_weight = nn.Parameter(torch.empty(num_clusters, size))
        self.cluster_bias = nn.Parameter(torch.zeros(num_clusters)) if record.bias else None
        self.register_buffer("order", torch.from_numpy(clusters.order.copy()))
        self.register_buffer("place", torch.from_numpy(np.argsort(clusters.order)))
        self.register_buffer("starts", torch.from_numpy(clusters.starts.copy()))

    @torch.no_grad()
    def arrange(self, clusters: Clusters) -> None:
        self.order.copy_(torch.from_numpy(clusters.order))
        self.place.copy_(torch.from_numpy(np.argsort(clusters.order)))
        self.starts.copy_(torch.from_numpy(clusters.starts))

    def cluster_of(self, words: Tensor) -> Tensor:
        return torch.bucketize(self.place[words], self.starts, right=True) - 1

    def log_probs(self, context: Vectors) -> Float[Tensor, "N K V"]:
        head = normalised(log_g(linear(context, self.cluster_weight, self.cluster_bias), self.activation))
        scores = log_g(linear(context, self.weight, self.bias), self.activation)
        cluster = self.cluster_of(torch.arange(len(self.order), device=self.order.device))
        largest = torch.full_like(head, -torch.inf).scatter_reduce(
            -1, cluster.expand_as(scores), scores.detach(), "amax"
        )
        sums = torch.zeros_like(head).index_add(-1, cluster, (scores - largest[..., cluster]).exp())
        return scores + (head - largest - sums.log())[..., cluster]

    def log_prob(self, context: Vectors, target: Targets) -> PerContext:
        """Log-probability of the target, [N, K]; only clusters that contain a target are computed."""
        if not self.fast or context.dtype.itemsize == 2:
            return chosen(self.log_probs(context), target)
        num_components = context.shape[1]
        cluster, by_cluster = self.cluster_of(target).sort(stable=True)
        touched, counts = cluster.unique_consecutive(return_counts=True)
        within = self.place[target[by_cluster]] - self.starts[cluster]
        rows, y = context[by_cluster].flatten(0, 1), within.repeat_interleave(num_components)
        members, sizes = self._members(touched), (counts * num_components).tolist()
        found = tails.log_prob(rows, self.weight, self.bias, y, self.activation, members, sizes)
        rows, y = context.flatten(0, 1), self.cluster_of(target).repeat_interleave(num_components)
        head = tails.log_prob(rows, self.cluster_weight, self.cluster_bias, y, self.activation)
        return head.view(-1, num_components) + found.view(-1, num_components)[by_cluster.argsort()]

    def multiply_adds(self, frequency: Tensor) -> float:
        """The clusters, and the words of each cluster in proportion to their frequency."""
        sizes = self.starts.diff()[self.cluster_of(torch.arange(len(self.order), device=self.order.device))]
        per_word = float((frequency.to(sizes.device) * sizes).sum())
        return self.cluster_weight.numel() + per_word * self.weight.shape[1]

    def _members(self, clusters: Tensor) -> list[tails.Members]:
        """The words of clusters; consecutive ones are a slice, so that their rows are not copied."""
        starts, ends = self.starts[clusters], self.starts[clusters + 1]
        first, last = self.order[starts], self.order[ends - 1]
        facts = torch.stack([starts, ends, first, last]).t().tolist()
        return [
            slice(low, high + 1) if high - low == end - start - 1 else self.order[start:end]
            for start, end, low, high in facts
        ]


def _first_clusters(record: Tree, surroundings: Surroundings) -> Clusters:
    """The clusters that training begins with; those by similarity need word vectors and come later."""
    num_words, counts = surroundings.num_outputs, surroundings.counts
    number = record.clusters or math.ceil(math.sqrt(num_words))
    if number > num_words:
        raise UserError(
            f"model.output.choice.clusters is {number}, but the vocabulary has {num_words} words; set at most that"
            " many, or leave the key out for ceil(sqrt(V))"
        )
    if record.assignment == "random":
        return Clusters.of(np.array_split(torch.randperm(num_words, device="cpu").numpy(), number))
    frequency = zipf(num_words).numpy() if counts is None else np.asarray(counts, dtype=np.float64)
    return by_frequency(frequency, number)


def by_frequency(frequency: npt.NDArray[np.float64], num_clusters: int) -> Clusters:
    """Runs of words, by falling frequency [V], of equal mass (Mikolov et al. 2011) but at most 2 ceil(V / C) words.

    Clusters of frequent words are therefore small. Without the bound the last would hold most of the vocabulary.
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


def by_example(tree: TreeChoice, here: Sequence[int], there: Sequence[int], num_words: int) -> Clusters:
    """As many clusters as another tree has: each word of `here` joins the cluster of its word in `there`.

    Words that the other tree lacks join the cluster that is smallest by then, and no cluster is left empty.
    """
    cluster = np.full(num_words, -1)
    cluster[list(here)] = tree.cluster_of(torch.tensor(there, dtype=torch.int64, device=tree.order.device)).cpu()
    groups = [np.flatnonzero(cluster == number).tolist() for number in range(len(tree.cluster_weight))]
    sizes = [(len(group), number) for number, group in enumerate(groups)]
    heapq.heapify(sizes)
    for word in np.flatnonzero(cluster < 0).tolist():
        size, number = sizes[0]
        groups[number].append(word)
        heapq.heapreplace(sizes, (size + 1, number))
    for group in groups:
        if not group:
            group.append(max(groups, key=len).pop())
    return Clusters.of([np.array(group, dtype=np.int64) for group in groups])


def by_similarity(vectors: npt.NDArray[np.floating], num_clusters: int) -> Clusters:
    """Clusters of equal size of words with similar vectors [V, E].

    The words are halved recursively at the median along their principal direction (principal direction divisive
    partitioning, Boley 1998, with balanced halves).
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


def _projections(vectors: npt.NDArray[np.floating], steps: int = 10) -> npt.NDArray[np.floating]:
    """Projections on the principal direction, by a few power iterations, enough to order the words."""
    centred = vectors - vectors.mean(0)
    direction = centred[np.argmax(np.square(centred).sum(1))]
    for _ in range(steps):
        direction = (centred @ direction) @ centred
        direction = direction / max(np.linalg.norm(direction), np.finfo(centred.dtype).tiny)
    return centred @ direction
