"""Outputs of vectors: frames of notes that are zeros and ones, real values, and points of a pen.

Arguments as in `elman.nn.outputs`.
"""

from typing import Literal

import torch
from torch import Tensor

from elman.config.initialisation import Initialisation
from elman.network.output.pen import PenChoice
from elman.nn.birth import Birth, Device
from elman.nn.output import Output, require


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
        require((target[..., 2] == 0) | (target[..., 2] == 1), "a point whose last number is 0 or 1")
        return entered
