"""Parts that the cells with heads and with a short memory of their inputs share."""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from elman.config.initialisation import Normal
from elman.errors import UserError
from elman.network.cells.cell import Array


def width_of(size: int, heads: int, cell: str) -> int:
    """The width of each of `heads` heads; raises UserError where they do not divide the layer."""
    if size % heads:
        raise UserError(
            f"model.core.cell.heads = {heads} does not divide a layer of {size} numbers, as the cell {cell} needs;"
            " choose another number of heads, or another size"
        )
    return size // heads


def by_heads(x: Tensor, heads: int) -> Tensor:
    """A view [..., heads, d] of x [..., heads * d]."""
    return x.unflatten(-1, (heads, -1))


def block_diagonal(x: Tensor, blocks: Tensor) -> Tensor:
    """A matrix of blocks [heads, d', d] on its diagonal times x [..., heads * d]: [..., heads * d']."""
    return torch.einsum("...hi,hoi->...ho", by_heads(x, len(blocks)), blocks).flatten(-2)


def unit(x: Tensor, epsilon: float = 1e-6) -> Tensor:
    """Return x [..., d] / sqrt(|x|^2 + epsilon)."""
    return x * torch.rsqrt(x.square().sum(-1, keepdim=True) + epsilon)


def root_mean_square_norm(x: Tensor, scale: Tensor, epsilon: float = 1e-5) -> Tensor:
    """Return x [..., d] over the root of its mean square, times the scale [d]."""
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + epsilon) * scale


def inverse_softplus(x: Tensor) -> Tensor:
    """Return log(exp(x) - 1), of which softplus is x > 0."""
    return torch.expm1(x).log()


def first_rates(rates: Tensor) -> None:
    """Fill logarithms of rates of decay, uniform in [1, 16], as Mamba-2 draws them."""
    rates.uniform_(1, 16).log_()


def first_steps(bias: Tensor) -> None:
    """Fill biases of step sizes, softplus of which is log-uniform in [0.001, 0.1], as Mamba-2 draws them."""
    bias.copy_(inverse_softplus(bias.uniform_(math.log(0.001), math.log(0.1)).exp()))


def filled(value: float) -> Callable[[Tensor], object]:
    return lambda array: array.fill_(value)


def kernel_of(channels: int, kernel_size: int) -> Array:
    """The kernel [C, K] of `convolve`; at first it keeps the variance of independent inputs."""
    return Array((channels, kernel_size), Normal(std=1 / math.sqrt(kernel_size)))


def convolve(xs: Tensor, before: Tensor, kernel: Tensor, bias: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """A causal convolution of each channel with its own kernel.

    Args:
        xs: [T, B, C]
        before: the K - 1 inputs before, [B, K - 1, C], oldest first
        kernel: [C, K], the weight of the present input last
        bias: [C]

    Returns:
        outputs [T, B, C], and the last K - 1 inputs, [B, K - 1, C].
    """
    steps, earlier = len(xs), before.shape[1]
    stream = torch.cat([before.transpose(0, 1), xs])
    outputs = xs * kernel[:, earlier]
    for lag in range(earlier):
        outputs = outputs + stream[lag : lag + steps] * kernel[:, lag]
    return outputs if bias is None else outputs + bias, stream[steps:].transpose(0, 1)


def convolve_step(x: Tensor, before: Tensor, kernel: Tensor, bias: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """`convolve` of one step x [B, C]."""
    window = torch.cat([before, x.unsqueeze(1)], dim=1)
    output = (window * kernel.t()).sum(1)
    return output if bias is None else output + bias, window[:, 1:]
