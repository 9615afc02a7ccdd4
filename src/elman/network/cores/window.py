"""The feed-forward window model (Bengio et al. 2003), streamed: its state is the window's earlier words."""

import torch
from torch import Tensor, nn

from elman import config
from elman.network.cores.core import RecurrentCore, Surroundings, Trace
from elman.network.dropout import Dropout
from elman.network.initialisation import fill
from elman.network.state import State


class FeedForwardWindow(RecurrentCore):
    """h_t = tanh(H [x_{t-n+1}; ...; x_t] + d), over the last `width` = n encoded words (Bengio et al. 2003, eq. 1).

    Args:
        input_size: E.
        width: n, the number of words in the window, the current one included.
        hidden_size: H.
        direct: the output layer reads [h; x] instead of h: the direct connections W of the paper.
        output_dropout: rate on the output.
        locked: one dropout mask over time.

    """

    def __init__(
        self,
        input_size: int,
        width: int,
        hidden_size: int,
        *,
        direct: bool = False,
        output_dropout: float = 0.0,
        locked: bool = False,
    ) -> None:
        super().__init__()
        self.width, self.direct = width, direct
        self.output_dropout = Dropout(output_dropout, locked=locked)
        self.hidden = nn.Linear(width * input_size, hidden_size)
        self.dims = (input_size, hidden_size + (width * input_size if direct else 0))

    def begin(self, batch: int) -> State:
        """Zeros in place of the words before the first."""
        weight = self.hidden.weight
        return (weight.new_zeros(batch, self.width - 1, weight.shape[1] // self.width),)

    def forward(self, x: Tensor, state: State) -> tuple[Trace, State]:
        """The trace of a window x [T, B, E]; the state is the vectors of the n - 1 words before, [B, n - 1, E]."""
        (before,) = state
        stream = torch.cat([before.transpose(0, 1), x])
        steps = len(x)
        windows = torch.cat([stream[k : k + steps] for k in range(self.width)], dim=-1)
        outputs = self.hidden(windows).tanh()
        if self.direct:
            outputs = torch.cat([outputs, windows], dim=-1)
        return Trace((x, self.output_dropout(outputs)), (x, outputs)), (stream[steps:].transpose(0, 1),)

    def initialise(self, rules: config.Initialisation) -> None:
        """Fill the matrix of the hidden layer; its bias is zero."""
        fill(self.hidden.weight, rules.input, self.hidden.weight.shape[1])
        fill(self.hidden.bias, config.Zeros(), 1)


def build(record: config.FeedForward, surroundings: Surroundings) -> FeedForwardWindow:
    """The core of a recipe."""
    return FeedForwardWindow(
        surroundings.input_size,
        record.width,
        record.size,
        direct=record.direct,
        output_dropout=record.output_dropout,
        locked=surroundings.locked,
    )
