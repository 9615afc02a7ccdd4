"""The largest singular value and the spectral radius of a matrix, NaN where the matrix is not finite.

LAPACK is never given infinities or NaN: a singular value decomposition of them fails, and the eigenvalues of them may
end the process.
"""

import math

import torch
from torch import Tensor


def spectral_norm(matrix: Tensor) -> Tensor:
    """Sigma_1 of a matrix [n, m] as a scalar tensor, differentiable; NaN where an entry is infinite or NaN."""
    return torch.linalg.matrix_norm(matrix, 2) if _is_finite(matrix) else matrix.new_full((), math.nan)


def spectral_radius(matrix: Tensor) -> float:
    """The largest modulus of the eigenvalues of a matrix [n, n]; NaN where an entry is infinite or NaN."""
    return torch.linalg.eigvals(matrix).abs().max().item() if _is_finite(matrix) else math.nan


def _is_finite(matrix: Tensor) -> bool:
    return bool(matrix.isfinite().all())
