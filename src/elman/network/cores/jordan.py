"""Jordan's network, in which the output of the network is fed back, not its hidden layer (Jordan 1986)."""

from collections.abc import Callable
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import linear

from elman import config
from elman.config.record import Nonlinearity, Positive, Rate
from elman.network.cells.elman import NONLINEARITIES
from elman.network.cores.core import RecurrentCore, Surroundings, Trace
from elman.network.dropout import Dropout
from elman.network.initialisation import fill
from elman.network.state import State, leaves

Answer = Callable[[Trace], Tensor]
"""The output layer of the same model: log-probabilities [1, B, V] given the trace of one step."""


class Jordan(config.Core, frozen=True, tag="jordan"):
    """Jordan's network; `feedback`: the model's own output, or the true target."""

    size: Positive
    feedback: Literal["output", "target"] = "output"
    nonlinearity: Nonlinearity = "tanh"
    decay: Rate = 0.0
    output_dropout: Rate = 0.0

    @property
    def hears(self) -> bool:
        return self.feedback == "output"


class JordanCore(RecurrentCore, of=Jordan):
    """h_t = f(W_x x_t + W_c c_t + b), with the context c_t = decay * c_{t-1} + y_{t-1}.

    "output", the free-running form: y is the distribution over V symbols of the model's own output layer, which the
    caller passes to `forward`. "target", the teacher-forced form: y_{t-1} is the true symbol, which in next-symbol
    prediction is the input of step t, as its vector x_t. W_c times a one-hot vector is a column of W_c, so reading the
    vector loses nothing. With decay = 0 the forced form therefore depends on one symbol only.
    """

    def __init__(self, record: Jordan, surroundings: Surroundings) -> None:
        super().__init__()
        self.feedback, self.decay = record.feedback, record.decay
        self.hears = record.hears
        self.output_dropout = Dropout(record.output_dropout, locked=surroundings.locked)
        self.f = NONLINEARITIES[record.nonlinearity]
        input_size, size = surroundings.input_size, record.size
        self.context_size = surroundings.num_outputs if self.feedback == "output" else input_size
        self.weight_ih = nn.Parameter(torch.empty(size, input_size))
        self.weight_ch = nn.Parameter(torch.empty(size, self.context_size))
        self.bias = nn.Parameter(torch.empty(size))
        self.dims = (input_size, size)

    def begin(self, batch: int) -> State:
        """A context of zeros, [B, V] or [B, E]: there is no output yet."""
        return (self.bias.new_zeros(batch, self.context_size),)

    def forward(self, x: Float[Tensor, "T B E"], state: State, answer: Answer | None = None) -> tuple[Trace, State]:
        """The trace of a window x [T, B, E], and the state after it; the free-running form reads `answer`."""
        drive = linear(x, self.weight_ih, self.bias)
        (context,) = leaves(state)
        if self.feedback == "target":
            contexts = torch.stack([context := self.decay * context + y for y in x]) if self.decay else x
            outputs = self.f(drive + linear(contexts, self.weight_ch))
            return Trace((x, self.output_dropout(outputs)), (x, outputs)), (contexts[-1],)
        assert answer is not None, "the free-running form reads the output layer"
        raw, dropped = [], []
        for vector, step, kept in zip(x, drive, self.output_dropout(torch.ones_like(drive)), strict=True):
            h = self.f(step + linear(context, self.weight_ch))
            raw.append(h)
            dropped.append(kept * h)
            trace = Trace((vector[None], dropped[-1][None]), (vector[None], h[None]))
            context = self.decay * context + answer(trace)[0].exp()
        return Trace((x, torch.stack(dropped)), (x, torch.stack(raw))), (context,)

    def initialise(self, rules: config.Initialisation) -> None:
        size = len(self.bias)
        fill(self.weight_ih, rules.input, size)
        fill(self.weight_ch, rules.input, size)
        fill(self.bias, rules.bias, size)
