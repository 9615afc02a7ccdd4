"""The feed-forward window model (Bengio et al. 2003), streamed: its state is the window's earlier words."""

import torch
from torch import Tensor, nn

from elman.network import dropout
from elman.network.cores.core import RecurrentCore, Trace
from elman.network.state import State


class FeedForwardWindow(RecurrentCore):
    """h_t = tanh(H [x_{t-n+1}; ...; x_t] + d), over the last `width` = n encoded words (Bengio et al. 2003, eq. 1).

    Args:
        input_size: E.
        width: how many words the window holds, the current one included.
        hidden_size: H.
        direct: give the output layer [h; x] instead of h: the direct connections W of the paper.
        after: dropout rate on the output.
        locked: one dropout mask over time.

    """

    def __init__(
        self,
        input_size: int,
        width: int,
        hidden_size: int,
        *,
        direct: bool = False,
        after: float = 0.0,
        locked: bool = False,
    ) -> None:
        super().__init__()
        self.width, self.direct, self.after = width, direct, after
        self.drop = dropout.locked if locked else dropout.elementwise
        self.hidden = nn.Linear(width * input_size, hidden_size)
        self.dims = (input_size, hidden_size + (width * input_size if direct else 0))

    def begin(self, batch: int) -> State:
        """Zeros in place of the words before the beginning."""
        weight = self.hidden.weight
        return (weight.new_zeros(batch, self.width - 1, weight.shape[1] // self.width),)

    def forward(self, x: Tensor, state: State) -> tuple[Trace, State]:
        """Run over x [T, B, E]; the state is the width - 1 words before, [B, n - 1, E]."""
        (before,) = state
        stream = torch.cat([before.transpose(0, 1), x])
        steps = len(x)
        windows = torch.cat([stream[k : k + steps] for k in range(self.width)], dim=-1)
        outputs = self.hidden(windows).tanh()
        if self.direct:
            outputs = torch.cat([outputs, windows], dim=-1)
        dropped = self.drop(outputs, self.after if self.training else 0.0)
        return Trace((x, dropped), (x, outputs)), (stream[steps:].transpose(0, 1),)
