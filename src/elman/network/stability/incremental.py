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
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor

from elman.network.cores.stack import StackCore, layers_of, slope_of
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
    """Over all sets of notes, whose vectors [P, E] are added to that of silence [E]: exact, each note sounds or not."""
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
    """The value of the certificate, differentiable in the weights; `slope` is that of Elman's nonlinearity."""
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
