"""The products of a mixture's contexts with the output matrix W [V, D], in chunks of positions, and their gradients.

R rows (components of positions) of a chunk, D their width, V symbols. `mixture.py` forms the likelihood from them.
"""

from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

import torch
from torch import Tensor

from elman import config
from elman.network.fast import matmul, policy
from elman.network.output.activation import SAFE_TOTAL, Shares, log_of, log_probs, shares

BLOCK_BYTES = 28 << 20
"""Largest part of the gradient that is formed in one product. The C library does not reuse blocks of 32 MB and more
but returns them to the system, and page faults then cost more than the product."""

CHUNK_BYTES = defaultdict(lambda: 256 << 20, cpu=12 << 20)
"""By the type of device: the least size of the [R, V] matrix of one chunk (`benchmarks/mixture.py`)."""

CHUNK_ROWS = 256
"""A chunk has at least min(CHUNK_ROWS, D / 2) rows too: with fewer, adding its part to the gradient of W
costs more than forming it. The [R, V] matrix then stays below half of W."""

Derivative: TypeAlias = tuple[Tensor, Tensor | None, Tensor]
"""The derivative of -log p(y | h) by z, [R, V], what its rows are still to be divided by, and log p(y | h) [R]."""


class Layer(NamedTuple):
    """z = h W^T + b for chunks of rows h, with W laid out once; `step`: positions of a chunk, of `components` rows.

    `room` [R, V] holds the float32 form of a product in bf16, so that no chunk begins with fresh pages of memory.
    """

    weight: Tensor
    bias: Tensor | None
    packed: Tensor
    step: int
    components: int
    room: Tensor | None

    @classmethod
    def of(cls, weight: Tensor, bias: Tensor | None, context: Tensor) -> "Layer":
        """The layer for contexts [N, K, D]."""
        num_positions, num_components, width = context.shape
        least = CHUNK_BYTES[weight.device.type] // (len(weight) * weight.element_size())
        step = max(1, max(least, min(CHUNK_ROWS, width // 2)) // num_components)
        rows, uses = min(step, num_positions) * num_components, -(-num_positions // step)
        rounds = weight.device.type == "cpu" and policy.worth_rounding(weight, rows)
        room = weight.new_empty(rows, len(weight)) if rounds and uses > 1 else None
        return cls(weight, bias, matmul.pack(weight, rows, uses), step, num_components, room)

    def chunks(self, context: Tensor) -> Iterator[slice]:
        """Whole positions, all components of each."""
        return (slice(start, start + self.step) for start in range(0, len(context), self.step))

    def rows(self, positions: int) -> int:
        return min(self.step, positions) * self.components

    def products(self, positions: int) -> "Products | RoundedProducts":
        on_cpu = self.weight.device.type == "cpu"
        rounds = on_cpu and policy.worth_rounding(self.weight, self.rows(positions))
        return (RoundedProducts if rounds else Products)(self, positions)

    def z(self, h: Tensor) -> Tensor:
        """The matrix z [R, V] of h [R, D]."""
        return matmul.multiply(h, self.packed, self.bias)

    def z_to_overwrite(self, h: Tensor) -> Tensor:
        """The same, in memory that the next call overwrites."""
        if self.room is None:
            return self.z(h)
        z = self.room[: len(h)].copy_(matmul.multiply_in_bf16(h, self.packed))
        return z if self.bias is None else z.add_(self.bias)

    def log_prob(self, h: Tensor, y: Tensor, activation: config.Activation) -> Tensor:
        """Log p(y | h) [R]."""
        if (kernel := policy.triton(h, activation)) is not None:
            return kernel.log_prob(self.z(h), y, activation)
        return self.shares(h, y, activation)[1]

    def derivative(self, h: Tensor, y: Tensor, activation: config.Activation) -> Derivative:
        """The derivative at the targets y [R]."""
        if (kernel := policy.triton(h, activation)) is not None:
            z = self.z(h)
            log_prob = kernel.log_prob(z, y, activation, derive=True)
            return z, None, log_prob
        (amounts, total, slope), log_prob = self.shares(h, y, activation)
        amounts[torch.arange(len(y), device=y.device), y] -= 1 if total is None else total.squeeze(1)
        return amounts if slope is None else amounts.mul_(slope), total, log_prob

    def shares(self, h: Tensor, y: Tensor, activation: config.Activation) -> tuple[Shares, Tensor]:
        """The distributions [R, V], and log p(y | h) [R]."""
        found = shares(self.z_to_overwrite(h), activation)
        if found.total is not None and found.total.min() < SAFE_TOTAL:
            found = shares(self.z_to_overwrite(h), activation, safe=True)
        chosen = found.amounts.gather(1, y.unsqueeze(1))
        p = (chosen if found.total is None else chosen / found.total).squeeze(1)
        return found, self.log_of(h, y, p, activation)

    def log_of(self, h: Tensor, y: Tensor, p: Tensor, activation: config.Activation) -> Tensor:
        """The logarithm of p(y | h) = p [R]."""

        def again(rare: Tensor) -> Tensor:
            return log_probs(self.z(h[rare]), activation).gather(1, y[rare].unsqueeze(1)).squeeze(1)

        return log_of(p, again)


class Products:
    """The products of d z of chunks: the derivative by h of each, and those by W [V, D] and b [V], summed over chunks.

    The sum for W is formed as (p^T h)^T [D, V], so that no [R, V] matrix is transposed.
    """

    def __init__(self, layer: Layer, positions: int) -> None:
        self.layer, weight = layer, layer.weight
        self.d_bias = None if layer.bias is None else torch.zeros_like(layer.bias)
        self.weight_t = matmul.rounded(weight.t(), layer.rows(positions))
        self.transposed = weight.new_zeros(weight.shape[1], weight.shape[0])
        self.columns = max(1, BLOCK_BYTES // (weight.shape[1] * weight.element_size()))

    def derivative(self, h: Tensor, y: Tensor, activation: config.Activation) -> Derivative:
        """As `Layer.derivative`."""
        return self.layer.derivative(h, y, activation)

    def add(self, h: Tensor, d_z: Tensor, r: Tensor) -> Tensor:
        """Add the terms of rows h [R, D], d z [R, V] and r [R, 1], by which d z is scaled; r d z W [R, D]."""
        if self.d_bias is not None:
            self.d_bias.addmv_(d_z.t(), r.view(-1))
        d_z = matmul.rounded(d_z, h.shape[1])
        h_t, num_symbols = (r * h).t().contiguous(), d_z.shape[1]
        for start in range(0, num_symbols, self.columns):
            block = slice(start, start + self.columns)
            self.transposed[:, block] += matmul.multiply(h_t, d_z[:, block].contiguous().t())
        return matmul.multiply(d_z, self.weight_t).mul_(r)

    def d_weight(self) -> Tensor:
        """The sum [V, D]."""
        return self.transposed.t()


class RoundedProducts:
    """As `Products`, with factors in bf16 on a CPU, where no float32 matrix [R, V] is formed for a softmax.

    A distribution p is formed in bf16 from z in bf16, with its sums in float32: as a factor of products it would be
    rounded anyway. Chunks of d z are gathered, so that there are few products to add in float32.
    """

    def __init__(self, layer: Layer, positions: int) -> None:
        num_symbols, width = layer.weight.shape
        gathered = min(positions * layer.components, max(layer.rows(positions), BLOCK_BYTES // (2 * num_symbols)))
        self.layer, self.filled = layer, 0
        self.weight = layer.weight.to(torch.bfloat16) if layer.packed.is_mkldnn else layer.packed
        self.d_bias = None if layer.bias is None else torch.zeros_like(layer.bias)
        self.d_z = self.weight.new_empty(gathered, num_symbols)
        self.h = self.weight.new_empty(gathered, width)
        self.sum: Tensor | None = None

    def derivative(self, h: Tensor, y: Tensor, activation: config.Activation) -> Derivative:
        """As `Layer.derivative`; d z is in bf16, in memory that the next call may overwrite."""
        if self.filled + len(h) > len(self.d_z):
            self._multiply()
        room = self.d_z[self.filled : self.filled + len(h)]
        if activation != "softmax":
            d_z, total, log_prob = self.layer.derivative(h, y, activation)
            return room.copy_(d_z), total, log_prob
        z = matmul.multiply_in_bf16(h, self.layer.packed, self.layer.bias)
        torch._softmax(z, 1, False, out=room)
        at = torch.arange(len(y)), y
        p = room[at]
        room[at] = p - 1
        return room, None, self.layer.log_of(h, y, p.float(), activation)

    def add(self, h: Tensor, d_z: Tensor, r: Tensor) -> Tensor:
        """As `Products.add`, of the d z of the last call of `derivative`."""
        torch.mul(r, h, out=self.h[self.filled : self.filled + len(h)])
        self.filled += len(h)
        if self.d_bias is not None:
            self.d_bias += torch.mm(r.t().to(torch.bfloat16), d_z)[0]
        return matmul.multiply(d_z, self.weight.t()).mul_(r)

    def d_weight(self) -> Tensor:
        """The sum [V, D]."""
        self._multiply()
        assert self.sum is not None, "there is a chunk"
        return self.sum

    def _multiply(self) -> None:
        product = torch.mm(self.d_z[: self.filled].t(), self.h[: self.filled])
        self.sum = product.float() if self.sum is None else self.sum.add_(product)
        self.filled = 0
