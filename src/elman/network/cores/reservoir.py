"""The echo state network (Jaeger 2001; Jaeger & Haas 2004): random recurrent weights that are never trained."""

from typing import Annotated

import torch
from jaxtyping import Float
from msgspec import Meta
from torch import Generator, Tensor
from torch.nn.functional import linear

from elman import config
from elman.config.record import NonNegative, Positive, PositiveFloat, Rate
from elman.network.cores.core import RecurrentCore, Surroundings, Trace
from elman.network.dropout import Dropout
from elman.network.state import State, leaves


class Reservoir(config.Core, frozen=True, tag="reservoir"):
    """Echo state network: the recurrent weights are random and fixed, and only the output layer is trained."""

    size: Positive
    radius: PositiveFloat = 0.9
    leak: Annotated[float, Meta(gt=0, le=1)] = 1.0
    density: Annotated[float, Meta(gt=0, le=1)] = 0.1
    input_scale: PositiveFloat = 1.0
    bias_scale: NonNegative = 0.0
    output_dropout: Rate = 0.0


class ReservoirCore(RecurrentCore, of=Reservoir):
    """s_t = (1 - leak) s_{t-1} + leak * tanh(W_in x_t + W s_{t-1} + b), with fixed random weights.

    There are no parameters and no gradient passes: only the readout of the states is trained, by ridge regression
    (`learning.echo_state`) or, for symbols, as the output layer of a model. W is sparse but stored densely: for the few
    thousand units of a reservoir a dense product is faster on a CPU.
    """

    weight_ih: Tensor
    weight_hh: Tensor
    bias: Tensor

    def __init__(self, record: Reservoir, surroundings: Surroundings) -> None:
        super().__init__()
        self.record, size = record, record.size
        self.output_dropout = Dropout(record.output_dropout, locked=surroundings.locked)
        self.dims = (surroundings.input_size, size)
        self.register_buffer("weight_ih", torch.zeros(size, surroundings.input_size))
        self.register_buffer("weight_hh", torch.zeros(size, size))
        self.register_buffer("bias", torch.zeros(size))

    def draw(self, generator: Generator | None = None) -> "ReservoirCore":
        """Draw all weights; W is drawn from U(-1, 1), thinned out to `density`, and scaled to its spectral radius."""
        if self.weight_hh.is_meta:
            return self
        for weight, scale in ((self.weight_ih, self.record.input_scale), (self.bias, self.record.bias_scale)):
            weight.uniform_(-scale, scale, generator=generator)
        self.weight_hh.uniform_(-1, 1, generator=generator)
        kept = torch.empty_like(self.weight_hh).uniform_(0, 1, generator=generator) < self.record.density
        self.weight_hh.mul_(kept)
        largest = torch.linalg.eigvals(self.weight_hh.double()).abs().max()
        self.weight_hh.mul_(self.record.radius / largest.clamp(min=1e-12))
        return self

    def begin(self, batch: int) -> State:
        return (self.weight_hh.new_zeros(batch, len(self.weight_hh)),)

    @torch.no_grad()
    def run(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        """States [T, B, H] over x [T, B, E], and the state after them."""
        (s,) = leaves(state)
        states = x.new_empty(len(x), *s.shape)
        weight = self.weight_hh.t()
        for drive, new in zip(linear(x, self.weight_ih, self.bias).unbind(), states.unbind(), strict=True):
            s = torch.lerp(s, torch.addmm(drive, s, weight).tanh_(), self.record.leak, out=new)
        return states, (s.clone(),)

    def forward(self, x: Float[Tensor, "T B E"], state: State) -> tuple[Trace, State]:
        outputs, state = self.run(x.detach(), state)
        return Trace((x, self.output_dropout(outputs)), (x, outputs)), state

    def initialise(self, rules: config.Initialisation) -> None:  # noqa: ARG002
        """Draw the weights; the rules are for parameters, of which there are none."""
        self.draw()
