"""Ridge regression: the weights W that make ||X W - Y||^2 + penalty ||W||^2 smallest, W = (X'X + penalty I)^-1 X'Y.

N positions, F features, D outputs. The outputs are fitted together and do not affect each other.
"""

import torch
from torch import Tensor


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
