"""Tier 2: global incremental input-to-state stability, in the infinity norm, for any words.

After Bonassi, Farina & Scattolini 2021 (GRU) and Terzi, Bonassi, Farina & Scattolini 2021 (LSTM), unit by unit
instead of by norms of whole blocks, and with the exact range of the input's share in each gate: the vocabulary is
finite. With intervals [z-, z+] of the gates over all words and all states of the invariant set, and |.| row sums of
absolute values:

    GRU   lambda_j = max over z in {z-, z+} of z_j + (1 - z_j) A_j, plus |U_z|_j / 4 * (1 + phi_j),  |n_j| <= phi_j
          A_j = r+_j |U_n|_j + |U_r|_j / 4 * (|U_n|_j + |b'_j|)                     reset after the product
          A_j = sum_k |U_n,jk| (r+_k + |U_r|_k / 4)                                 reset before
    LSTM  [ |dc'| ; |dh'| ] <= M [ |dc| ; |dh| ],  M 2 x 2, and the value is its spectral radius
    Elman slope * |U|

Below 1, any two states fed the same words come together at that rate; docs/stability.md derives it.

Tier 2 for recurrences that are linear in their state: the largest factor by which a step multiplies it.

Where a step is S' = A(x) S + b(x), two states fed the same inputs differ by A(x_T) ... A(x_1) (S - S~): each factor is
below 1 in norm whatever the weights are (sigm, exp(-.), the modulus of an eigenvalue), without a condition like
sigma_1(W_hh) < 2 of tier 0. What the inputs decide is how far below. The value is the supremum of the norm of A over
the inputs of the layer: over all words for the lowest layer, and over all vectors that a norm can give for the layers
of residual blocks, since |x_j| <= sqrt(n) |scale_j| + |shift_j| behind one.
"""

import copy
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor, nn

from elman.network.cores.layer import Layer
from elman.network.cores.residual import ResidualCore, convolutions_of
from elman.network.cores.stack import Layers, StackCore, layers_of, slope_of
from elman.network.stability.certificate import Certificate, Gates, gates_of

INCREMENTAL = partial(
    Certificate,
    tier=2,
    name="contraction in the infinity norm",
    limit=1.0,
    proves="any two states fed the same words, whatever words these are, come together exponentially; the state"
    " forgets how it began, and the gradient with respect to an early state cannot grow",
    does_not="it is sufficient only: most trained models fail it and are stable all the same; it says nothing of"
    " quality",
)


class Range(NamedTuple):
    """The least and the greatest input share of each gate's pre-activation [G H], biases of the input included."""

    low: Tensor
    high: Tensor


def exact_range(words: Tensor, weight: Tensor, bias: Tensor, chunk: int = 4096) -> Range:
    """Over all encoded words [V, E]: exact for the lowest layer, since the vocabulary is finite."""
    shares = [part @ weight.t() for part in words.split(chunk)]
    low = torch.stack([share.amin(0) for share in shares]).amin(0)
    high = torch.stack([share.amax(0) for share in shares]).amax(0)
    return Range(low + bias, high + bias)


def frames_range(silence: Tensor, notes: Tensor, weight: Tensor, bias: Tensor) -> Range:
    """Over all sets of notes, whose vectors [P, E] are added to silence [E]: exact, as each note sounds or not."""
    shares, rest = notes @ weight.t(), weight @ silence + bias
    return Range(rest + shares.clamp(max=0).sum(0), rest + shares.clamp(min=0).sum(0))


def box_range(largest: Tensor, weight: Tensor, bias: Tensor) -> Range:
    """Over all inputs with |x_k| <= largest_k, [I]: the inputs of a higher layer, and a quick bound for the lowest."""
    reach = weight.abs() @ largest
    return Range(bias - reach, bias + reach)


class Contraction(NamedTuple):
    """The value, a rate of contraction if below 1, and the largest possible |h_j|, [H]."""

    rate: Tensor
    largest: Tensor


def contraction(gates: Gates, reach: Range, slope: float = 1.0) -> Contraction:
    """The value of the certificate, differentiable in the weights; `slope` is the greatest of Elman's nonlinearity."""
    low, high = gates.slices(reach.low), gates.slices(reach.high)
    rows = {gate: block.abs().sum(1) for gate, block in gates.recurrent.items()}
    if gates.kind == "elman":
        return Contraction(slope * rows["n"].max(), torch.ones_like(rows["n"]))
    if gates.kind == "lstm":
        return _lstm(gates, low, high, rows)
    return _gru(gates, low, high, rows)


def _gru(gates: Gates, low: dict[str, Tensor], high: dict[str, Tensor], rows: dict[str, Tensor]) -> Contraction:
    bias = gates.hidden_bias
    z_low = (low["z"] + bias["z"] - rows["z"]).sigmoid()
    z_high = (high["z"] + bias["z"] + rows["z"]).sigmoid()
    r_high = (high["r"] + bias["r"] + rows["r"]).sigmoid()
    size = gates.recurrent["n"].abs()
    if gates.kind == "gru-after":
        driven = torch.maximum(low["n"].abs(), high["n"].abs())
        inner = rows["n"] + bias["n"].abs()
        phi = (driven + r_high * inner).tanh()
        candidate = r_high * rows["n"] + rows["r"] / 4 * inner
    else:
        driven = torch.maximum((low["n"] + bias["n"]).abs(), (high["n"] + bias["n"]).abs())
        phi = (driven + size @ r_high).tanh()
        candidate = size @ (r_high + rows["r"] / 4)
    kept = torch.maximum(z_low + (1 - z_low) * candidate, z_high + (1 - z_high) * candidate)
    return Contraction((kept + rows["z"] / 4 * (1 + phi)).max(), torch.ones_like(phi))


