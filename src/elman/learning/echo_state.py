"""Echo state networks for real-valued series: a fixed reservoir and a linear readout by ridge regression.

The readout sees [state; input; 1]. Trained to predict the next value it can run freely: its output becomes the next
input (Jaeger & Haas 2004). Ridge regression finds W = (X'X + penalty I)^-1 X'Y, which minimises
||X W - Y||^2 + penalty ||W||^2.

Shapes: T steps, B series side by side, D values per step, H units of the reservoir; N positions, F features, O outputs.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from elman.errors import UserError
from elman.network.cores.reservoir import ReservoirCore
from elman.network.state import State


def fit_ridge(states: Tensor, targets: Tensor, penalty: float) -> Tensor:
    """W [F, O] from states X [N, F] and targets Y [N, O].

    It is the least-squares solution of [X; sqrt(penalty) I] W = [Y; 0] by a QR decomposition, which never forms X'X,
    whose condition number is the square of X's: the states of a reservoir are nearly linearly dependent.
    """
    assert penalty > 0, "without a penalty the solution may not be unique"
    identity = torch.eye(states.shape[1], dtype=states.dtype, device=states.device)
    q, r = torch.linalg.qr(torch.cat([states, penalty**0.5 * identity]))
    return torch.linalg.solve_triangular(r, q[: len(states)].t() @ targets, upper=True)


class NormalEquations:
    """Ridge regression over a stream: X'X and X'Y are summed chunk by chunk, in memory that does not grow with N.

    Rounding errors grow with the condition number of X'X + penalty I, in `fit_ridge` with its square root: the penalty
    of a stream should be large compared with 1e-16 ||X||^2. `count` is the number of positions added.
    """

    def __init__(self, features: int, outputs: int, dtype: torch.dtype = torch.float64) -> None:
        self.squares = torch.zeros(features, features, dtype=dtype)
        self.products = torch.zeros(features, outputs, dtype=dtype)
        self.count = 0

    def add(self, states: Tensor, targets: Tensor) -> None:
        """Add a chunk: states [n, F] and targets [n, O]."""
        states, targets = states.to(self.squares), targets.to(self.squares)
        self.squares.addmm_(states.t(), states)
        self.products.addmm_(states.t(), targets)
        self.count += len(states)

    def solve(self, penalty: float) -> Tensor:
        """W [F, O] for everything added so far; more may be added afterwards."""
        assert penalty > 0, "without a penalty the solution may not be unique"
        ridge = self.squares.clone()
        ridge.diagonal().add_(penalty)
        return torch.cholesky_solve(self.products, torch.linalg.cholesky(ridge))


class EchoStateNetwork(NamedTuple):
    """A reservoir and its readout [H + D + 1, O]."""

    reservoir: ReservoirCore
    readout: Tensor

    def begin(self, batch: int) -> State:
        """The state of `batch` series that have not begun."""
        return self.reservoir.begin(batch)

    def predict(self, series: Tensor, state: State) -> tuple[Tensor, State]:
        """The outputs [T, B, O] for series [T, B, D], and the state after it."""
        states, state = self.reservoir.run(series, state)
        return features(states, series) @ self.readout, state

    def generate(self, latest: Tensor, state: State, steps: int) -> tuple[Tensor, State]:
        """Run freely from an input [B, D], such as the last output of `predict`: each output is the next input.

        Returns the outputs [steps, B, D] that follow `latest`, and the state from which the last of them is read next.
        """
        outputs = []
        for _ in range(steps):
            following, state = self.predict(latest[None], state)
            latest = following[0]
            outputs.append(latest)
        return torch.stack(outputs), state


def features(states: Tensor, inputs: Tensor) -> Tensor:
    """[state; input; 1], [..., H + D + 1]."""
    return torch.cat([states, inputs, torch.ones_like(inputs[..., :1])], dim=-1)


def fit_next(
    reservoir: ReservoirCore, series: Tensor, *, washout: int = 100, penalty: float = 1e-10, chunk: int | None = None
) -> EchoStateNetwork:
    """A network that predicts the next value of series [T, B, D]; see `fit_readout`."""
    return fit_readout(reservoir, series[:-1], series[1:], washout=washout, penalty=penalty, chunk=chunk)


def fit_readout(
    reservoir: ReservoirCore,
    inputs: Tensor,
    targets: Tensor,
    *,
    washout: int = 100,
    penalty: float = 1e-10,
    chunk: int | None = None,
) -> EchoStateNetwork:
    """A network that computes targets [T, B, O] from inputs [T, B, D] at the same steps.

    The reservoir is drawn, in the precision of the inputs; float64 is recommended. The first `washout` steps still
    depend on the zero state before them and are left out. The penalty of the ridge regression is on the sum of squares
    over all positions. Where `chunk` is set only `chunk` steps are held in memory at a time, by normal equations;
    fitting all at once is more accurate.

    Raises UserError where nothing is left after the washout.
    """
    if washout >= len(inputs):
        raise UserError(
            f"a washout of {washout} steps leaves nothing of a series of {len(inputs)}; give a longer series or a"
            " shorter washout"
        )
    equations, state = NormalEquations(sum(reservoir.dims) + 1, targets.shape[-1]), reservoir.begin(inputs.shape[1])
    for start in range(0, len(inputs), chunk or len(inputs)):
        rows, kept = slice(start, start + (chunk or len(inputs))), slice(max(0, washout - start), None)
        states, state = reservoir.run(inputs[rows], state)
        seen, wanted = features(states, inputs[rows])[kept].flatten(0, 1), targets[rows][kept].flatten(0, 1)
        if chunk is None:
            return EchoStateNetwork(reservoir, fit_ridge(seen, wanted, penalty))
        equations.add(seen, wanted)
    return EchoStateNetwork(reservoir, equations.solve(penalty).to(inputs))
