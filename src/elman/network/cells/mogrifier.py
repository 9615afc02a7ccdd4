"""The Mogrifier (Melis, Kocisky & Blunsom 2020): x and h gate each other in turns before they enter an LSTM."""

from torch import Tensor
from torch.nn.functional import linear

from elman import config
from elman.network.cells import fast_mogrifier
from elman.network.cells.cell import Array, Cell, LayerState, Weights
from elman.network.cells.lstm import CAPPED_LSTM, LSTM


def _product(factors: tuple[Tensor, ...], x: Tensor) -> Tensor:
    """The product of the factors, left to right, times x."""
    for factor in reversed(factors):
        x = linear(x, factor)
    return x


def build(record: config.Mogrifier) -> Cell:
    """x_i = 2 sigm(Q_i h_{i-1}) x_{i-2} for odd i, h_i = 2 sigm(R_i x_{i-1}) h_{i-2} for even i (eqs 1-2).

    After `rounds` gatings the step of an LSTM with the gates i, f, g, o is applied to the last x and h. With a rank the
    gates are products Q_i = Q_left Q_right of it, and R_i likewise; None: full matrices.
    """
    rounds, rank = record.rounds, record.rank
    lstm = LSTM if record.input_gate == "free" else CAPPED_LSTM

    def matrices(inputs: int, size: int) -> tuple[Array, ...]:
        sides = [(inputs, size) if i % 2 else (size, inputs) for i in range(1, rounds + 1)]
        if rank is None:
            return tuple(map(Array, sides))
        return tuple(Array(shape) for rows, columns in sides for shape in ((rows, rank), (rank, columns)))

    def step(weights: Weights, x: Tensor, state: LayerState) -> LayerState:
        h, c = state
        extra = weights.extra or ()
        factors = 1 if rank is None else 2
        for i in range(rounds):
            maps = extra[i * factors : (i + 1) * factors]
            if i % 2:
                h = 2 * _product(maps, x).sigmoid() * h
            else:
                x = 2 * _product(maps, h).sigmoid() * x
        return lstm.step(weights, x, (h, c))

    return Cell(
        gates=4,
        slots=2,
        step=step,
        sequence=fast_mogrifier.mogrifier(rounds, low_rank=rank is not None, capped=record.input_gate == "capped"),
        name="mogrifier",
        candidate=2,
        keeps=((1, 1),),
        extra=matrices,
    )
