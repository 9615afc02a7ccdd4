"""From a trace to K context vectors and the weight of each."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from elman.network import dropout
from elman.network.cores.core import Trace
from elman.network.kernels.matmul import linear
from elman.network.output.activation import LOG_G


class Contexts(NamedTuple):
    """What an output layer mixes: vectors [T, B, K, D] and the logarithm of their weights [T, B, K]."""

    vectors: Tensor
    log_prior: Tensor


class ContextLayer(nn.Module, ABC):
    """Reads contexts from a trace.

    Attributes:
        size: the width D of a context.

    """

    size: int

    @abstractmethod
    def forward(self, trace: Trace) -> Contexts:
        """The contexts of every position."""


class Single(ContextLayer):
    """The last level as it is, with weight one: the usual output layer, K = 1."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.size = size

    def forward(self, trace: Trace) -> Contexts:
        """The top of the trace as the only context."""
        vectors = trace.top.unsqueeze(-2)
        return Contexts(vectors, vectors.new_zeros(vectors.shape[:-1]))


class Mixture(ContextLayer):
    """`heads[n]` contexts from level n, weighted by a prior read from the last level.

    All heads on the last level: mixture of softmaxes (Yang et al. 2018, section 3.2). Heads on several levels,
    the encoder's included: direct output connection (Takase et al. 2018, eqs 7-11), components ordered by level.

        k_s = tanh(W_s h^n + b_s),   pi = softmax(W_pi h^N)

    Args:
        dims: the width of every level.
        heads: level -> how many components it gives.
        size: D.
        linear: leave out the tanh, as DOC's eq. 11 is printed; the published code has it.
        drop: locked dropout rate on the contexts.
        shared_mask: one mask [1, B, D] for all components (the DOC code) instead of one each (the MoS code).
        prior: the activation that normalises the weights (MoSS: sigsoftmax, thesis 4.43).

    """

    def __init__(
        self,
        dims: Sequence[int],
        heads: Mapping[int, int],
        size: int,
        *,
        linear: bool = False,
        drop: float = 0.0,
        shared_mask: bool = False,
        prior: str = "softmax",
    ) -> None:
        super().__init__()
        self.size, self.linear, self.drop, self.shared_mask = size, linear, drop, shared_mask
        self.heads = {level: heads[level] for level in sorted(heads) if heads[level]}
        self.projections = nn.ModuleDict(
            {str(level): nn.Linear(dims[level], count * size) for level, count in self.heads.items()}
        )
        self.prior = nn.Linear(dims[-1], sum(self.heads.values()), bias=False)
        self.log_prior_g = LOG_G[prior]

    def forward(self, trace: Trace) -> Contexts:
        """Project every level that has heads, and weigh the components by the top."""
        parts = [self._project(trace, level).unflatten(-1, (count, self.size)) for level, count in self.heads.items()]
        vectors = torch.cat(parts, dim=-2) if len(parts) > 1 else parts[0]
        if not self.linear:
            vectors = vectors.tanh_()
        rate = self.drop if self.training else 0.0
        if rate and self.shared_mask:
            vectors = vectors * dropout.elementwise(torch.ones_like(vectors[:1, :, :1]), rate)
        else:
            vectors = dropout.locked(vectors, rate)
        scores = self.log_prior_g(self.prior(trace.top))
        return Contexts(vectors, scores - scores.logsumexp(-1, keepdim=True))

    def _project(self, trace: Trace, level: int) -> Tensor:
        projection = self.projections[str(level)]
        assert isinstance(projection, nn.Linear)
        return linear(trace.levels[level], projection.weight, projection.bias)
