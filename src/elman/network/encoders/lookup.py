"""One-hot times embedding matrix: the usual word vectors."""

import torch
from torch import Tensor, nn
from torch.nn.functional import embedding

from elman.network import dropout
from elman.network.encoders.encoder import TokenEncoder


class Lookup(TokenEncoder):
    """A vector for every word of the vocabulary.

    Args:
        num_words: V.
        size: E.
        dropout: rate on the vectors.
        word_dropout: rate at which whole words are dropped, wherever they occur in a window (input side only,
            also when the matrix is tied with the output layer's).
        locked: one dropout mask over time.
        scale: a constant factor on the vectors.

    """

    def __init__(
        self,
        num_words: int,
        size: int,
        *,
        dropout: float = 0.0,
        word_dropout: float = 0.0,
        locked: bool = True,
        scale: float = 1.0,
    ) -> None:
        super().__init__()
        self.size, self.rate, self.word_rate, self.locked, self.scale = (
            size,
            dropout,
            word_dropout,
            locked,
            scale,
        )
        self.weight = nn.Parameter(torch.empty(num_words, size))

    def forward(self, x: Tensor) -> Tensor:
        """Word ids [T, B] to vectors [T, B, E]."""
        vectors = embedding(x, self.weight)
        if self.training and self.word_rate:
            vectors = vectors * dropout.word_types(len(self.weight), self.word_rate, vectors)[x]
        if self.scale != 1.0:
            vectors = vectors * self.scale
        drop = dropout.locked if self.locked else dropout.elementwise
        return drop(vectors, self.rate if self.training else 0.0)
