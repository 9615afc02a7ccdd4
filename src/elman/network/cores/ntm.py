"""The neural Turing machine: a controller that reads and writes a memory through heads (Graves et al. 2014).

The memory of a neural Turing machine: where its heads look, and how they write (Graves et al. 2014, section 3).

B sequences, H heads, a memory of N rows of W numbers, S shifts from -(S - 1) / 2 to (S - 1) / 2. Every function acts on
all heads at once.
"""

from functools import reduce
from typing import Annotated, NamedTuple

import torch
from jaxtyping import Float
from msgspec import Meta
from torch import Tensor, nn
from torch.nn.functional import linear, softplus

from elman import config
from elman.config.parts import OneOf
from elman.config.record import Positive, Rate
from elman.errors import UserError
from elman.network.cells.cell import Controller, LayerState, Weights, checked
from elman.network.cells.feed_forward import Perceptron
from elman.network.cells.lstm import LSTM
from elman.network.cores.core import RecurrentCore, Surroundings, Trace
from elman.network.cores.layer import Layer
from elman.network.dropout import Dropout
from elman.network.initialisation import fill
from elman.network.state import State, leaves

LEAST_SQUARE = 1e-8
"""Added to squared lengths, so that the cosine of a row near zero is near zero and its gradient is bounded."""

LEAST_WEIGHT = 1e-12
"""Added to weights before their logarithm is taken."""


class Heads(NamedTuple):
    """What the controller asks of the heads.

    Shapes: key [B, H, W]; strength beta >= 0, gate g from 0 to 1 and sharpness gamma >= 1, each [B, H, 1]; shift
    [B, H, S], distributions.
    """

    key: Tensor
    strength: Tensor
    gate: Tensor
    shift: Tensor
    sharpness: Tensor


def by_content(
    memory: Float[Tensor, "B N W"], key: Float[Tensor, "B H W"], strength: Float[Tensor, "B H 1"]
) -> Float[Tensor, "B H N"]:
    """w_c(i) = softmax_i(beta cos(k, M(i))) (eqs 5 and 6), where cos(u, v) = u v / sqrt((u u + eps) (v v + eps))."""
    scaled = key * (strength * _inverse_length(key))
    return (torch.bmm(scaled, memory.transpose(1, 2)) * _inverse_length(memory).transpose(1, 2)).softmax(-1)


def _inverse_length(vectors: Tensor) -> Tensor:
    return (vectors * vectors).sum(-1, keepdim=True).add(LEAST_SQUARE).rsqrt()


def shifted(weights: Float[Tensor, "B H N"], shift: Float[Tensor, "B H S"]) -> Float[Tensor, "B H N"]:
    """w~(i) = sum_j w(j) s(i - j), i - j modulo N (eq. 8)."""
    reach = shift.shape[-1] // 2
    parts = [
        weights.roll(by, -1) * share if by else weights * share
        for by, share in enumerate(shift.split(1, dim=-1), start=-reach)
    ]
    return reduce(torch.add, parts)


def sharpened(weights: Float[Tensor, "B H N"], sharpness: Float[Tensor, "B H 1"]) -> Float[Tensor, "B H N"]:
    """w(i) = w~(i)^gamma / sum_j w~(j)^gamma (eq. 9), through logarithms, so that no power underflows to a sum of 0."""
    return (weights.add(LEAST_WEIGHT).log() * sharpness).softmax(-1)


def addressed(memory: Float[Tensor, "B N W"], before: Float[Tensor, "B H N"], heads: Heads) -> Float[Tensor, "B H N"]:
    """The weights of the heads, given the weights of the step before: by content, and from there by location.

    w_g = g w_c + (1 - g) w_before (eq. 7), then shifted and sharpened. Each row [N] sums to 1.
    """
    gated = torch.lerp(before, by_content(memory, heads.key, heads.strength), heads.gate)
    return sharpened(shifted(gated, heads.shift), heads.sharpness)


