"""Attention for decoders of one's own, step by step or over all steps at once."""

import torch
from torch import Tensor

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
            mask: bool [B, S], false at padding, whose weights are 0; None: there is none
        """
        keys = self.keys(memory) if keys is None else keys
        read = torch.ones(memory.shape[:2], dtype=torch.bool, device=memory.device) if mask is None else mask
        return attend(self.scores(query, keys), memory, read)
