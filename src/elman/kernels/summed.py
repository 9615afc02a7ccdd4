"""The gradient of a matrix W [V, D] that is formed in parts, chunk by chunk of the rows that it was multiplied by."""

from torch import Tensor

from elman.kernels import product

BLOCK_BYTES = 28 << 20
"""Largest part of the gradient that is formed at once. Blocks of 32 MB and more are not reused by the C library: it
gives them back to the system at once, and page faults then cost more than the product."""


class SummedGradient:
    """The sum over chunks of (p^T h)^T, [D, V]: so turned, no [R, V] matrix has to be transposed.

    Args:
        weight: W [V, D].

    Attributes:
        transposed: what the sum has come to, [D, V].

    """

    def __init__(self, weight: Tensor) -> None:
        self.transposed = weight.new_zeros(weight.shape[1], weight.shape[0])
        self.columns = max(1, BLOCK_BYTES // (weight.shape[1] * weight.element_size()))

    def add(self, h: Tensor, p: Tensor) -> None:
        """Add the part of rows h [R, D] and p [R, V]."""
        h_t, num_symbols = h.t().contiguous(), p.shape[1]
        for start in range(0, num_symbols, self.columns):
            block = slice(start, start + self.columns)
            self.transposed[:, block] += product.multiply(h_t, p[:, block].contiguous().t())
