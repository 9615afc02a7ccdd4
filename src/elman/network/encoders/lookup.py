"""Word vectors: the usual embedding matrix."""

from typing import final

import torch
from torch import Tensor, nn
from torch.nn.functional import embedding

from elman import config
from elman.network.dropout import Dropout, word_types
from elman.network.encoders.encoder import Inputs, TokenEncoder
from elman.network.initialisation import fill


@final
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
        self.size, self.word_dropout, self.scale = size, word_dropout, scale
        self.dropout = Dropout(dropout, locked=locked)
        self.weight = nn.Parameter(torch.empty(num_words, size))

    def forward(self, x: Tensor) -> Tensor:
        """Vectors [T, B, E] of word ids [T, B]."""
        vectors = embedding(x, self.weight)
        if self.training and self.word_dropout:
            vectors = vectors * word_types(len(self.weight), self.word_dropout, vectors)[x]
        dropped: Tensor = self.dropout(vectors if self.scale == 1.0 else vectors * self.scale)
        return dropped

    def initialise(self, rules: config.Initialisation) -> None:
        """Fill the matrix."""
        fill(self.weight, rules.embedding, self.size)


def build(record: config.Lookup, inputs: Inputs) -> Lookup:
    """The encoder of a recipe."""
    return Lookup(
        inputs.number,
        record.size,
        dropout=record.dropout,
        word_dropout=record.word_dropout,
        locked=inputs.locked,
        scale=record.scale,
    )
