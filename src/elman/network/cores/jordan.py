"""Jordan's network: what the output layer said, not what the hidden layer was, is fed back (Jordan 1986)."""

from collections.abc import Callable
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from elman.network import dropout
from elman.network.cells.elman import NONLINEARITIES
from elman.network.cores.core import RecurrentCore, Trace
from elman.network.state import State

Answer = Callable[[Trace], Tensor]
"""The log-probabilities [1, B, V] that the output layer gives for the trace of one step."""


class Jordan(RecurrentCore):
    """h_t = f(W_x x_t + W_c c_t + b), with the context c_t = decay * c_{t-1} + y_{t-1}.

    "output", the free-running form: y is the distribution of the model's own output layer, V wide; `listen` says where
    it comes from. "target", the teacher-forced form: y_{t-1} is the true symbol in its place, which for next-symbol
    prediction is what is read at t: its vector x_t. W_c times a one-hot vector is a column, so nothing is lost by
    reading the vector. With decay = 0 the forced form therefore knows one symbol only.

    Args:
        input_size: E.
        hidden_size: H.
        num_outputs: V; of no use when targets are fed back.
        feedback: what is fed back.
        nonlinearity: f.
        decay: how much of the context stays, Jordan's connections from the state units to themselves.
        after: dropout rate on the output.
        locked: one dropout mask over time; the free-running form draws its mask once a window.

    """

    answer: Answer | None = None

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_outputs: int,
        *,
        feedback: Literal["output", "target"] = "output",
        nonlinearity: str = "tanh",
        decay: float = 0.0,
        after: float = 0.0,
        locked: bool = True,
    ) -> None:
        super().__init__()
        self.feedback, self.decay, self.after, self.locked = feedback, decay, after, locked
        self.f = NONLINEARITIES[nonlinearity]
        self.context_size = num_outputs if feedback == "output" else input_size
        self.weight_ih = nn.Parameter(torch.empty(hidden_size, input_size))
        self.weight_ch = nn.Parameter(torch.empty(hidden_size, self.context_size))
        self.bias = nn.Parameter(torch.empty(hidden_size))
        self.dims = (input_size, hidden_size)

    def listen(self, answer: Answer) -> None:
        """Take the output from here on from `answer`, a bound method of the output layer of the same model."""
        self.answer = answer

    def begin(self, batch: int) -> State:
        """A context of zeros, [B, V] or [B, E]: there is no output yet."""
        return (self.bias.new_zeros(batch, self.context_size),)

    def forward(self, x: Tensor, state: State) -> tuple[Trace, State]:
        """Run over x [T, B, E]."""
        drive = linear(x, self.weight_ih, self.bias)
        return self._forced(x, drive, state) if self.feedback == "target" else self._free(x, drive, state)

    def _forced(self, x: Tensor, drive: Tensor, state: State) -> tuple[Trace, State]:
        (context,) = state
        contexts = x
        if self.decay:
            contexts = torch.stack([context := self.decay * context + target for target in x])
        outputs = self.f(drive + linear(contexts, self.weight_ch))
        drop = dropout.locked if self.locked else dropout.elementwise
        return Trace((x, drop(outputs, self._rate)), (x, outputs)), (contexts[-1],)

    def _free(self, x: Tensor, drive: Tensor, state: State) -> tuple[Trace, State]:
        assert self.answer is not None, "listen to an output layer first"
        (context,) = state
        raw, dropped = [], []
        mask = dropout.elementwise(torch.ones_like(drive if not self.locked else drive[:1]), self._rate)
        for vector, step, kept in zip(x, drive, mask.expand_as(drive), strict=True):
            h = self.f(step + linear(context, self.weight_ch))
            raw.append(h)
            dropped.append(kept * h)
            trace = Trace((vector[None], dropped[-1][None]), (vector[None], h[None]))
            context = self.decay * context + self.answer(trace)[0].exp()
        return Trace((x, torch.stack(dropped)), (x, torch.stack(raw))), (context,)

    @property
    def _rate(self) -> float:
        return self.after if self.training else 0.0
