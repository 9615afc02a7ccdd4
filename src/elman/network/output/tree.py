"""Hierarchical softmax: first a cluster, then a word within it."""

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from elman.network.output import fast_tails
from elman.network.output.activation import LOG_G
from elman.network.output.adaptive import Clusters
from elman.network.output.choice import Choice, chosen, normalised


class Tree(Choice):
    """log p(y) = log p(cluster of y) + log p(y | cluster) (Goodman 2001; Mikolov et al. 2011, section 4).

    Both are normalised log g of products with the context. With C = ceil(sqrt(V)) clusters a target costs of the
    order of 2 sqrt(V) D multiply-adds instead of V D. Rows of W stay in the order of the words, so they can be an
    encoder's; which words make a cluster is saved with the model.

    Args:
        weight: W [V, D], one row a word; give an encoder's own parameter to tie them.
        clusters: which words stand together.
        activation: a key of `LOG_G`.
        bias: whether words and clusters have one.
        fast: use the fused kernel; the plain form is its ground truth.

    """

    order: Tensor
    place: Tensor
    starts: Tensor

    def __init__(
        self,
        weight: nn.Parameter,
        clusters: Clusters,
        activation: str = "softmax",
        *,
        bias: bool = True,
        fast: bool = True,
    ) -> None:
        super().__init__()
        num_clusters, size = len(clusters.starts) - 1, weight.shape[1]
        self.weight, self.activation, self.fast = weight, activation, fast
        self.bias = nn.Parameter(torch.zeros(len(weight))) if bias else None
        self.cluster_weight = nn.Parameter(torch.empty(num_clusters, size))
        self.cluster_bias = nn.Parameter(torch.zeros(num_clusters)) if bias else None
        self.register_buffer("order", torch.from_numpy(clusters.order.copy()))
        self.register_buffer("place", torch.from_numpy(np.argsort(clusters.order)))
        self.register_buffer("starts", torch.from_numpy(clusters.starts.copy()))

    @torch.no_grad()
    def arrange(self, clusters: Clusters) -> None:
        """Put the words into other clusters, as many as before."""
        self.order.copy_(torch.from_numpy(clusters.order))
        self.place.copy_(torch.from_numpy(np.argsort(clusters.order)))
        self.starts.copy_(torch.from_numpy(clusters.starts))

    def cluster_of(self, words: Tensor) -> Tensor:
        """The cluster of every word."""
        return torch.bucketize(self.place[words], self.starts, right=True) - 1

    def log_probs(self, context: Tensor) -> Tensor:
        """Log-probabilities [N, K, V]."""
        log_g = LOG_G[self.activation]
        head = normalised(log_g(linear(context, self.cluster_weight, self.cluster_bias)))
        scores = log_g(linear(context, self.weight, self.bias))
        sizes = self.starts.diff()
        column = torch.arange(int(sizes.max()), device=sizes.device)
        beyond = column >= sizes.unsqueeze(1)
        at = self.order[(self.starts[:-1].unsqueeze(1) + column).clamp(max=len(self.order) - 1)]
        by_cluster = scores[..., at].masked_fill(beyond, -torch.inf)
        shift = head - by_cluster.logsumexp(-1)
        return scores + shift[..., self.cluster_of(torch.arange(len(self.order), device=self.order.device))]

    def log_prob(self, context: Tensor, target: Tensor) -> Tensor:
        """Log-probability of the target, [N, K]: of the clusters only those that targets are in are computed."""
        if not self.fast:
            return chosen(self.log_probs(context), target)
        num_components = context.shape[1]
        cluster, by_cluster = self.cluster_of(target).sort(stable=True)
        touched, counts = cluster.unique_consecutive(return_counts=True)
        within = self.place[target[by_cluster]] - self.starts[cluster]
        found = fast_tails.log_prob(
            context[by_cluster].flatten(0, 1),
            self.weight,
            self.bias,
            within.repeat_interleave(num_components),
            self.activation,
            self._members(touched),
            (counts * num_components).tolist(),
        ).view(-1, num_components)
        head = fast_tails.log_prob(
            context.flatten(0, 1),
            self.cluster_weight,
            self.cluster_bias,
            self.cluster_of(target).repeat_interleave(num_components),
            self.activation,
        )
        return head.view(-1, num_components) + found[by_cluster.argsort()]

    def multiply_adds(self, frequency: Tensor) -> float:
        """The clusters, and the words of a cluster in the measure of their frequency."""
        sizes = self.starts.diff()[self.cluster_of(torch.arange(len(self.order), device=self.order.device))]
        per_word = float((frequency.to(sizes.device) * sizes).sum())
        return self.cluster_weight.numel() + per_word * self.weight.shape[1]

    def _members(self, clusters: Tensor) -> list[fast_tails.Members]:
        """The words of clusters; consecutive ones are a slice, which spares copying their rows."""
        starts, ends = self.starts[clusters], self.starts[clusters + 1]
        first, last = self.order[starts], self.order[ends - 1]
        facts = torch.stack([starts, ends, first, last]).t().tolist()
        return [
            slice(low, high + 1) if high - low == end - start - 1 else self.order[start:end]
            for start, end, low, high in facts
        ]
