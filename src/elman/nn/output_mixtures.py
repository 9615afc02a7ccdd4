"""Mixtures: outputs with several contexts per position.

Arguments as in `elman.nn.outputs`, and of all mixtures:

    components      K, the number of contexts
    width           of the contexts, and so of `weight` [V, width]
    dropout         of the contexts, one mask held over time; `shared_mask`: one for all of their units
    linear          contexts without tanh
    prior           "softmax", or "same": the weights of the contexts by the g of `activation`
    batch_first     h is [B, T, D]; the mask alone depends on it
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import torch
from torch import nn

from elman.config.initialisation import Initialisation
from elman.config.parts import Activation
from elman.network.output.contexts import MixtureContexts
from elman.network.output.layer import OutputLayer
from elman.nn.output import Output
from elman.nn.shared import Birth, Device


class MixtureOfSoftmaxes(Output):
    """p(y) = sum_k pi_k p(y | tanh(W_k h + b_k)), pi = softmax(W_pi h) (Yang et al. 2018, section 3.2)."""

    def __init__(
        self,
        size: int,
        vocabulary: int,
        components: int = 15,
        width: int = 280,
        *,
        weight: nn.Parameter | None = None,
        activation: Activation = "softmax",
        dropout: float = 0.0,
        shared_mask: bool = False,
        linear: bool = False,
        prior: Literal["softmax", "same"] = "softmax",
        bias: bool = True,
        batch_first: bool = False,
        counts: Sequence[int] | None = None,
        initialisation: Initialisation | None = None,
        device: Device = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        birth = Birth(weight, initialisation, device, dtype, counts)
        contexts = mixture({0: components}, width, dropout, shared_mask, linear, prior)
        layer = birth.layer([size], vocabulary, {"kind": "flat", "bias": bias}, activation, contexts)
        super().__init__(layer, vocabulary, batch_first=batch_first, last_alone=True)


class DirectOutputConnection(Output):
    """A mixture with contexts from several levels, weighted by the last one (Takase et al. 2018, eqs 7-11).

    Args:
        sizes: widths of the levels, the embedding's first
        components: by level the number of its contexts, such as {2: 5, 3: 15}

    It reads the levels of a core, `core(x, state, levels=True)`.
    """

    def __init__(
        self,
        sizes: Sequence[int],
        vocabulary: int,
        components: Mapping[int, int],
        width: int = 280,
        *,
        weight: nn.Parameter | None = None,
        activation: Activation = "softmax",
        dropout: float = 0.0,
        shared_mask: bool = False,
        linear: bool = False,
        prior: Literal["softmax", "same"] = "softmax",
        bias: bool = True,
        batch_first: bool = False,
        counts: Sequence[int] | None = None,
        initialisation: Initialisation | None = None,
        device: Device = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        widths, heads = levels(sizes, components)
        birth = Birth(weight, initialisation, device, dtype, counts)
        contexts = mixture(heads, width, dropout, shared_mask, linear, prior)
        layer = birth.layer(widths, vocabulary, {"kind": "flat", "bias": bias}, activation, contexts)
        super().__init__(layer, vocabulary, batch_first=batch_first)


class Mixture(Output):
    """A mixture, or a direct output connection, of any other output: of an adaptive softmax, of NADE.

    Args:
        size: D, or the widths of the levels where `components` names levels
        output: whose arrays it takes over; what it reads are the contexts
    """

    def __init__(
        self,
        size: int | Sequence[int],
        output: Output,
        components: int | Mapping[int, int] = 15,
        *,
        dropout: float = 0.0,
        shared_mask: bool = False,
        linear: bool = False,
        prior: Literal["softmax", "same"] = "softmax",
        batch_first: bool = False,
        initialisation: Initialisation | None = None,
    ) -> None:
        sizes, heads = levels(size, components)
        if isinstance(output.layer.contexts, MixtureContexts):
            raise ValueError(f"{type(output).__name__} is a mixture itself; give an output with one context")
        like = next(output.parameters())
        birth = Birth(None, initialisation, like.device, like.dtype)
        contexts = mixture(heads, output.width, dropout, shared_mask, linear, prior)
        activation = getattr(output.choice, "activation", "softmax")
        read = birth.layer(sizes, 1, {"kind": "flat"}, activation, contexts).contexts
        layer = OutputLayer(read, output.choice)
        super().__init__(layer, output.num_outputs, batch_first=batch_first, last_alone=isinstance(size, int))


def levels(size: int | Sequence[int], components: int | Mapping[int, int]) -> tuple[list[int], dict[int, int]]:
    """The widths of the levels, and how many contexts each has; raises ValueError where there is no such level."""
    sizes = [size] if isinstance(size, int) else list(size)
    heads = {len(sizes) - 1: components} if isinstance(components, int) else dict(components)
    if not heads:
        raise ValueError("components is empty; give the number of contexts of a level, such as {3: 15}")
    if wrong := [level for level in heads if not 0 <= level < len(sizes)]:
        raise ValueError(f"components names level {wrong[0]}; the levels of sizes are 0 to {len(sizes) - 1}")
    return sizes, heads


def mixture(
    heads: Mapping[int, int], width: int, dropout: float, shared_mask: bool, linear: bool, prior: str
) -> dict[str, Any]:
    """The record of a mixture's contexts."""
    sizes = {"kind": "mixture", "heads": dict(heads), "size": width}
    return sizes | {"dropout": dropout, "shared_mask": shared_mask, "linear": linear, "prior": prior}
