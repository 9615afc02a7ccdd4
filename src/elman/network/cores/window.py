"""The feed-forward window model (Bengio et al. 2003), streamed: its state is the window's earlier words."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from elman import config
from elman.config.record import Positive, Rate
from elman.network.cores.core import RecurrentCore, Surroundings, Trace
from elman.network.dropout import Dropout
from elman.network.initialisation import fill
from elman.network.state import State, leaves


class FeedForward(config.Core, frozen=True, tag="window"):
    """Bengio's window model."""

    width: Positive
    size: Positive
    direct: bool = False
    output_dropout: Rate = 0.0


class FeedForwardCore(RecurrentCore, of=FeedForward):
    """h_t = tanh(H [x_{t-n+1}; ...; x_t] + d), over the last `width` = n encoded words (Bengio et al. 2003, eq. 1)."""

    def __init__(self, record: FeedForward, surroundings: Surroundings) -> None:
        super().__init__()
        self.width, self.direct, input_size = record.width, record.direct, surroundings.input_size
        self.output_dropout = Dropout(record.output_dropout, locked=surroundings.locked)
        self.hidden = nn.Linear(self.width * input_size, record.size)
        self.dims = (input_size, record.size + (self.width * input_size if self.direct else 0))

    def begin(self, batch: int) -> State:
        weight = self.hidden.weight
        return (weight.new_zeros(batch, self.width - 1, weight.shape[1] // self.width),)

    def forward(self, x: Float[Tensor, "T B E"], state: State) -> tuple[Trace, State]:
        """The trace of a window x [T, B, E]; the state is the vectors of the n - 1 words before, [B, n - 1, E]."""
        (before,) = leaves(state)
        stream = torch.cat([before.transpose(0, 1), x])
        steps = len(x)
        windows = torch.cat([stream[k : k + steps] for k in range(self.width)], dim=-1)
        outputs = self.hidden(windows).tanh()
        if self.direct:
            outputs = torch.cat([outputs, windows], dim=-1)
        return Trace((x, self.output_dropout(outputs)), (x, outputs)), (stream[steps:].transpose(0, 1),)

    def initialise(self, rules: config.Initialisation) -> None:
        fill(self.hidden.weight, rules.input, self.hidden.weight.shape[1])
        fill(self.hidden.bias, config.Zeros(), 1)