def written(
    memory: Float[Tensor, "B N W"],
    weights: Float[Tensor, "B H N"],
    erase: Float[Tensor, "B H W"],
    add: Float[Tensor, "B H W"],
) -> Float[Tensor, "B N W"]:
    """M(i) prod_h (1 - w_h(i) e_h) + sum_h w_h(i) a_h (eqs 3 and 4): every head erases before any of them adds."""
    if weights.shape[1] == 1:
        kept = torch.addcmul(memory, memory, weights.transpose(1, 2) * erase, value=-1)
    else:
        kept = memory * (1 - weights.unsqueeze(-1) * erase.unsqueeze(-2)).prod(1)
    return torch.baddbmm(kept, weights.transpose(1, 2), add)


EMPTY = 1e-6
"""Every number of the memory before the first step: small and constant (Collier & Beel 2018)."""


class Interface(NamedTuple):
    """What the controller sends at a step: where all heads look, and what those that write change there.

    `erase`, from 0 to 1, and `add`, from -1 to 1, are [B, write heads, W].
    """

    heads: Heads
    erase: Tensor
    add: Tensor


class TuringMachine(config.Core, frozen=True, tag="ntm"):
    """Neural Turing machine: `size` units of the controller, `rows` of `width` numbers, shifts up to `reach`."""

    size: Positive
    controller: OneOf[Controller] = LSTM()
    rows: Positive = 128
    width: Positive = 20
    read_heads: Positive = 1
    write_heads: Positive = 1
    reach: Annotated[int, Meta(ge=0, le=1000)] = 1
    output_dropout: Rate = 0.0


