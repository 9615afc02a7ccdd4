"""Attention for decoders of one's own, step by step or over all steps at once."""

import math

import torch
from torch import Tensor, nn

from elman.network.cores.attentive import Additive, attend


class AdditiveAttention(Additive):
    """Softmax over the positions of a memory of score(h, m) = v . tanh(W h + U m), and the mean of the memory under it.

    Bahdanau, Cho & Bengio 2015, appendix A.1.2; over a grid of convolutional features Xu et al. 2015, section 3.1.2.
    B sequences, T queries each, S positions of the memory, all of M values.

    Args:
        query_size: D
        memory_size: M
        size: the width of W h, U m and v
    """

    def forward(
        self, query: Tensor, memory: Tensor, keys: Tensor | None = None, mask: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Contexts [B, T, M], the means of the memory, and the weights [B, T, S] of its positions.

        Args:
            query: h [B, T, D]
            memory: m [B, S, M]
            keys: `attention.keys(memory)`, where one memory is read several times; None: they are computed
            mask: bool [B, S], false at padding, whose weights are 0; None: no padding
        """
        keys = self.keys(memory) if keys is None else keys
        read = torch.ones(memory.shape[:2], dtype=torch.bool, device=memory.device) if mask is None else mask
        return attend(self.scores(query, keys), memory, read)


class SoftWindow(nn.Module):
    """A window that slides along a memory, only ever forwards: K bumps, which a query places and shapes.

        (alpha^, beta^, kappa^) = W h + b,    kappa_t = kappa_{t-1} + exp(kappa^)
        phi_s = sum_k exp(alpha^_k) exp(-exp(beta^_k) (kappa_k - s)^2),    w = sum_s phi_s m_s

    with the positions s = 1, 2, ... (Graves 2013, eqs 46 to 51, for the characters of a text that is written). The
    weights phi have no sum of 1. A whole text is passed where the last position has the largest.

    Args:
        query_size: D
        components: K
        pace: positions that the window passes in a step of a new module; the paper gives no initial kappa^
    """

    def __init__(self, query_size: int, components: int = 10, *, pace: float = 0.1) -> None:
        super().__init__()
        if components < 1 or not pace > 0:
            raise ValueError(f"components is {components} and pace {pace}; they must be 1 or more, and above 0")
        self.components = components
        self.numbers = nn.Linear(query_size, 3 * components)
        with torch.no_grad():
            self.numbers.bias.view(3, components).copy_(torch.tensor([[0.0], [0.0], [math.log(pace)]]))

    def forward(
        self, query: Tensor, memory: Tensor, position: Tensor | None = None, mask: Tensor | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Contexts w [B, T, M], the weights phi [B, T, S], and the places kappa [B, T, K] of the bumps.

        Args:
            query: h [B, T, D]
            memory: m [B, S, M]
            position: kappa [B, K] before the first query, the last of the places returned; None: 0
            mask: bool [B, S], false at padding, whose weights are 0; None: no padding
        """
        alpha, beta, pace = self.numbers(query).exp().chunk(3, -1)
        place = pace.cumsum(1) if position is None else position.unsqueeze(1) + pace.cumsum(1)
        away = place.unsqueeze(2) - torch.arange(1, memory.shape[1] + 1, device=memory.device).unsqueeze(-1)
        weights = (alpha.unsqueeze(2) * (-beta.unsqueeze(2) * away.square()).exp()).sum(-1)
        if mask is not None:
            weights = weights.masked_fill(~mask.unsqueeze(1), 0.0)
        return weights @ memory, weights, place
