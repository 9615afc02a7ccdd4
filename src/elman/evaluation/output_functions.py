"""What output functions make of a line of scores z = h w + b 1 (Kanai's thesis, sections 4.2 and 4.3).

Softmax keeps the logarithms of such a line in the plane of w and 1, whatever b; the others leave it, which is what
lets them give matrices of log-probabilities of higher rank. M symbols, n points on the line; everything is float64.
"""

import math
from collections.abc import Iterable

import torch
from torch import Tensor

from elman.errors import UserError
from elman.output.activation import LOG_G


def require_known(names: Iterable[str]) -> list[str]:
    """The names as a list.

    Raises:
        UserError: one is not an activation.

    """
    known = list(names)
    for name in known:
        if name not in LOG_G:
            raise UserError(f"--activation {name}: unknown; choose among {', '.join(LOG_G)}")
    return known


def log_outputs(activation: str, scores: Tensor) -> Tensor:
    """Log f(z), [n, M], of scores [n, M]."""
    log_g = LOG_G[activation](scores)
    return log_g - log_g.logsumexp(-1, keepdim=True)


def line(direction: Tensor, shift: float, reach: float = 6.0, count: int = 401) -> Tensor:
    """Scores h w + b 1 for `count` values of h between -reach and reach, [count, M]."""
    positions = torch.linspace(-reach, reach, count, dtype=torch.float64)
    return positions.unsqueeze(-1) * direction.double() + shift


def on_simplex(log_probs: Tensor) -> Tensor:
    """Three probabilities [n, 3] as points [n, 2] of a triangle with corners (0, 0), (1, 0) and (1/2, sqrt(3)/2)."""
    corners = torch.tensor([[0.0, 0.0], [1.0, 0.0], [0.5, math.sqrt(3) / 2]], dtype=torch.float64)
    return log_probs.exp() @ corners


def beside_plane(log_probs: Tensor, direction: Tensor) -> Tensor:
    """Log-probabilities [n, 3] as (place along w, distance from the plane of w and 1), [n, 2].

    The place is counted along what w has at right angles to 1.
    """
    ones = torch.ones(3, dtype=torch.float64)
    across = torch.linalg.cross(direction.double(), ones)
    along = direction.double() - direction.double().mean()
    return log_probs @ torch.stack([along / along.norm(), across / across.norm()], dim=-1)


def rank_of_line(activation: str, size: int, shift: float) -> int:
    """How many dimensions the log outputs of one line span, M = size (theorem 4.4: all M, for sigsoftmax).

    The elements of w are distinct, as the theorem demands. The rank is numerical: singular values above
    sqrt(M + n + 1)/2 * sigma_1 * eps.
    """
    outputs = log_outputs(activation, line(torch.linspace(-1.0, 1.3, size), shift, reach=12.0))
    outputs = outputs[outputs.isfinite().all(-1)]
    values = torch.linalg.svdvals(outputs)
    eps = torch.finfo(torch.float64).eps
    return int((values > 0.5 * math.sqrt(size + len(outputs) + 1) * values[0] * eps).sum())


def distance_from_softmax(activation: str, shift: float, direction: Tensor) -> float:
    """The largest |log f - log softmax| on the line with this shift (theorem 4.5: sigsoftmax tends to softmax)."""
    scores = line(direction, shift)
    difference = (log_outputs(activation, scores) - scores.log_softmax(-1)).abs()
    return float(difference[difference.isfinite()].max())
