"""The echo state network (Jaeger 2001; Jaeger & Haas 2004): a random recurrent network that is never trained."""

import torch
from torch import Tensor
from torch.nn.functional import linear

from elman.network import dropout
from elman.network.cores.core import RecurrentCore, Trace
from elman.network.state import State


class Reservoir(RecurrentCore):
    """s_t = (1 - leak) s_{t-1} + leak * tanh(W_in x_t + W s_{t-1} + b), of weights that stay as they are drawn.

    Nothing is learnt here and no gradient passes: only what reads the states learns, by `learning.ridge` or, for
    symbols, as the output layer of a model. The products are dense; a sparse W decides which units hear each other, and
    for the few thousand units that a reservoir has, a dense product is the faster one on a CPU.

    Args:
        input_size: E.
        size: H.
        radius: the spectral radius of W: the largest absolute eigenvalue.
        leak: how far a unit moves at each step, above 0 up to 1 (Jaeger et al. 2007).
        density: the share of connections in W that are not zero.
        input_scale: W_in is drawn from U(-input_scale, input_scale).
        bias_scale: b likewise.
        after: dropout rate on the states that are given on.
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
        after: float = 0.0,
        locked: bool = True,
    ) -> None:
        super().__init__()
        self.radius, self.leak, self.density, self.after = radius, leak, density, after
        self.input_scale, self.bias_scale = input_scale, bias_scale
        self.drop = dropout.locked if locked else dropout.elementwise
        self.dims = (input_size, size)
        self.weight_ih: Tensor
        self.weight_hh: Tensor
        self.bias: Tensor
        self.register_buffer("weight_ih", torch.zeros(size, input_size))
        self.register_buffer("weight_hh", torch.zeros(size, size))
        self.register_buffer("bias", torch.zeros(size))

    def draw(self, generator: torch.Generator | None = None) -> "Reservoir":
        """Draw all weights; W is drawn from U(-1, 1), thinned, and scaled to its spectral radius."""
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
        """Silence, [B, H]."""
        return (self.weight_hh.new_zeros(batch, len(self.weight_hh)),)

    @torch.no_grad()
    def run(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        """The states [T, B, H] over x [T, B, E], and the last of them as a state."""
        (s,) = state
        states = x.new_empty(len(x), *s.shape)
        weight = self.weight_hh.t()
        for drive, new in zip(linear(x, self.weight_ih, self.bias).unbind(), states.unbind(), strict=True):
            s = torch.lerp(s, torch.addmm(drive, s, weight).tanh_(), self.leak, out=new)
        return states, (s.clone(),)

    def forward(self, x: Tensor, state: State) -> tuple[Trace, State]:
        """Run over x [T, B, E]."""
        outputs, state = self.run(x.detach(), state)
        dropped = self.drop(outputs, self.after if self.training else 0.0)
        return Trace((x, dropped), (x, outputs)), state
