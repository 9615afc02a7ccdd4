"""Real values as input: as they are, through a linear map, and standardised on the way in."""

from typing import final

import torch
from jaxtyping import Float, Shaped
from torch import Tensor, nn

from elman import config
from elman.config.record import Positive, Rate
from elman.network.dropout import Dropout
from elman.network.encoders.encoder import Inputs, TokenEncoder
from elman.network.fast.matmul import linear
from elman.network.initialisation import fill


class Values(config.Encoder, frozen=True, tag="values"):
    """Real values as they are, or a linear map of them to `size` numbers."""

    size: Positive | None = None
    dropout: Rate = 0.0


@final
class ValuesEncoder(TokenEncoder, of=Values):
    """dropout(W x + b) of values x [T, B, P] and W [E, P]; without a size dropout(x), where E = P."""

    reads = "values"

    def __init__(self, record: Values, inputs: Inputs) -> None:
        super().__init__()
        self.size = record.size or inputs.number
        self.dropout = Dropout(record.dropout, locked=inputs.locked)
        self.weight = None if record.size is None else nn.Parameter(torch.empty(record.size, inputs.number))
        self.bias = None if record.size is None else nn.Parameter(torch.zeros(record.size))

    def forward(self, x: Shaped[Tensor, "T B *P"]) -> Float[Tensor, "T B E"]:
        return self.dropout(x if self.weight is None else linear(x, self.weight, self.bias))

    def initialise(self, rules: config.Initialisation) -> None:
        if self.weight is not None:
            fill(self.weight, rules.embedding, self.size)


@final
class StandardisedValues(TokenEncoder):
    """The vectors of (x - mean) / deviation.

    The values are subtracted in double precision, since the digits in which neighbouring values of a series differ may
    be the last ones of a single-precision number. Mean and deviation [P] are doubles, saved with the model.
    """

    reads = "values"
    mean: Tensor
    deviation: Tensor

    def __init__(self, encoder: TokenEncoder, mean: Float[Tensor, " P"], deviation: Float[Tensor, " P"]) -> None:
        super().__init__()
        self.encoder, self.size = encoder, encoder.size
        self.register_buffer("mean", mean.double())
        self.register_buffer("deviation", deviation.double())

    def forward(self, x: Shaped[Tensor, "T B *P"]) -> Float[Tensor, "T B E"]:
        """Vectors [T, B, E] of values [T, B, P] in the units of the data."""
        return self.encoder(((x - self.mean) / self.deviation).to(torch.get_default_dtype()))

    def initialise(self, rules: config.Initialisation) -> None:
        self.encoder.initialise(rules)
