"""Singular values of a tall matrix that is read as blocks of rows and never held in memory.

T rows, V columns; every block is [n, V] in any precision, every sum is float64. The matrix is a function that starts a
new pass over its blocks, since some methods read it more than once. Each method computes the min(V, T) singular values,
the largest first (`randomised` the leading ones only), and a bound of their error.
"""

import math
from collections.abc import Callable, Iterator
from functools import reduce
from itertools import pairwise
from operator import iadd
from typing import NamedTuple, TypeAlias

import torch
from torch import Tensor

Blocks: TypeAlias = Callable[[], Iterator[Tensor]]

EPSILON = torch.finfo(torch.float64).eps


class Values(NamedTuple):
    """Singular values [k], float64, the largest first, and the absolute error of each."""

    values: Tensor
    error: float


def gram(blocks: Blocks, num_rows: int, num_columns: int) -> Values:
    """Roots of the eigenvalues of A A^T or A^T A, whichever is smaller: 8 min(V, T)^2 bytes, twice while it is solved.

    A root halves the digits: sums of T products round like sqrt(T) eps ||A||^2 (Higham & Mary 2019), so that values
    below about 1e-7 sigma_1 are noise. For outputs computed in float32 the threshold of the rank is far above that.
    """
    if num_rows < num_columns:
        rows = _held(blocks, num_rows, num_columns)
        product = rows @ rows.T
    else:
        product = torch.zeros(0, 0)
        for block in regrouped(blocks(), 1024):
            product = product if len(product) else block.new_zeros(num_columns, num_columns)
            _add_lower_gram(product, block)
    values = torch.linalg.eigvalsh(product, UPLO="L").clamp_(min=0.0).sqrt_().flip(0)
    return Values(values, float(values[0]) * math.sqrt(EPSILON * math.sqrt(num_rows + num_columns)))


def exact(blocks: Blocks, num_rows: int, num_columns: int) -> Values:
    """The triangular factor, updated by a QR of itself on top of each block: full accuracy, about 7 T V^2 operations.

    Three times the memory of `gram` and several times its time (tall-skinny QR, Demmel et al. 2012).
    """
    if num_rows <= num_columns:
        factor = _held(blocks, num_rows, num_columns)
    else:
        factor = torch.zeros(0)
        for block in regrouped(blocks(), max(1024, num_columns)):
            above = block if not len(factor) else torch.cat([factor, block])
            factor = torch.linalg.qr(above, mode="r").R
    values = torch.linalg.svdvals(factor)
    return Values(values, float(values[0]) * EPSILON * math.sqrt(num_rows + num_columns + 1) / 2)


def randomised(blocks: Blocks, num_rows: int, num_columns: int, *, count: int, seed: int = 0) -> Values:
    """The leading `count` values, by a random range finder with one power iteration (Halko et al. 2011, section 4).

    Three passes and a few times 8 V l bytes, l = 1.1 count + 10. The error is bounded afterwards: with Q the basis,
    sigma_i lies between the computed value and sqrt(value^2 + r^2), r = ||A - A Q Q^T||_2, which ten Gaussian probes
    bound with probability 1 - 1e-10 (eq. 4.3 there).
    """
    count = min(count, num_rows, num_columns)
    width = min(num_rows, num_columns, count + count // 10 + 10)
    draw = torch.Generator().manual_seed(seed)

    def gaussian(rows: int, columns: int, like: Tensor) -> Tensor:
        return torch.randn(rows, columns, generator=draw, dtype=torch.float64).to(like.device)

    sketch = reduce(iadd, (block.T @ gaussian(len(block), width, block) for block in regrouped(blocks(), 256)))
    basis = torch.linalg.qr(sketch).Q
    sketch = reduce(iadd, (block.T @ (block @ basis) for block in regrouped(blocks(), 256)))
    basis = torch.linalg.qr(sketch).Q
    probes = gaussian(num_columns, 10, basis)
    probes -= basis @ (basis.T @ probes)
    projected, left = torch.zeros(0), torch.zeros(0)
    for block in regrouped(blocks(), max(1024, width)):
        inside = block @ basis
        projected = torch.linalg.qr(inside if not len(projected) else torch.cat([projected, inside]), mode="r").R
        outside = (block @ probes).square_().sum(0)
        left = outside if not len(left) else left + outside
    values = torch.linalg.svdvals(projected)[:count]
    rest = 10 * math.sqrt(2 / math.pi) * float(left.max().sqrt())
    smallest = float(values[-1])  # sqrt(value^2 + rest^2) - value is largest for the smallest value
    return Values(
        values, math.hypot(smallest, rest) - smallest + float(values[0]) * EPSILON * math.sqrt(num_rows + num_columns)
    )


def regrouped(blocks: Iterator[Tensor], size: int) -> Iterator[Tensor]:
    """The rows of `blocks` in float64 and in blocks of `size`, the last one shorter."""
    waiting: list[Tensor] = []
    for block in blocks:
        block = block.double()
        while sum(map(len, waiting)) + len(block) >= size:
            taken = size - sum(map(len, waiting))
            yield torch.cat([*waiting, block[:taken]])
            waiting, block = [], block[taken:]
        if len(block):
            waiting.append(block)
    if waiting:
        yield torch.cat(waiting)


def _add_lower_gram(product: Tensor, block: Tensor, parts: int = 8) -> None:
    # The product is symmetric: strips of its lower triangle are 9/16 of the work of the whole.
    edges = [len(product) * part // parts for part in range(parts + 1)]
    for low, high in pairwise(edges):
        product[low:high, :high].addmm_(block[:, low:high].T, block[:, :high])


def _held(blocks: Blocks, num_rows: int, num_columns: int) -> Tensor:
    rows = torch.zeros(0)
    at = 0
    for block in blocks():
        if not len(rows):
            rows = torch.empty(num_rows, num_columns, dtype=torch.float64, device=block.device)
        rows[at : at + len(block)] = block
        at += len(block)
    assert at == num_rows
    return rows