def _lstm(gates: Gates, low: dict[str, Tensor], high: dict[str, Tensor], rows: dict[str, Tensor]) -> Contraction:
    bias = gates.hidden_bias
    i, f, o = ((high[gate] + bias[gate] + rows[gate]).sigmoid() for gate in "ifo")
    driven = torch.maximum((low["g"] + bias["g"]).abs(), (high["g"] + bias["g"]).abs())
    g = (driven + rows["g"]).tanh()
    c = i * g / (1 - f)
    out = c.tanh()
    from_h = (rows["f"] / 4 * c + i * rows["g"] + rows["i"] / 4 * g).max()
    # Block norms: (c, h) of all units at once, so that M is 2 x 2; its spectral radius in closed form.
    a, b = f.max(), from_h
    c_, d = o.max() * f.max(), o.max() * from_h + (out * rows["o"] / 4).max()
    half = (a + d) / 2
    return Contraction(half + ((a - d) ** 2 / 4 + b * c_).sqrt(), o * out)


def incremental(core: StackCore, lowest: Callable[[Tensor, Tensor], Range]) -> list[Certificate]:
    """One certificate per layer; if all of them hold, the stack as a whole has the property (cascade).

    `lowest` maps weight [G H, E] and bias [G H] of the lowest layer to the range of its input's shares.
    """
    found, largest = [], None
    for number, layer in enumerate(layers_of(core), start=1):
        gates = gates_of(layer)
        weight = torch.cat(list(gates.input.values()))
        bias = torch.cat(list(gates.input_bias.values()))
        reach = lowest(weight, bias) if largest is None else box_range(largest, weight, bias)
        rate, largest = contraction(gates, reach, slope_of(layer) if gates.kind == "elman" else 1.0)
        found.append(INCREMENTAL(layer=number, value=rate.item()))
    return found


RETENTION = partial(
    Certificate,
    tier=2,
    name="largest factor of the state",
    limit=1.0,
    proves="any two states of the layer fed the same inputs come together by at least this factor a step, wherever they"
    " begin; gradients with respect to an early state shrink as fast",
    does_not="nothing of how large states and outputs are, of the layers above, which read the difference until it has"
    " faded, or of what is learnt; of a layer of a stack above the lowest it gives no rate (1)",
)

Lowest = Callable[[Tensor, Tensor], Range]
"""(weight [R, I], bias [R]) -> the range of W x + b over the inputs of a layer."""


def linear_cells(core: Layers) -> bool:
    """Whether every layer is linear in its state, with factors that are known."""
    return all(layer.cell.linear for layer in layers_of(core))


@torch.no_grad()
def retained(core: Layers, lowest: Lowest | None) -> list[Certificate]:
    """One certificate per layer; `lowest` is the range over what the lowest layer reads, None: it is not known.

    Layers of residual blocks whose range is not given, or behind a convolution, read whatever their norm can give.
    """
    ranges = [lowest, *[None] * (len(core.layers) - 1)]
    if isinstance(core, ResidualCore) and (convolutions := convolutions_of(core)):
        pairs = zip(convolutions, core.norms, strict=True)
        ranges = [partial(box_range, each.largest(largest_of(norm))) for each, norm in pairs]
    elif isinstance(core, ResidualCore):
        bounded = [partial(box_range, largest_of(norm)) for norm in core.norms]
        ranges = [known or bound for known, bound in zip(ranges, bounded, strict=True)]
    return [
        RETENTION(layer=number, value=largest_factor(layer, input_range))
        for number, (layer, input_range) in enumerate(zip(layers_of(core), ranges, strict=True), start=1)
    ]


def stream_of(core: Layers, vectors: Tensor) -> Tensor:
    """What the lowest layer reads of encoded vectors [..., E], float64."""
    if not isinstance(core, ResidualCore):
        return vectors
    stream = vectors if core.into is None else vectors @ core.into.detach().double().t()
    return copy.deepcopy(core.norms[0]).double()(stream)


def largest_of(norm: nn.Module) -> Tensor:
    """The largest |x_j| behind a norm, whatever it reads, [n], float64."""
    scale, *shift = (parameter.detach().double().abs() for parameter in norm.parameters())
    return len(scale) ** 0.5 * scale + (shift[0] if shift else 0.0)


def largest_factor(layer: Layer, input_range: Lowest | None) -> float:
    """The value of the certificate; 1 where the range of the inputs is not known, but matters."""
    found = layer.cell.retention(copy.deepcopy(layer).double().eval().weights())
    assert found is not None
    gates, factor = found
    nothing = layer.weight_ih.new_zeros(0, dtype=torch.float64)
    if not gates:
        return factor(nothing, nothing).max().item()
    if input_range is None:
        return 1.0
    low, high = input_range(*gates[0])
    for gate in gates[1:]:  # of inputs before, which the first steps of a sequence are without
        lowest, highest = input_range(*gate)
        low, high = low + lowest.clamp(max=0), high + highest.clamp(min=0)
    return factor(low, high).max().item()
