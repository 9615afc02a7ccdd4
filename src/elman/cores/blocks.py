"""The block of a layer's stacked weights that makes the candidate state, as a view."""

from torch import Tensor

from elman.cores.stack import Layer, Stack


def layers_of(core: Stack) -> list[Layer]:
    """The layers, bottom first."""
    return [layer for layer in core.layers if isinstance(layer, Layer)]


def candidate_gate(layer: Layer) -> int:
    """Its place among the gates, such as n of a GRU (r, z, n), g of an LSTM (i, f, g, o), all of Elman's."""
    return layer.cell.candidate


def gate(stacked: Tensor, index: int, size: int) -> Tensor:
    """Block `index` of `size` rows."""
    return stacked[index * size : (index + 1) * size]


def candidate_hidden(layer: Layer) -> Tensor:
    """W_hh of the candidate [H, H]."""
    return gate(layer.weight_hh, candidate_gate(layer), layer.hidden_size)


def candidate_input(layer: Layer) -> Tensor:
    """W_xh of the candidate [H, I]."""
    return gate(layer.weight_ih, candidate_gate(layer), layer.hidden_size)


def linearised(layer: Layer) -> Tensor:
    """J of the layer at h = 0 without input and biases: W_hh / 4 + I / 2 (thesis 3.4), for Elman's network W_hh.

    For a bias-free LSTM this is the matrix that takes c to c': f I + i o U_g with gates of 1/2.
    """
    block = candidate_hidden(layer)
    if layer.cell.gates == 1:
        return block
    return block / 4 + block.new_ones(len(block)).div(2).diag()
