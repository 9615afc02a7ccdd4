"""Word vectors: the usual embedding matrix."""

from typing import final

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.functional import embedding

from elman import config
from elman.config.record import Positive, PositiveFloat, Rate, Record
from elman.network.dropout import Dropout, word_types
from elman.network.encoders.encoder import Inputs, TokenEncoder
from elman.network.initialisation import fill


class Cooccurrence(Record, frozen=True):
    """Vectors of the words that stand at most `window` tokens apart in the training text (`tasks/text/vectors.py`).

    `std`: the root of the mean square of their numbers.
    """

    window: Positive = 3
    std: PositiveFloat = 0.17


class Lookup(config.Encoder, frozen=True, tag="lookup"):
    """Word vectors; `cooccurrence`: they begin as vectors of which words stand together, not at random."""

    size: Positive
    dropout: Rate = 0.0
    word_dropout: Rate = 0.0
    scale: PositiveFloat = 1.0
    cooccurrence: Cooccurrence | None = None


@final
class LookupEncoder(TokenEncoder, of=Lookup):
    """A vector for every word of the vocabulary."""

    def __init__(self, record: Lookup, inputs: Inputs) -> None:
        super().__init__()
        self.size, self.word_dropout, self.scale = record.size, record.word_dropout, record.scale
        self.dropout = Dropout(record.dropout, locked=inputs.locked)
        self.weight = nn.Parameter(torch.empty(inputs.number, record.size))

    def forward(self, x: Int[Tensor, "T B"]) -> Float[Tensor, "T B E"]:
        vectors = embedding(x, self.weight)
        if self.training and self.word_dropout:
            vectors = vectors * word_types(len(self.weight), self.word_dropout, vectors)[x]
        return self.dropout(vectors if self.scale == 1.0 else vectors * self.scale)

    def initialise(self, rules: config.Initialisation) -> None:
        fill(self.weight, rules.embedding, self.size)
