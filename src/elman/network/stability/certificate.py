"""Certificates: a value against a limit, what follows if it holds, and what does not; here tiers 0 and 1.

Tier 0: sigma_1(W_hh) < 2 makes h = 0 stable in a bias-free network without input (Kanai's thesis, Theorem 3.1).
Elman's network needs 1 where its nonlinearity is 0 at 0; with the sigmoid h = 0 is no fixed point: no tier 0.
Certificates are computed in float64, from a layer's weights gate by gate (`Gates`).

Tier 1: local stability at the actual fixed point, biases included; and the largest Lyapunov exponent.

With J the Jacobian of the step at the fixed point h* of a constant input, and h* = n* in a GRU:

    GRU:           J = diag(z) + diag(1 - z) K
    reset after:   K = diag(1 - n^2) [diag(r) U_n + diag(m r (1 - r)) U_r],  m = U_n h* + b'
    reset before:  K = diag(1 - n^2) U_n [diag(r) + diag(h r (1 - r)) U_r]
    LSTM:          K = o (1 - tanh^2 c) / (1 - f) * [diag(c f') U_f + diag(g i') U_i + diag(i (1 - g^2)) U_g],
                   N = diag(tanh(c) o') U_o, and the value is ||K||_2 + ||N||_2

A value below 1 keeps every eigenvalue of J within the unit circle: docs/stability.md. For an LSTM at c = 0 with equal
gates in all units this is sigma_1(U_g) < (1 - f) / (i o).

The largest Lyapunov exponent along a text (tier 3) is a diagnostic and not a proof (Benettin et al. 1980).
"""

from typing import Literal, NamedTuple

import msgspec
import torch
from torch import Tensor

from elman.errors import UserError
from elman.network.cells.cell import LayerState, Weights
from elman.network.cores.core import RecurrentCore
from elman.network.cores.layer import Layer, plain_step
from elman.network.cores.stack import StackCore, candidate_hidden, layers_of, nonlinearity, slope_of
from elman.network.spectrum import spectral_norm
from elman.network.state import leaves, map_state


class Certificate(msgspec.Struct, frozen=True, kw_only=True):
    """One condition on one layer, value < limit: what follows if it holds, and what does not follow even then.

    Tiers are 0 to 3; layer 1 is the lowest, and 0 the whole network. The value is NaN, and the condition not met, where
    what it is computed from is not finite.
    """

    tier: int
    layer: int
    name: str
    value: float
    limit: float
    proves: str
    does_not: str

    @property
    def holds(self) -> bool:
        return self.value < self.limit


PROVES = "without input and biases h = 0 is a fixed point, and states near it return to it"
DOES_NOT = "nothing of states far from 0, of inputs, or of a model with biases, whose fixed point lies elsewhere"


def origin(core: StackCore) -> list[Certificate]:
    """One certificate per layer; for an LSTM the block is U_g, and the same 2 = (1 - f) / (i o) with gates of 1/2.

    Empty for Elman's network with the sigmoid: h = 0 is no fixed point.
    """
    kinds = [kind_of(layer) for layer in layers_of(core)]
    return [
        Certificate(
            tier=0,
            layer=number,
            name="sigma_1(W_hh)",
            value=spectral_norm(candidate_hidden(layer).detach().double()).item(),
            limit=1.0 if kind == "elman" else 2.0,
            proves=PROVES,
            does_not=DOES_NOT,
        )
        for number, (kind, layer) in enumerate(zip(kinds, layers_of(core), strict=True), start=1)
        if kind != "elman" or not nonlinearity(layer, torch.zeros(())).any()
    ]


Kind = Literal["elman", "gru-before", "gru-after", "lstm"]


