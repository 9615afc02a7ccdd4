"""The hard alternative: a recurrent matrix that stays orthogonal (Arjovsky et al. 2016; Vorontsov et al. 2017).

Complex unitary matrices are not offered; orthogonal ones are the real case. Nothing is reparametrised, so the weights
stay plain values that any optimiser may step, and the step is followed by the retraction to the nearest point.
"""

import torch
from torch import Tensor

from elman.kernels import spectral
from elman.learning.projections.projector import Projector


class ToOrthogonal(Projector):
    """The nearest gain * Q with orthonormal columns (or rows, when there are fewer): the polar factor.

    After a small step the Newton-Schulz iteration Q <- Q (3 I - Q'Q) / 2 gives it by products alone; it converges
    when ||Q'Q - I||_F < 1, and otherwise the factor comes from the singular value decomposition.
    """

    def __init__(self, gain: float = 1.0, rounds: int = 6) -> None:
        self.gain, self.rounds = gain, rounds

    @torch.no_grad()
    def project_(self, matrix: Tensor) -> None:
        """W = gain * U V'."""
        matrix = spectral.tall(matrix)
        self.computed = 0
        q = matrix / self.gain
        identity = torch.eye(q.shape[1], dtype=q.dtype, device=q.device)
        near = 1e-6 * q.shape[1] ** 0.5
        for _ in range(self.rounds):
            error = q.t() @ q - identity
            distance = error.norm().item()
            if distance < near or not distance < 0.9:
                break
            q = q - 0.5 * q @ error
        if not distance < 0.9:
            u, values, vh = torch.linalg.svd(q, full_matrices=False)
            self.computed, q = len(values), u @ vh
        matrix.copy_(q * self.gain)
