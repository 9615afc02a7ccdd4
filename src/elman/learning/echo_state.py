"""Echo state networks for real-valued series: a fixed reservoir and a linear readout by ridge regression.

The readout sees [state; input; 1]. Trained on what comes next, it can go on by itself: its output becomes the next
input (Jaeger & Haas 2004). T steps, B series side by side, D values a step, H units of the reservoir.
"""

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from elman.errors import UserError
from elman.network.cores.reservoir import Reservoir
from elman.network.state import State


# FOLDED learning/ridge.py: Ridge regression: the weights W that make ||X W - Y||^2 + penalty ||W||^2 smallest, W = (X'X + penalty I)^-1
# X'Y.
#
# N positions, F features, D outputs. The outputs are fitted together and do not affect each other.
def fit_ridge(states: Tensor, targets: Tensor, penalty: float) -> Tensor:
    """W [F, D] from states X [N, F] and targets Y [N, D], in closed form.

    It is the least-squares solution of [X; sqrt(penalty) I] W = [Y; 0], found by a QR decomposition: X'X, whose
    condition is the square of X's, is never formed. Reservoirs need that: their states are nearly dependent.
    """
    assert penalty > 0, "without a penalty there may be no single solution"
    features = states.shape[1]
    rows = torch.cat([states, penalty**0.5 * torch.eye(features, dtype=states.dtype, device=states.device)])
    q, r = torch.linalg.qr(rows)
    return torch.linalg.solve_triangular(r, q[: len(states)].t() @ targets, upper=True)


class NormalEquations:
    """The same over a stream: X'X and X'Y are added up chunk by chunk, in memory that does not grow with N.

    Rounding counts by the condition of X'X + penalty I, where in `fit_ridge` it counts by its square root: give
    streams a penalty that is large beside 1e-16 ||X||^2.

    Args:
        features: F.
        outputs: D.
        dtype: of the sums.

    Attributes:
        count: how many positions have been added.

    """

    def __init__(self, features: int, outputs: int, dtype: torch.dtype = torch.float64) -> None:
        self.squares = torch.zeros(features, features, dtype=dtype)
        self.products = torch.zeros(features, outputs, dtype=dtype)
        self.count = 0

    def add(self, states: Tensor, targets: Tensor) -> None:
        """Take in a chunk: states [n, F] and targets [n, D]."""
        states, targets = states.to(self.squares), targets.to(self.squares)
        self.squares.addmm_(states.t(), states)
        self.products.addmm_(states.t(), targets)
        self.count += len(states)

    def solve(self, penalty: float) -> Tensor:
        """W [F, D] of all that was added; more may be added afterwards."""
        assert penalty > 0, "without a penalty there may be no single solution"
        ridge = self.squares.clone()
        ridge.diagonal().add_(penalty)
        return torch.cholesky_solve(self.products, torch.linalg.cholesky(ridge))


# TARGET
class EchoStateNetwork(NamedTuple):
    """A reservoir and its readout [H + D + 1, outputs]."""

    reservoir: Reservoir
    readout: Tensor

    def begin(self, batch: int) -> State:
        """The state of a reservoir that has heard nothing."""
        return self.reservoir.begin(batch)

    def predict(self, series: Tensor, state: State) -> tuple[Tensor, State]:
        """The outputs [T, B, outputs] over series [T, B, D], and the state after it."""
        states, state = self.reservoir.run(series, state)
        return features(states, series) @ self.readout, state

    def generate(self, latest: Tensor, state: State, steps: int) -> tuple[Tensor, State]:
        """Go on alone: each output is the next input.

        Args:
            latest: the first input [B, D], such as the last output of `predict`.
            state: what that gave beside it.
            steps: how many.

        Returns:
            the outputs [steps, B, D] that follow `latest`, and the state to go on from with the last of them.

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
    reservoir: Reservoir, series: Tensor, *, washout: int = 100, penalty: float = 1e-10, chunk: int | None = None
) -> EchoStateNetwork:
    """A network that says what comes next in series [T, B, D]; see `fit_readout`."""
    return fit_readout(reservoir, series[:-1], series[1:], washout=washout, penalty=penalty, chunk=chunk)


def fit_readout(
    reservoir: Reservoir,
    inputs: Tensor,
    targets: Tensor,
    *,
    washout: int = 100,
    penalty: float = 1e-10,
    chunk: int | None = None,
) -> EchoStateNetwork:
    """A network that gives targets [T, B, outputs] for inputs [T, B, D].

    Args:
        reservoir: drawn, in the precision of the inputs; float64 is worth its time.
        inputs: what it hears.
        targets: what the readout should say at the same steps.
        washout: the first steps, which still depend on the silence before them and are left out.
        penalty: of the ridge regression, on the sum of squares over all positions.
        chunk: steps that are in memory at a time, by normal equations; None fits all at once, which is more accurate.

    Raises:
        UserError: nothing is left after the washout.

    """
    if washout >= len(inputs):
        raise UserError(
            f"a washout of {washout} steps leaves nothing of a series of {len(inputs)}; give a longer series or a"
            " shorter washout"
        )
    pieces = _positions(reservoir, inputs, targets, washout, chunk or len(inputs))
    if chunk is None:
        ((found, wanted),) = pieces
        return EchoStateNetwork(reservoir, fit_ridge(found, wanted, penalty))
    equations = NormalEquations(sum(reservoir.dims) + 1, targets.shape[-1])
    for found, wanted in pieces:
        equations.add(found, wanted)
    return EchoStateNetwork(reservoir, equations.solve(penalty).to(inputs))


def _positions(
    reservoir: Reservoir, inputs: Tensor, targets: Tensor, washout: int, chunk: int
) -> Iterator[tuple[Tensor, Tensor]]:
    """Features [n, H + D + 1] and targets [n, outputs] of the steps after the washout, chunk by chunk."""
    state = reservoir.begin(inputs.shape[1])
    for start in range(0, len(inputs), chunk):
        piece = inputs[start : start + chunk]
        states, state = reservoir.run(piece, state)
        kept = slice(max(0, washout - start), None)
        found = features(states, piece)[kept]
        if len(found):
            yield found.flatten(0, 1), targets[start : start + chunk][kept].flatten(0, 1)
