"""Tier 1: local stability at the actual fixed point, biases included.

With J the Jacobian of the step at the fixed point h* of a constant input, and h* = n* in a GRU:

    GRU:           J = diag(z) + diag(1 - z) K
    reset after:   K = diag(1 - n^2) [diag(r) U_n + diag(m r (1 - r)) U_r],  m = U_n h* + b'
    reset before:  K = diag(1 - n^2) U_n [diag(r) + diag(h r (1 - r)) U_r]
    LSTM:          K = o (1 - tanh^2 c) / (1 - f) * [diag(c f') U_f + diag(g i') U_i + diag(i (1 - g^2)) U_g],
                   N = diag(tanh(c) o') U_o, and the value is ||K||_2 + ||N||_2

A value below 1 keeps every eigenvalue of J within the unit circle: docs/stability.md. For an LSTM at c = 0 with equal
gates in all units this is sigma_1(U_g) < (1 - f) / (i o).
"""

import torch
from torch import Tensor

from elman.cells.cell import LayerState, Weights
from elman.cores.blocks import layers_of
from elman.cores.stack import Layer, Stack
from elman.stability.certificate import Certificate
from elman.stability.parts import Gates, gates_of, slope_of

PROVES = "without input the model has this fixed point, and states near it return to it exponentially"
DOES_NOT = "nothing of states far from it, of how far 'near' reaches, or of what inputs do"


def fixed_point_certificates(core: Stack, steps: int = 2000) -> list[Certificate]:
    """One certificate a layer, at the state that the silent network comes to from 0; NaN where it comes to none."""
    below = torch.zeros(1, core.dims[0], dtype=torch.float64, device=layers_of(core)[0].weight_hh.device)
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
                proves=PROVES,
                does_not=DOES_NOT if settled else "no fixed point was reached from 0: it may oscillate",
            )
        )
        below = state[0] if settled else torch.full_like(state[0], float("nan"))
    return found


def double_weights(layer: Layer) -> Weights:
    """The layer's arrays in float64, without DropConnect."""
    arrays = (layer.weight_ih, layer.weight_hh, layer.bias_ih, layer.bias_hh, layer.peephole)
    extra = None if layer.extra is None else tuple(matrix.detach().double() for matrix in layer.extra)
    double = Weights(*(None if array is None else array.detach().double() for array in arrays))  # type: ignore[arg-type]
    return double._replace(extra=extra)


@torch.no_grad()
def settle(layer: Layer, x: Tensor, steps: int = 2000, tolerance: float = 1e-11) -> tuple[LayerState, bool]:
    """The state that a constant input x [1, I] leads to from 0 in so many steps, and whether it has settled."""
    weights = double_weights(layer)
    state: LayerState = tuple(x.new_zeros(1, layer.hidden_size) for _ in range(layer.cell.slots))
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
    """The value of the certificate at a fixed point, differentiable in the weights when `gates` are.

    Args:
        layer: for the nonlinearity of Elman's network.
        gates: its weights.
        x: the constant input [1, I].
        state: the fixed point.

    """
    first, *coupled = blocks(layer, gates, x, state)
    value = torch.linalg.matrix_norm(first, 2)
    return value + torch.linalg.matrix_norm(coupled[0], 2) if coupled else value


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
