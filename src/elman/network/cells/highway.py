"""Recurrent highway networks (Zilly, Srivastava, Koutnik & Schmidhuber 2017): several highway layers per step."""

from torch import Tensor
from torch.nn.functional import linear

from elman import config
from elman.network.cells import fast_highway
from elman.network.cells.cell import Cell, LayerState, Weights, step_of


def build(record: config.Highway) -> Cell:
    """s_l = h_l t_l + s_{l-1} c_l for l = 1..depth, the input entering at l = 1 only (eqs 6-9).

    h_l = tanh(R_H s + b), t_l = sigm(R_T s + b), and c_l = 1 - t_l (`coupled`) or sigm(R_C s + b). The recurrent blocks
    are stacked by l, then in the order h, t, c; the input has the blocks of l = 1.
    """
    depth, coupled = record.depth, record.coupled
    blocks = 2 if coupled else 3

    def driven(weights: Weights, drive: Tensor, state: LayerState) -> LayerState:
        (s,) = state
        rows = blocks * s.shape[-1]
        biases = (None,) * depth if weights.hidden_bias is None else weights.hidden_bias.split(rows)
        for level, (recurrent, bias) in enumerate(zip(weights.hidden.split(rows), biases, strict=True)):
            z = linear(s if weights.mask is None else weights.mask * s, recurrent, bias)
            h, t, *carry = (z if level else z + drive).chunk(blocks, dim=-1)
            t = t.sigmoid()
            s = h.tanh() * t + s * (carry[0].sigmoid() if carry else 1 - t)
        return (s,)

    return Cell(
        gates=blocks * depth,
        slots=1,
        step=step_of(driven),
        sequence=fast_highway.highway(depth, coupled),
        name="highway",
        keeps=tuple((blocks * level + 1, -1) if coupled else (blocks * level + 2, 1) for level in range(depth)),
        input_gates=blocks,
        masks="products",
    )
