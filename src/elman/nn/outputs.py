"""Output layers by keyword, each initialised when it is made; `elman.nn.output` describes their common protocol.

D is the width of what an output reads, V the number of symbols, P the number of notes or values. Arguments of all:

    activation      g of p(y) = g(z_y) / sum_v g(z_v): "softmax", "sigsoftmax" and so on (docs/models.md)
    weight          the matrix [V, D] of an embedding, to be shared (Press & Wolf 2017; Inan et al. 2017); None: its own
    bias            whether symbols have biases
    counts          occurrences of the symbols, falling, as they are numbered; None: by Zipf's law
    initialisation  how arrays begin; None: matrices in U(-0.1, 0.1), latent layers as torch's, biases at 0; with
                    output_bias = "unigram" biases begin where contexts of zeros give the frequencies of `counts`
    device, dtype   of the arrays; with `weight` its own

A ValueError names an argument that is out of its range, a UserError one that does not fit the vocabulary.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Literal

import torch
from torch import Tensor, nn

from elman.config.initialisation import Initialisation
from elman.config.parts import Activation
from elman.network.output.pen import PenChoice
from elman.nn.output import LEFT_OUT, Output, require
from elman.nn.shared import Birth, Device


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


class PenMixture(Output):
    """Points (x, y, e) of a pen, e = 1 where it is lifted afterwards, or 0 (Graves 2013, eqs 15-25).

    The move (x, y) has a mixture of `components` normal distributions with correlations, e a logistic unit. `floor`^2
    is added to the variances. Begin with moves of deviation 1.
    """

    def __init__(
        self,
        size: int,
        components: int = 20,
        *,
        floor: float = 1e-2,
        initialisation: Initialisation | None = None,
        device: Device = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        if components < 1 or not floor > 0:
            raise ValueError(f"components is {components} and floor {floor}; they must be 1 or more, and above 0")
        birth = Birth(None, initialisation, device, dtype)
        super().__init__(birth.around(size, lambda: PenChoice(size, components, floor), 3), 3)

    def _target(self, target: Tensor, lead: torch.Size) -> Tensor:
        entered = super()._target(target, lead)
        right = (target[..., 2] == 0) | (target[..., 2] == 1)
        require(right, f"every target is a point whose last number is 0 or 1; {LEFT_OUT}")
        return entered


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
        counts: Sequence[int] | None = None,
        initialisation: Initialisation | None = None,
        device: Device = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        birth = Birth(weight, initialisation, device, dtype, counts)
        choice = {"kind": "flat", "bias": bias, "shift": shift}
        super().__init__(birth.layer([size], vocabulary, choice, activation), vocabulary)


class Sigsoftmax(Softmax):
    """`Softmax` with g(z) = exp(z) sigm(z) (Kanai et al. 2018, section 3)."""

    def __init__(
        self,
        size: int,
        vocabulary: int,
        *,
        weight: nn.Parameter | None = None,
        bias: bool = True,
        shift: bool = False,
        counts: Sequence[int] | None = None,
        initialisation: Initialisation | None = None,
        device: Device = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(
            size,
            vocabulary,
            activation="sigsoftmax",
            weight=weight,
            bias=bias,
            shift=shift,
            counts=counts,
            initialisation=initialisation,
            device=device,
            dtype=dtype,
        )


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
        width: of the contexts, and so of `weight` [V, width]; None: D, or the width of `weight`
        gate_size: units of a gate
        frequent: this many symbols have gates of their own; the others share one
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
