"""The echo state network (Jaeger 2001; Jaeger & Haas 2004): random recurrent weights that are never trained."""

import torch
from torch import Tensor
from torch.nn.functional import linear

from elman import config
from elman.network.cores.core import RecurrentCore, Surroundings, Trace
from elman.network.dropout import Dropout
from elman.network.state import State


class Reservoir(RecurrentCore):
    """s_t = (1 - leak) s_{t-1} + leak * tanh(W_in x_t + W s_{t-1} + b), with fixed random weights.

    There are no parameters and no gradient passes: only the readout of the states is trained, by ridge regression
    (`learning.echo_state`) or, for symbols, as the output layer of a model. W is sparse but stored densely: for the few
    thousand units of a reservoir a dense product is faster on a CPU.

    Args:
        input_size: E.
        size: H.
        radius: the spectral radius of W: the largest absolute eigenvalue.
        leak: the leaking rate, in (0, 1] (Jaeger et al. 2007).
        density: the expected share of connections in W that are not zero.
        input_scale: W_in is drawn from U(-input_scale, input_scale).
        bias_scale: b likewise.
        output_dropout: rate on the states as the output layer reads them.
        locked: one dropout mask over time.

    """

    def __init__(
        self,
        input_size: int,
        size: int,
        *,
        radius: float = 0.9,
        leak: float = 1.0,
        density: float = 0.1,
        input_scale: float = 1.0,
        bias_scale: float = 0.0,
        output_dropout: float = 0.0,
        locked: bool = True,
    ) -> None:
        super().__init__()
        self.radius, self.leak, self.density = radius, leak, density
        self.input_scale, self.bias_scale = input_scale, bias_scale
        self.output_dropout = Dropout(output_dropout, locked=locked)
        self.dims = (input_size, size)
        self.weight_ih: Tensor
        self.weight_hh: Tensor
        self.bias: Tensor
        self.register_buffer("weight_ih", torch.zeros(size, input_size))
        self.register_buffer("weight_hh", torch.zeros(size, size))
        self.register_buffer("bias", torch.zeros(size))

    def draw(self, generator: torch.Generator | None = None) -> "Reservoir":
        """Draw all weights; W is drawn from U(-1, 1), thinned out to `density`, and scaled to its spectral radius."""
        if self.weight_hh.is_meta:
            return self
        self.weight_ih.uniform_(-self.input_scale, self.input_scale, generator=generator)
        self.bias.uniform_(-self.bias_scale, self.bias_scale, generator=generator)
        self.weight_hh.uniform_(-1, 1, generator=generator)
        kept = torch.empty_like(self.weight_hh).uniform_(0, 1, generator=generator) < self.density
        self.weight_hh.mul_(kept)
        largest = torch.linalg.eigvals(self.weight_hh.double()).abs().max()
        self.weight_hh.mul_(self.radius / largest.clamp(min=1e-12))
        return self

    def begin(self, batch: int) -> State:
        """Zeros, [B, H]."""
        return (self.weight_hh.new_zeros(batch, len(self.weight_hh)),)

    @torch.no_grad()
    def run(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        """States [T, B, H] over x [T, B, E], and the state after them."""
        (s,) = state
        states = x.new_empty(len(x), *s.shape)
        weight = self.weight_hh.t()
        for drive, new in zip(linear(x, self.weight_ih, self.bias).unbind(), states.unbind(), strict=True):
            s = torch.lerp(s, torch.addmm(drive, s, weight).tanh_(), self.leak, out=new)
        return states, (s.clone(),)

    def forward(self, x: Tensor, state: State) -> tuple[Trace, State]:
        """The trace of a window x [T, B, E], and the state after it."""
        outputs, state = self.run(x.detach(), state)
        return Trace((x, self.output_dropout(outputs)), (x, outputs)), state

    def initialise(self, rules: config.Initialisation) -> None:  # noqa: ARG002
        """Draw the weights; the rules are for parameters, of which there are none."""
        self.draw()


def build(record: config.Reservoir, surroundings: Surroundings) -> Reservoir:
    """The core of a recipe."""
    return Reservoir(
        surroundings.input_size,
        record.size,
        radius=record.radius,
        leak=record.leak,
        density=record.density,
        input_scale=record.input_scale,
        bias_scale=record.bias_scale,
        output_dropout=record.output_dropout,
        locked=surroundings.locked,
    )
