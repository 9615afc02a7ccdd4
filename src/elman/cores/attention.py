"""How a decoder looks at a source: a score for every position of it, and the mean of them so weighted.

B sequences, T queries each, S positions of the source, D the width of a query, M that of the memory, A in between.
"""

import math
from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn


class Attention(nn.Module, ABC):
    """Scores of a memory under queries. What depends on the memory alone is formed once a source, as its keys."""

    @abstractmethod
    def keys(self, memory: Tensor) -> Tensor:
        """What queries are compared with, [B, S, _], of a memory [B, S, M]."""

    @abstractmethod
    def scores(self, query: Tensor, keys: Tensor) -> Tensor:
        """Scores [B, T, S] of queries [B, T, D]."""


class Dot(Attention):
    """score(h, m) = h . m (Luong et al. 2015, eq. 8); queries and memory have one width."""

    def keys(self, memory: Tensor) -> Tensor:
        """The memory itself."""
        return memory

    def scores(self, query: Tensor, keys: Tensor) -> Tensor:
        """Inner products."""
        return query @ keys.transpose(1, 2)


class General(Attention):
    """score(h, m) = h . W_a m (Luong et al. 2015, eq. 8)."""

    def __init__(self, query_size: int, memory_size: int) -> None:
        super().__init__()
        self.memory = nn.Linear(memory_size, query_size, bias=False)

    def keys(self, memory: Tensor) -> Tensor:
        """W_a m."""
        mapped: Tensor = self.memory(memory)
        return mapped

    def scores(self, query: Tensor, keys: Tensor) -> Tensor:
        """Inner products."""
        return query @ keys.transpose(1, 2)


class Additive(Attention):
    """score(h, m) = v . tanh(W_a h + U_a m) (Bahdanau et al. 2015, appendix A.1.2)."""

    def __init__(self, query_size: int, memory_size: int, size: int) -> None:
        super().__init__()
        self.query = nn.Linear(query_size, size, bias=False)
        self.memory = nn.Linear(memory_size, size, bias=False)
        self.vector = nn.Parameter(torch.empty(size).uniform_(-1 / math.sqrt(size), 1 / math.sqrt(size)))

    def keys(self, memory: Tensor) -> Tensor:
        """U_a m."""
        mapped: Tensor = self.memory(memory)
        return mapped

    def scores(self, query: Tensor, keys: Tensor) -> Tensor:
        """The sum over A of [B, T, S, A]: for this score memory grows with T S A."""
        return (self.query(query).unsqueeze(2) + keys.unsqueeze(1)).tanh() @ self.vector


def attend(scores: Tensor, memory: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Read a memory [B, S, M] where the mask [B, S] has a symbol.

    Returns:
        contexts [B, T, M], the means of the memory under weights [B, T, S] in proportion to exp(scores); the weights
        of padding are exactly zero, and so are all weights where nothing but padding is there.

    """
    hidden = ~mask.unsqueeze(1)
    least = torch.finfo(scores.dtype).min
    weights = scores.masked_fill(hidden, least).softmax(-1).masked_fill(hidden, 0.0)
    return weights @ memory, weights
