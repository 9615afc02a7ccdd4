"""Output layers by keyword, each initialised when it is made; `elman.nn.output` describes their common protocol.

D is the width of what an output reads, V the number of symbols, P that of notes or values. Arguments of all:

    activation      g of p(y) = g(z_y) / sum_v g(z_v): "softmax", "sigsoftmax" and so on (docs/outputs.md)
    weight          the matrix [V, D] of an embedding, to be shared (Press & Wolf 2017; Inan et al. 2017); None: its own
    bias            whether symbols have biases
    counts          occurrences of the symbols, falling, as they are numbered; None: by Zipf's law
    initialisation  how arrays begin; None: matrices in U(-0.1, 0.1), latent layers as those of torch, biases at 0
    device, dtype   of the arrays; with `weight` those of it

A ValueError names an argument that is out of its range.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, Literal, NamedTuple, TypeAlias

import msgspec
import torch
from torch import nn

from elman import config
from elman.config import plugins
from elman.config.initialisation import Initialisation
from elman.config.parts import Activation, convert
from elman.network.encoders.encoder import Inputs
from elman.network.encoders.lookup import Lookup, LookupEncoder
from elman.network.output.choice import Conditional, Surroundings
from elman.network.output.contexts import build_contexts
from elman.network.output.layer import OutputLayer
from elman.nn.output import Output

Device: TypeAlias = torch.device | str | None


class Birth(NamedTuple):
    """How the arrays of an output begin: the arguments that all of them have."""

    weight: nn.Parameter | None = None
    initialisation: Initialisation | None = None
    device: Device = None
    dtype: torch.dtype | None = None
    counts: Sequence[int] | None = None

    def layer(
        self,
        sizes: Sequence[int],
        num_outputs: int,
        choice: dict[str, Any],
        activation: Activation = "softmax",
        contexts: dict[str, Any] | None = None,
    ) -> OutputLayer:
        """The layer of the records `choice` and `contexts`, over levels of widths `sizes`, initialised."""
        tied = {} if self.weight is None else {"tied": True}
        parts = {"activation": activation, "choice": choice | tied, "contexts": contexts or {"kind": "single"}}
        try:
            record = convert(parts, config.Output)
        except msgspec.ValidationError as error:
            raise ValueError(f"{choice['kind']}: {error}") from None
        device = torch.get_default_device() if self.device is None else torch.device(self.device)
        with device if self.weight is None else self.weight.device:
            read = build_contexts(record, sizes)
            surroundings = Surroundings(
                read.size, num_outputs, activation, self._tied(read.size, num_outputs), self.counts
            )
            layer = OutputLayer(read, plugins.built(record.choice, Conditional, surroundings))
        dtype = self.dtype if self.weight is None else self.weight.dtype
        for parameter in layer.parameters():
            if parameter is not self.weight:
                parameter.data = parameter.data.to(dtype)
        layer.initialise(self.initialisation or Initialisation(), [] if self.weight is None else [self.weight])
        return layer

    def _tied(self, size: int, num_outputs: int) -> LookupEncoder | None:
        """An encoder of word vectors that has the shared matrix."""
        if self.weight is None:
            return None
        if self.weight.shape != (num_outputs, size):
            raise ValueError(
                f"weight has shape {list(self.weight.shape)}, and {num_outputs} symbols after contexts of width {size}"
                f" need {[num_outputs, size]}; choose the width of the vectors, or leave weight out"
            )
        with torch.device("meta"):
            encoder = Lookup(size=size).build(Inputs(num_outputs))
        encoder.weight = self.weight
        return encoder


class Softmax(Output):
    """p(y) = g(z_y) / sum_v g(z_v), z = W h + b; `shift` adds one learned scalar to every z (thesis, theorem 4.4)."""

    def __init__(
        self,
        size: int,
        vocabulary: int,
        *,
        activation: Activation = "softmax",
        weight: nn.Parameter | None = None,
        bias: bool = True,
        shift: bool = False,
        initialisation: Initialisation | None = None,
        device: Device = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        birth = Birth(weight, initialisation, device, dtype)
        choice = {"kind": "flat", "bias": bias, "shift": shift}
        super().__init__(birth.layer([size], vocabulary, choice, activation), vocabulary)


class Sigsoftmax(Output):
    """`Softmax` with g(z) = exp(z) sigm(z) (Kanai et al. 2018, section 3)."""

    def __init__(
        self,
        size: int,
        vocabulary: int,
        *,
        weight: nn.Parameter | None = None,
        bias: bool = True,
        shift: bool = False,
        initialisation: Initialisation | None = None,
        device: Device = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        birth = Birth(weight, initialisation, device, dtype)
        choice = {"kind": "flat", "bias": bias, "shift": shift}
        super().__init__(birth.layer([size], vocabulary, choice, "sigsoftmax"), vocabulary)


class MixtureOfSoftmaxes(Output):
    """p(y) = sum_k pi_k p(y | tanh(W_k h + b_k)), pi = softmax(W_pi h) (Yang et al. 2018, section 3.2).

    Args:
        components: K
        width: of the K contexts, and so of `weight` [V, width]
        dropout: of the contexts, one mask held over time; `shared_mask`: one for all of their units
        linear: contexts without tanh
        prior: "softmax", or "same": pi by the g of `activation`
        batch_first: h is [B, T, D], for the mask alone
    """

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
        initialisation: Initialisation | None = None,
        device: Device = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        birth = Birth(weight, initialisation, device, dtype)
        contexts = mixture({0: components}, width, dropout, shared_mask, linear, prior)
        layer = birth.layer([size], vocabulary, {"kind": "flat", "bias": bias}, activation, contexts)
        super().__init__(layer, vocabulary, batch_first=batch_first, last_alone=True)


class DirectOutputConnection(Output):
    """A mixture with contexts from several levels, weighted by the last one (Takase et al. 2018, eqs 7-11).

    Args:
        sizes: widths of the levels, that of the embedding first
        components: by level the number of its contexts, such as {2: 5, 3: 15}

    The others as in `MixtureOfSoftmaxes`. It reads the levels of a core, `core(x, state, levels=True)`.
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
        initialisation: Initialisation | None = None,
        device: Device = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        if wrong := [level for level in components if not 0 <= level < len(sizes)] or (not components and [None]):
            raise ValueError(f"components names level {wrong[0]}; the levels of sizes are 0 to {len(sizes) - 1}")
        birth = Birth(weight, initialisation, device, dtype)
        contexts = mixture(components, width, dropout, shared_mask, linear, prior)
        layer = birth.layer(list(sizes), vocabulary, {"kind": "flat", "bias": bias}, activation, contexts)
        super().__init__(layer, vocabulary, batch_first=batch_first)


