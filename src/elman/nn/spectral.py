"""The constrained recurrent network: a bound on the largest singular value of its recurrent matrices.

In a loop of one's own:

    project = enn.SpectralBound(model, delta=0.2)
    for each step:
        optimiser.step()
        project()
"""

from collections.abc import Mapping
from typing import Literal

import msgspec
import torch
from torch import Tensor, nn

from elman.config.parts import convert
from elman.learning import constraint
from elman.network.cells.cell import Cell
from elman.network.cells.elman import Elman
from elman.network.cells.gru import GRU
from elman.network.cells.lstm import LSTM
from elman.network.cores.layer import Layer
from elman.network.cores.stack import StackCore, candidate_hidden, linearised
from elman.network.spectrum import spectral_norm, spectral_radius
from elman.nn.recurrent import Recurrent

Method = Literal["subspace", "eigh", "svd"]


class SpectralBound:
    """Projects recurrent matrices onto sigma_1 <= 2 - delta, the nearest such matrices, after steps of any optimiser.

    W_hh of the candidate state is bounded: n of a GRU, g of an LSTM, all of an Elman network. A GRU without biases and
    inputs then forgets: its Jacobian at h = 0, W_hh / 4 + I / 2, has a spectral radius below 1 (Kanai, Fujiwara &
    Iwamura 2017; Kanai's thesis, chapter 3).

    Args:
        module: a model or a part of it; its `GRU`, `LSTM` and `Elman` of `elman.nn` and `torch.nn.GRU`, `LSTM`, `RNN`,
            `GRUCell`, `LSTMCell` and `RNNCell` are constrained
        delta: above 0 and below 2; for gated cells
        bound: of sigma_1 in the place of 2 - delta; for an Elman network below 1
        inputs: sigma_1(W_xh) <= 2 as well (thesis 3.11)
        method: "subspace" follows the largest singular values from step to step, at the cost of a few thin products and
            with a proof at every call; "eigh" and "svd" compute all of them

    Raises ValueError where there is nothing to constrain, a cell has other dynamics, or a number is out of its range.
    """

    def __init__(
        self,
        module: nn.Module,
        delta: float = 0.2,
        *,
        bound: float | None = None,
        inputs: bool = False,
        method: Method = "subspace",
    ) -> None:
        self._layers = layers_within(module)
        if not self._layers:
            raise ValueError(f"{type(module).__name__} has no recurrent matrix of a GRU, an LSTM or an Elman network")
        kinds = {layer.cell.name for layer in self._layers.values()}
        if bound is None and "elman" in kinds:
            raise ValueError("2 - delta is a bound for gated cells; give an Elman network `bound`, such as 0.95")
        keys = {"kind": "spectral", "delta": delta, "bound": bound, "input": inputs, "method": method}
        try:
            record = convert(keys, constraint.Spectral)
        except msgspec.ValidationError as error:
            raise ValueError(f"SpectralBound: {error}") from None
        self._constrained = constraint.ConstrainedCore(StackCore([*self._layers.values()]), record)

    def __call__(self) -> None:
        """Project; matrices with infinities or nan are left as they are."""
        self._constrained.project()

    @torch.no_grad()
    def norms(self) -> dict[str, float]:
        """sigma_1 of each W_hh, by the name of the stacked weights it stands in."""
        return {name: spectral_norm(candidate_hidden(layer)).item() for name, layer in self._layers.items()}

    @torch.no_grad()
    def radii(self) -> dict[str, float]:
        """The spectral radius of the Jacobian at h = 0 without inputs and biases (thesis 3.10); below 1: it forgets."""
        return {name: spectral_radius(linearised(layer)) for name, layer in self._layers.items()}

    def state_dict(self) -> dict[str, Tensor]:
        """What is followed from step to step, as tensors by name."""
        return self._constrained.tensors()

    def load_state_dict(self, tensors: Mapping[str, Tensor]) -> None:
        """Continue from what `state_dict` returned, bit for bit."""
        self._constrained.restore(tensors)


def layers_within(module: nn.Module) -> dict[str, Layer]:
    """The recurrent layers of a module, by the names of their `weight_hh`, as layers that share its weights."""
    found = {}
    for place, part in module.named_modules():
        if (cell := cell_of(part)) is None:
            continue
        where = place or type(part).__name__
        if getattr(part, "proj_size", 0) or nn.utils.parametrize.is_parametrized(part):
            raise ValueError(f"{where}: weights that are projected or parametrised cannot be bounded")
        if cell.name not in constraint.CELLS:
            raise ValueError(f"{where}: its recurrent matrix alone does not determine the dynamics of {cell.name}")
        for name, hidden in part.named_parameters(recurse=False):
            if not name.startswith("weight_hh"):
                continue
            of_input = part.get_parameter(name.replace("weight_hh", "weight_ih"))
            with torch.device("meta"):
                layer = Layer(cell, of_input.shape[1], hidden.shape[1], biases=0)
            layer.weight_ih, layer.weight_hh = of_input, hidden
            found[f"{place}.{name}".removeprefix(".")] = layer
    return found


def cell_of(part: nn.Module) -> Cell | None:
    """The equations of a recurrent module; None for others."""
    match part:
        case Recurrent():
            return part.cell
        case nn.GRU() | nn.GRUCell():
            return GRU()
        case nn.LSTM() | nn.LSTMCell():
            return LSTM()
        case nn.RNN() | nn.RNNCell():
            return convert({"kind": "elman", "nonlinearity": part.nonlinearity}, Elman)
        case _:
            return None