class Gates(NamedTuple):
    """Recurrent blocks U, input blocks W, and the two biases of each gate, by the gate's letter."""

    kind: Kind
    recurrent: dict[str, Tensor]
    input: dict[str, Tensor]
    input_bias: dict[str, Tensor]
    hidden_bias: dict[str, Tensor]

    def bias(self, gate: str) -> Tensor:
        return self.input_bias[gate] + self.hidden_bias[gate]

    def slices(self, drive: Tensor) -> dict[str, Tensor]:
        """The part [..., H] of a drive [..., G H] for each gate."""
        return dict(zip(self.recurrent, drive.chunk(len(self.recurrent), dim=-1), strict=True))


LETTERS: dict[Kind, str] = {"elman": "n", "gru-before": "rzn", "gru-after": "rzn", "lstm": "ifgo"}


def gates_of(layer: Layer, *, detached: bool = True) -> Gates:
    """The blocks of a layer, as float64 copies if `detached`, otherwise as the parameters themselves, to be trained.

    Raises UserError where the cell has peepholes or no forget gate: no certificate is known here.
    """
    kind = kind_of(layer)
    size, letters = layer.hidden_size, LETTERS[kind]

    def split(stacked: Tensor | None) -> dict[str, Tensor]:
        if stacked is None:
            stacked = layer.weight_ih.new_zeros(len(letters) * size)
        stacked = stacked.detach().double() if detached else stacked
        return dict(zip(letters, stacked.split(size), strict=True))

    return Gates(kind, split(layer.weight_hh), split(layer.weight_ih), split(layer.bias_ih), split(layer.bias_hh))


def kind_of(layer: Layer) -> Kind:
    """The equations of a layer; raises UserError where `gates_of` does."""
    if layer.cell.name in LETTERS:
        return layer.cell.name
    raise UserError(
        "stability certificates are for the cells elman (without softplus), gru, and lstm with a forget gate and no"
        " peepholes, and, all layers alike, min-gru, min-lstm, qrnn, lru, rg-lru, mlstm, mamba2 and gated deltanet"
    )


def fixed_point_certificates(core: StackCore, steps: int = 2000) -> list[Certificate]:
    """One certificate per layer, at the state that the network without input reaches from 0; NaN if it reaches none."""
    below = torch.zeros(1, core.dims[0], dtype=torch.float64, device=layers_of(core)[0].weight_ih.device)
    found = []
    for number, layer in enumerate(layers_of(core), start=1):
        state, settled = settle(layer, below, steps)
        value = contraction(layer, gates_of(layer), below, state).item() if settled else float("nan")
        found.append(
            Certificate(
                tier=1,
                layer=number,
                name="||K||_2 at the fixed point",
                value=value,
                limit=1.0,
                proves="without input the model has this fixed point, and states near it return to it exponentially",
                does_not="nothing of states far from it, of how far 'near' reaches, or of what inputs do"
                if settled
                else "no fixed point was reached from 0: it may oscillate",
            )
        )
        below = state[0] if settled else torch.full_like(state[0], float("nan"))
    return found


def double_weights(layer: Layer) -> Weights:
    """The arrays, in float64 and without DropConnect, of a layer whose cell has certificates."""
    return Weights.of({name: array.detach().double() for name, array in layer.named_parameters()})


@torch.no_grad()
def settle(layer: Layer, x: Tensor, steps: int = 2000, tolerance: float = 1e-11) -> tuple[LayerState, bool]:
    """The state after `steps` steps from 0 with a constant input x [1, I], and whether it has converged."""
    weights = double_weights(layer)
    state: LayerState = tuple(x.new_zeros(1, *shape) for shape in layer.shapes)
    for _ in range(steps):
        new = layer.cell.step(weights, x, state)
        moved = max((a - b).abs().max().item() for a, b in zip(new, state, strict=True))
        if not moved < 1e6:
            break
        state = new
        if moved < tolerance:
            return state, True
    return state, False


def contraction(layer: Layer, gates: Gates, x: Tensor, state: LayerState) -> Tensor:
    """The value of the certificate at a fixed point of an input x [1, I], differentiable in the weights of `gates`."""
    first, *coupled = blocks(layer, gates, x, state)
    value = spectral_norm(first)
    return value + spectral_norm(coupled[0]) if coupled else value