class TuringMachineCore(RecurrentCore, of=TuringMachine):
    """A controller h_t, which reads [x_t; r_{t-1}], and a memory M of N rows (Graves et al. 2014, section 3).

        o_t = W_o h_t + b_o                          all that the heads receive, in one product
        w_t = addressed(M_{t-1}, w_{t-1}, o_t)       for all heads
        r_t = w_t M_{t-1}                            for the heads that read, which are the first
        M_t = written(M_{t-1}, w_t, e_t, a_t)        for the heads that write

    The functions are in `addressing`. The paper leaves open whether a step reads before or after it writes; here all
    heads see the memory before the step. The controller is a recurrent layer or tanh(W z + b). The last level of the
    trace is [h_t; r_t].

    The state is (controller's state, memory [B, N, W], weights [B, heads, N], reads [B, read heads * W]). It begins
    with a small constant memory, in which all rows are alike by content, and with all heads at row 0, so that the rows
    differ by location. After t steps no number of the memory exceeds t (times the heads that write), for a is a tanh.
    """

    def __init__(self, record: TuringMachine, surroundings: Surroundings) -> None:
        super().__init__()
        if 2 * record.reach >= record.rows:
            raise UserError(
                f"model.core.reach = {record.reach}: shifts from -{record.reach} to {record.reach} need"
                f" {2 * record.reach + 1} rows or more, and model.core.rows is {record.rows}; lower reach"
            )
        size, self.rows, self.width = record.size, record.rows, record.width
        self.heads = (record.read_heads, record.write_heads)
        below = surroundings.input_size + record.read_heads * record.width
        self.layer: nn.Linear | None = None
        self.recurrent: Layer | None = None
        if isinstance(record.controller, Perceptron):
            self.layer = nn.Linear(below, size)
        else:
            self.recurrent = Layer(checked(record.controller), below, size, biases=1)
        self.shifts = 2 * record.reach + 1
        self.interface = nn.Linear(size, sum(self._sections()))
        self.output_dropout = Dropout(record.output_dropout, locked=surroundings.locked)
        self.dims = (surroundings.input_size, size + record.read_heads * record.width)

    def begin(self, batch: int) -> State:
        """The controller's zeros, the constant memory, all heads at row 0, and zeros as if they had been read."""
        like, (readers, _) = self.interface.weight, self.heads
        controller = () if self.recurrent is None else self.recurrent.begin(batch)
        memory = like.new_full((batch, self.rows, self.width), EMPTY)
        weights = like.new_zeros(batch, sum(self.heads), self.rows)
        weights[..., 0] = 1
        return controller, memory, weights, like.new_zeros(batch, readers * self.width)

    def forward(self, x: Float[Tensor, "T B E"], state: State) -> tuple[Trace, State]:
        *before, memory, weights, reads = leaves(state)
        controller, hidden, read = tuple(before), list[Tensor](), list[Tensor]()
        recurrent = None if self.recurrent is None else self.recurrent.weights()
        for step in x:
            h, controller = self._controlled(recurrent, torch.cat([step, reads], dim=-1), controller)
            interface = self._divided(linear(h, self.interface.weight, self.interface.bias))
            weights = addressed(memory, weights, interface.heads)
            reading, writing = weights.split(self.heads, dim=1)
            reads = torch.bmm(reading, memory).flatten(1)
            memory = written(memory, writing, interface.erase, interface.add)
            hidden.append(h)
            read.append(reads)
        output = torch.cat([torch.stack(hidden), torch.stack(read)], dim=-1)
        return Trace((x, self.output_dropout(output)), (x, output)), (controller, memory, weights, reads)

    def _controlled(self, weights: Weights | None, z: Tensor, state: LayerState) -> tuple[Tensor, LayerState]:
        """The controller's output h [B, size] for z = [x_t; r_{t-1}], and its state after the step."""
        if self.recurrent is None or weights is None:
            assert self.layer is not None
            return linear(z, self.layer.weight, self.layer.bias).tanh(), ()
        state = self.recurrent.cell.step(weights, z, state)
        return state[0], state

    def _sections(self) -> tuple[int, int, int, int]:
        """How many numbers of o pass through a tanh, a sigmoid, a softplus and a softmax."""
        heads, changed = sum(self.heads), self.heads[1] * self.width
        return heads * self.width + changed, heads + changed, 2 * heads, heads * self.shifts

    def _divided(self, numbers: Tensor) -> Interface:
        """Divide o [B, _] by what becomes of it, so that each function is applied once for all heads.

        The parts are split off, not sliced: backwards, one split is one concatenation.
        """
        count, (_, writers) = sum(self.heads), self.heads
        vectors, shares, positive, shift = numbers.split(self._sections(), dim=-1)
        key, add = vectors.tanh().unflatten(-1, (-1, self.width)).split((count, writers), dim=1)
        gate, erase = shares.sigmoid().split((count, writers * self.width), dim=-1)
        strength, sharpness = softplus(positive).unsqueeze(-1).split(count, dim=1)
        shift = shift.unflatten(-1, (count, self.shifts)).softmax(-1)
        heads = Heads(key, strength, gate.unsqueeze(-1), shift, 1 + sharpness)
        return Interface(heads, erase.unflatten(-1, (writers, self.width)), add)

    def initialise(self, rules: config.Initialisation) -> None:
        if self.recurrent is not None:
            self.recurrent.initialise(rules)
        if self.layer is not None:
            fill(self.layer.weight, rules.input, len(self.layer.weight))
            fill(self.layer.bias, rules.bias, len(self.layer.weight))
        fill(self.interface.weight, rules.input, self.interface.in_features)
        fill(self.interface.bias, config.Zeros(), 1)


@torch.no_grad()
def weights_over_time(core: TuringMachineCore, x: Float[Tensor, "T B E"], state: State) -> Float[Tensor, "T B H N"]:
    """Where the heads look at each step of a window x, those that read first; each row [N] sums to 1."""
    found = []
    for step in x.unsqueeze(1):
        _, state = core(step, state)
        *_, weights, _ = leaves(state)
        found.append(weights)
    return torch.stack(found)
