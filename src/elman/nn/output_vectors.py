"""Outputs of vectors: frames of notes that are zeros and ones, and real values. Arguments as in `elman.nn.outputs`."""

from typing import Literal

import torch

from elman.config.initialisation import Initialisation
from elman.nn.birth import Birth, Device
from elman.nn.output import Output


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