def blocks(layer: Layer, gates: Gates, x: Tensor, state: LayerState) -> tuple[Tensor, ...]:
    """K, and N for an LSTM: see the head of this file."""
    h = state[0][0].to(x)
    u, drive = gates.recurrent, {gate: (x @ w.t())[0] + gates.input_bias[gate] for gate, w in gates.input.items()}
    inner = {gate: drive[gate] + u[gate] @ h + gates.hidden_bias[gate] for gate in u}
    if gates.kind == "elman":
        return (slope_of(layer) * u["n"],)
    if gates.kind == "lstm":
        return _lstm_blocks(u, inner, state[1][0].to(x))
    r = inner["r"].sigmoid()
    turn = (r * (1 - r)).unsqueeze(1)
    if gates.kind == "gru-after":
        m = u["n"] @ h + gates.hidden_bias["n"]
        n = (drive["n"] + r * m).tanh()
        return ((1 - n**2).unsqueeze(1) * (r.unsqueeze(1) * u["n"] + m.unsqueeze(1) * turn * u["r"]),)
    n = (drive["n"] + gates.hidden_bias["n"] + u["n"] @ (r * h)).tanh()
    return ((1 - n**2).unsqueeze(1) * (u["n"] @ (r.diag() + h.unsqueeze(1) * turn * u["r"])),)


def _lstm_blocks(u: dict[str, Tensor], inner: dict[str, Tensor], c: Tensor) -> tuple[Tensor, Tensor]:
    i, f, o = (inner[gate].sigmoid() for gate in "ifo")
    g = inner["g"].tanh()
    into = (
        (c * f * (1 - f)).unsqueeze(1) * u["f"]
        + (g * i * (1 - i)).unsqueeze(1) * u["i"]
        + (i * (1 - g**2)).unsqueeze(1) * u["g"]
    )
    out = o * (1 - c.tanh() ** 2) / (1 - f)
    return out.unsqueeze(1) * into, (c.tanh() * o * (1 - o)).unsqueeze(1) * u["o"]


@torch.no_grad()
def largest_exponent(core: RecurrentCore, vectors: Tensor, warm_up: int = 50, seed: int = 0) -> float:
    """Growth of a small difference between states in nats per step, along encoded words [T, B, E], float64.

    It follows random tangent vectors; the first `warm_up` steps, in which they align, are not counted. Minus infinity
    where a difference became 0, as where no unit of a ReLU is on.
    """
    advance, columns = plain_step(core), vectors.shape[1]
    state = map_state(Tensor.double, core.begin(columns))
    generator = torch.Generator().manual_seed(seed)
    tangent = map_state(lambda leaf: torch.randn(leaf.shape, generator=generator, dtype=leaf.dtype).to(leaf), state)
    growth = vectors.new_zeros(columns)
    for time, x in enumerate(vectors):
        state, tangent = torch.func.jvp(lambda at, x=x: advance(x, at), (state,), (tangent,))[:2]
        size = torch.stack([leaf.flatten(1).square().sum(1) for leaf in leaves(tangent)]).sum(0).sqrt()
        by = size.clamp(min=1e-300)  # a difference that is gone stays 0
        tangent = map_state(lambda leaf, by=by: leaf / by.view(-1, *[1] * (leaf.ndim - 1)), tangent)
        if time >= warm_up:
            growth += size.log()
    return (growth / max(1, len(vectors) - warm_up)).mean().item()


def lyapunov(core: RecurrentCore, vectors: Tensor) -> Certificate:
    return Certificate(
        tier=3,
        layer=0,
        name="largest Lyapunov exponent, nats per step",
        value=largest_exponent(core, vectors),
        limit=0.0,
        proves="nothing: on this text, neighbouring states came together (value below 0) or moved apart (above 0)",
        does_not="it is an average over one text and one start; other words may behave otherwise",
    )