class Mixture(Output):
    """`MixtureOfSoftmaxes` of any other output: of an adaptive softmax, of NADE.

    Args:
        output: whose arrays it takes over; what it reads are the contexts
    """

    def __init__(
        self,
        size: int,
        output: Output,
        components: int = 15,
        *,
        dropout: float = 0.0,
        shared_mask: bool = False,
        linear: bool = False,
        prior: Literal["softmax", "same"] = "softmax",
        batch_first: bool = False,
        initialisation: Initialisation | None = None,
    ) -> None:
        like = next(output.parameters())
        birth = Birth(None, initialisation, like.device, like.dtype)
        contexts = mixture({0: components}, output.width, dropout, shared_mask, linear, prior)
        activation = getattr(output.choice, "activation", "softmax")
        read = birth.layer([size], 1, {"kind": "flat"}, activation, contexts).contexts
        super().__init__(OutputLayer(read, output.choice), output.num_outputs, batch_first=batch_first, last_alone=True)


class AdaptiveSoftmax(Output):
    """Frequent symbols in a head, the others in narrower tails (Grave et al. 2017, section 4).

    Args:
        cutoffs: the symbol after the last of the head, and of every tail but the last; None: the cheapest for one tail
        div_value: how much narrower each tail is than the part before it; None: 4, with `weight` 1
    """

    def __init__(
        self,
        size: int,
        vocabulary: int,
        cutoffs: Sequence[int] | None = None,
        *,
        div_value: float | None = None,
        activation: Activation = "softmax",
        weight: nn.Parameter | None = None,
        bias: bool = False,
        counts: Sequence[int] | None = None,
        initialisation: Initialisation | None = None,
        device: Device = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        birth = Birth(weight, initialisation, device, dtype, counts)
        choice = {"kind": "adaptive", "cutoffs": cutoffs, "div_value": div_value, "bias": bias}
        super().__init__(birth.layer([size], vocabulary, choice, activation), vocabulary)


class HierarchicalSoftmax(Output):
    """p(y) = p(cluster of y) p(y | cluster) (Goodman 2001; Mikolov et al. 2011, section 4).

    Args:
        clusters: their number; None: ceil(sqrt(V))
        assignment: of symbols to clusters, by "frequency" or at "random"
    """

    def __init__(
        self,
        size: int,
        vocabulary: int,
        clusters: int | None = None,
        *,
        assignment: Literal["frequency", "random"] = "frequency",
        activation: Activation = "softmax",
        weight: nn.Parameter | None = None,
        bias: bool = True,
        counts: Sequence[int] | None = None,
        initialisation: Initialisation | None = None,
        device: Device = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        birth = Birth(weight, initialisation, device, dtype, counts)
        choice = {"kind": "tree", "clusters": clusters, "assignment": assignment, "bias": bias}
        super().__init__(birth.layer([size], vocabulary, choice, activation), vocabulary)


class RareClassSoftmax(Output):
    """Symbols that occur fewer than `threshold` times share one output evenly (Mikolov et al. 2010, eq. 7)."""

    def __init__(
        self,
        size: int,
        counts: Sequence[int],
        threshold: int,
        *,
        activation: Activation = "softmax",
        bias: bool = True,
        initialisation: Initialisation | None = None,
        device: Device = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        if any(high < low for high, low in pairwise(counts)):
            raise ValueError("counts do not fall; number the symbols by falling frequency")
        birth = Birth(None, initialisation, device, dtype, counts)
        choice = {"kind": "rare-class", "threshold": threshold, "bias": bias}
        super().__init__(birth.layer([size], len(counts), choice, activation), len(counts))


class MonotoneSoftmax(Output):
    """`Softmax` of f(z), f learned, increasing, of `pieces` linear pieces on [-range, range] (Ganea et al. 2019)."""

    def __init__(
        self,
        size: int,
        vocabulary: int,
        *,
        pieces: int = 1000,
        range: float = 20.0,
        activation: Activation = "softmax",
        weight: nn.Parameter | None = None,
        bias: bool = True,
        initialisation: Initialisation | None = None,
        device: Device = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        birth = Birth(weight, initialisation, device, dtype)
        choice = {"kind": "monotone", "pieces": pieces, "range": range, "bias": bias}
        super().__init__(birth.layer([size], vocabulary, choice, activation), vocabulary)


class Mixtape(Output):
    """Contexts mixed before one normalisation, with weights that depend on the symbol (Yang et al. 2019).

    Args:
        components: M, 2, 4, 8 or 16
        width: of the contexts, and so of `weight` [V, width]; None: D, or that of `weight`
        gate_size: units of a gate
        frequent: so many symbols have gates of their own; the others share one
    """

    def __init__(
        self,
        size: int,
        vocabulary: int,
        components: int = 4,
        width: int | None = None,
        *,
        gate_size: int = 64,
        frequent: int = 1000,
        activation: Activation = "softmax",
        weight: nn.Parameter | None = None,
        bias: bool = True,
        initialisation: Initialisation | None = None,
        device: Device = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        birth = Birth(weight, initialisation, device, dtype)
        sizes = {"components": components, "size": width, "gate_size": gate_size, "frequent": frequent}
        choice = {"kind": "mixtape", "bias": bias} | sizes
        super().__init__(birth.layer([size], vocabulary, choice, activation), vocabulary)


class Bernoulli(Output):
    """Frames of P independent notes, p(v_p = 1) = sigm(W h + b)_p."""

    def __init__(
        self,
        size: int,
        pitches: int,
        *,
        bias: bool = True,
        initialisation: Initialisation | None = None,
        device: Device = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        birth = Birth(None, initialisation, device, dtype)
        super().__init__(birth.layer([size], pitches, {"kind": "bernoulli", "bias": bias}), pitches)


class NADE(Output):
    """Frames of P notes, one after another through `hidden` units (Larochelle & Murray 2011, eqs 4 and 5)."""

    def __init__(
        self,
        size: int,
        pitches: int,
        hidden: int = 128,
        *,
        initialisation: Initialisation | None = None,
        device: Device = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        birth = Birth(None, initialisation, device, dtype)
        super().__init__(birth.layer([size], pitches, {"kind": "nade", "size": hidden}), pitches)


class Gaussian(Output):
    """P independent real values; the deviations are learned, `floor` at least, or 1 (Nix & Weigend 1994)."""

    def __init__(
        self,
        size: int,
        values: int,
        *,
        variance: Literal["learned", "unit"] = "learned",
        floor: float = 1e-3,
        initialisation: Initialisation | None = None,
        device: Device = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        birth = Birth(None, initialisation, device, dtype)
        super().__init__(
            birth.layer([size], values, {"kind": "gaussian", "variance": variance, "floor": floor}), values
        )


class GaussianMixture(Output):
    """P real values under a mixture of `components` normal distributions (Bishop 1994, eqs 22-27)."""

    def __init__(
        self,
        size: int,
        values: int,
        components: int = 5,
        *,
        floor: float = 1e-3,
        initialisation: Initialisation | None = None,
        device: Device = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        birth = Birth(None, initialisation, device, dtype)
        choice = {"kind": "gaussian-mixture", "components": components, "floor": floor}
        super().__init__(birth.layer([size], values, choice), values)


def mixture(
    heads: Mapping[int, int], width: int, dropout: float, shared_mask: bool, linear: bool, prior: str
) -> dict[str, Any]:
    """The record of a mixture's contexts."""
    sizes = {"kind": "mixture", "heads": dict(heads), "size": width}
    return sizes | {"dropout": dropout, "shared_mask": shared_mask, "linear": linear, "prior": prior}
