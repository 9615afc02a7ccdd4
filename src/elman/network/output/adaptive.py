"""Adaptive softmax: few frequent words in a head, the others in tails that the head names and that are narrower."""

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from elman.errors import UserError
from elman.network.output import fast_mixture, fast_tails
from elman.network.output.activation import LOG_G
from elman.network.output.choice import Choice, chosen, normalised


class Adaptive(Choice):
    """log p(y) = log p_head(y) in the head, log p_head(tail i) + log p_i(y) in tail i (Grave et al. 2017, section 4).

    The head has the words before cutoffs[0] and an entry for each tail; tail i has those from cutoffs[i] to the next,
    as U_i P_i context with P_i of D / div_value^(i+1) rows. Each part is normalised log g: with sigsoftmax it is the
    adaptive sigsoftmax of Table 4.5 of the thesis. Words are numbered by falling frequency, as a vocabulary's are.

    Args:
        num_words: V.
        size: D.
        cutoffs: rising, all below V.
        activation: a key of `LOG_G`.
        div_value: by what each tail is narrower than the part before.
        bias: whether the head has one.
        fast: use the fused kernels; the plain form is its ground truth.

    """

    def __init__(
        self,
        num_words: int,
        size: int,
        cutoffs: Sequence[int],
        activation: str = "softmax",
        *,
        div_value: float = 4.0,
        bias: bool = False,
        fast: bool = True,
    ) -> None:
        super().__init__()
        assert all(low < high for low, high in pairwise((0, *cutoffs, num_words))), "rising cut-offs below V"
        self.cutoffs, self.num_words, self.activation, self.fast = tuple(cutoffs), num_words, activation, fast
        widths = [max(1, int(size / div_value ** (tail + 1))) for tail in range(len(cutoffs))]
        sizes = [high - low for low, high in self.tails()]
        head = cutoffs[0] + len(cutoffs)
        self.head = nn.Parameter(torch.empty(head, size))
        self.bias = nn.Parameter(torch.zeros(head)) if bias else None
        self.down = nn.ParameterList(nn.Parameter(torch.empty(width, size)) for width in widths)
        self.up = nn.ParameterList(
            nn.Parameter(torch.empty(words, width)) for words, width in zip(sizes, widths, strict=True)
        )

    def tails(self) -> Iterator[tuple[int, int]]:
        """The first word of every tail, and the one after its last."""
        return pairwise((*self.cutoffs, self.num_words))

    def log_probs(self, context: Tensor) -> Tensor:
        """Log-probabilities [N, K, V]."""
        log_g, num_head = LOG_G[self.activation], self.cutoffs[0]
        head = normalised(log_g(linear(context, self.head, self.bias)))
        parts = [head[..., :num_head]]
        for tail, (down, up) in enumerate(zip(self.down, self.up, strict=True)):
            within = normalised(log_g(linear(linear(context, down), up)))
            parts.append(head[..., num_head + tail, None] + within)
        return torch.cat(parts, dim=-1)

    def log_prob(self, context: Tensor, target: Tensor) -> Tensor:
        """Log-probability of the target, [N, K]: of the tails only those that targets are in, at those positions."""
        if not self.fast:
            return chosen(self.log_probs(context), target)
        num_components = context.shape[1]
        found = context.new_zeros(context.shape[:2], dtype=self.head.dtype)
        for part in self._parts(context, target):
            rows, y = part.context.flatten(0, 1), part.target.repeat_interleave(num_components)
            if torch.is_grad_enabled():
                each = fast_tails.log_prob(rows, part.weight, part.bias, y, self.activation)
            else:
                each = fast_mixture.mixture_log_prob(
                    rows.unsqueeze(1), None, part.weight, part.bias, y, self.activation
                )
            found = found.index_add(0, part.at, each.view(-1, num_components))
        return found

    def mixture_nll(
        self, context: Tensor, log_prior: Tensor, target: Tensor, position_weight: Tensor
    ) -> tuple[Tensor, Tensor]:
        """As in `Choice`. One context: the parts add up, and the gradients of each are formed on the way."""
        if context.shape[1] > 1 or not self.fast:
            return super().mixture_nll(context, log_prior, target, position_weight)
        nll = -log_prior.detach().squeeze(1).to(self.head.dtype)
        total = -(position_weight * log_prior.squeeze(1)).sum()
        for part in self._parts(context, target):
            weight = position_weight[part.at]
            of_part, each = fast_mixture.mixture_nll(
                part.context, None, part.weight, part.bias, part.target, weight, self.activation
            )
            total, nll = total + of_part, nll.index_add(0, part.at, each)
        return total, nll

    def _parts(self, context: Tensor, target: Tensor) -> "Iterator[_Part]":
        """The head with every position, then each tail with those whose targets are in it, if there are any."""
        entry = target
        for tail, (low, high) in enumerate(self.tails()):
            entry = entry.where((target < low) | (target >= high), self.cutoffs[0] + tail)
        yield _Part(torch.arange(len(target), device=target.device), context, self.head, self.bias, entry)
        for (low, high), down, up in zip(self.tails(), self.down, self.up, strict=True):
            at = ((target >= low) & (target < high)).nonzero().squeeze(1)
            if len(at):
                yield _Part(at, linear(context[at], down), up, None, target[at] - low)

    def multiply_adds(self, frequency: Tensor) -> float:
        """The head, and each tail in the measure of its words' frequency."""
        cost = float(self.head.numel())
        for (low, high), down, up in zip(self.tails(), self.down, self.up, strict=True):
            cost += float(frequency[low:high].sum()) * (down.numel() + up.numel())
        return cost


class _Part(NamedTuple):
    """The positions [n] that need the head or a tail, what it sees of them [n, K, d], its outputs, its targets [n]."""

    at: Tensor
    context: Tensor
    weight: Tensor
    bias: Tensor | None
    target: Tensor


# FOLDED output/clusters.py: Which words stand together in the tree: C clusters of V words, none so large that the cost outgrows sqrt(V).
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
