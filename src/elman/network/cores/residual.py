"""Residual blocks of recurrent layers: normalised, read, and added to a stream of one width.

    x := x + drop(cell(conv(norm(x))))       the recurrent half; at first x is the input, or W times one of other width
    x := x + drop(feed(norm(x)))             the feed-forward half, step by step
    output: norm(x)

The norm stands before each half (Xiong et al. 2020), RMSNorm (Zhang & Sennrich 2019) or layer normalisation (Ba, Kiros
& Hinton 2016). The feed-forward half is W_2 gelu(W_1 x) or, gated, W_3 (gelu(W_1 x) * W_2 x) (Shazeer 2020), as in the
blocks of Griffin (De et al. 2024); its inner width is `expansion` times the width of the stream. Any cell may be used.
The causal convolution of each channel is optional: Griffin has it, and the blocks of minGRU (Feng et al. 2024).
"""

import math
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import gelu

from elman import config
from elman.config.parts import OneOf
from elman.config.record import Depth, Positive, PositiveFloat, Rate, Reach
from elman.network.cells.cell import Cell, LayerState
from elman.network.cells.heads import convolve
from elman.network.cells.lstm import LSTM
from elman.network.cores.core import Surroundings, Trace
from elman.network.cores.stack import Layers, Stack, build_layer, layers_of
from elman.network.dropout import Dropout
from elman.network.fast.matmul import linear
from elman.network.initialisation import fill
from elman.network.state import State


def build_norm(kind: str, size: int) -> nn.Module:
    """A norm of vectors of `size` numbers with a learned scale, which begins at 1; layer normalisation also shifts."""
    return nn.RMSNorm(size, eps=1e-6) if kind == "rms" else nn.LayerNorm(size)


class Convolution(nn.Module):
    """A causal convolution of each of `size` channels with a kernel and a bias of its own, over `kernel_size` steps."""

    def __init__(self, size: int, kernel_size: int) -> None:
        super().__init__()
        self.kernel = nn.Parameter(torch.empty(size, kernel_size))
        self.bias = nn.Parameter(torch.zeros(size))

    def begin(self, batch: int) -> Tensor:
        """No inputs before: zeros [batch, kernel_size - 1, size]."""
        size, kernel_size = self.kernel.shape
        return self.kernel.new_zeros(batch, kernel_size - 1, size)

    def forward(self, xs: Tensor, before: Tensor) -> tuple[Tensor, Tensor]:
        return convolve(xs, before, self.kernel, self.bias)

    def initialise(self) -> None:
        kernel_size = self.kernel.shape[1]
        fill(self.kernel, config.Normal(std=1 / math.sqrt(kernel_size)), kernel_size)
        nn.init.zeros_(self.bias)

    def largest(self, inputs: Tensor) -> Tensor:
        """The largest possible |outputs|, float64, where no |input| of a channel is above `inputs` [size]."""
        return self.kernel.detach().double().abs().sum(1) * inputs + self.bias.detach().double().abs()


class FeedForward(nn.Module):
    """W_2 gelu(W_1 x), or gated W_3 (gelu(W_1 x) * W_2 x), of vectors of `size` numbers; without biases."""

    def __init__(self, size: int, inner: int, *, gated: bool) -> None:
        super().__init__()
        self.into = nn.Parameter(torch.empty((1 + gated) * inner, size))
        self.out = nn.Parameter(torch.empty(size, inner))
        self.gated = gated

    def forward(self, x: Tensor) -> Tensor:
        """[..., size] to [..., size]."""
        inner = linear(x, self.into)
        if not self.gated:
            return linear(gelu(inner), self.out)
        gate, value = inner.chunk(2, dim=-1)
        return linear(gelu(gate) * value, self.out)

    def initialise(self, rules: config.Initialisation) -> None:
        fill(self.into, rules.input, self.into.shape[1])
        fill(self.out, rules.input, self.out.shape[1])


class Residual(config.Core, frozen=True, tag="residual"):
    """`depth` residual blocks of one width: a normalised recurrent layer, and a normalised feed-forward half.

    The layer may read a convolution over `convolution` inputs of each channel, as in the blocks of Griffin and of
    minGRU. `feed_forward`: none, a layer of GELUs, or a gated one, whose inner width is `expansion` times the size.
    `dropout` masks what each half adds. The other keys are as in a stack.
    """

    size: Positive
    depth: Depth = 2
    cell: OneOf[Cell] = LSTM()
    norm: Literal["rms", "layer"] = "rms"
    convolution: Reach | None = None
    feed_forward: Literal["none", "mlp", "glu"] = "glu"
    expansion: PositiveFloat = 3.0
    biases: Literal[0, 1, 2] = 1
    weight_drop: Rate = 0.0
    recurrent_dropout: Rate = 0.0
    dropout: Rate = 0.0
    output_dropout: Rate = 0.0


class ResidualCore(Layers, of=Residual):
    """`depth` blocks; level l of the trace is the stream after block l, the last one normalised."""

    def __init__(self, record: Residual, surroundings: Surroundings) -> None:
        depth, size, below = record.depth, record.size, surroundings.input_size
        stack = Stack(
            sizes=(size,) * depth,
            cell=record.cell,
            biases=record.biases,
            weight_drop=record.weight_drop,
            recurrent_dropout=record.recurrent_dropout,
        )
        super().__init__([build_layer(stack, size, size, locked=surroundings.locked) for _ in range(depth)])
        self.into = nn.Parameter(torch.empty(size, below)) if below != size else None
        self.norms = nn.ModuleList(build_norm(record.norm, size) for _ in range(depth))
        kernel_size = record.convolution
        self.convolutions = (
            nn.ModuleList()
            if kernel_size is None
            else nn.ModuleList(Convolution(size, kernel_size) for _ in range(depth))
        )
        halves = depth if record.feed_forward != "none" else 0
        inner = max(1, round(record.expansion * size))
        self.feeds = nn.ModuleList(FeedForward(size, inner, gated=record.feed_forward == "glu") for _ in range(halves))
        self.feed_norms = nn.ModuleList(build_norm(record.norm, size) for _ in range(halves))
        self.last_norm = build_norm(record.norm, size)
        self.dropout = Dropout(record.dropout, locked=surroundings.locked)
        self.output_dropout = Dropout(record.output_dropout, locked=surroundings.locked)
        self.dims = (below, *stack.sizes)

    def begin(self, batch: int) -> State:
        layers = super().begin(batch)
        if not self.convolutions:
            return layers
        return tuple((*layer, each.begin(batch)) for layer, each in zip(layers, convolutions_of(self), strict=True))

    def forward(self, x: Float[Tensor, "T B E"], state: State) -> tuple[Trace, State]:
        stream = x if self.into is None else linear(x, self.into)
        levels, after = [x], []
        for index, (layer, norm, before) in enumerate(zip(self.layers, self.norms, state, strict=True)):
            read, of_layer, held = self._convolved(index, norm(stream), before)
            outputs, new = layer(read, of_layer)
            stream = stream + self.dropout(outputs)
            if self.feeds:
                stream = stream + self.dropout(self.feeds[index](self.feed_norms[index](stream)))
            levels.append(stream)
            after.append((*new, *held))
        top = self.last_norm(stream)
        raw = (*levels[:-1], top)
        return Trace((*raw[:-1], self.output_dropout(top)), raw), tuple(after)

    def _convolved(self, index: int, xs: Tensor, state: LayerState) -> tuple[Tensor, LayerState, LayerState]:
        """What a layer reads, its part of the state, and what its convolution leaves for the next window."""
        if not self.convolutions:
            return xs, state, ()
        *of_layer, before = state
        outputs, held = self.convolutions[index](xs, before)
        return outputs, tuple(of_layer), (held,)

    def initialise(self, rules: config.Initialisation) -> None:
        if self.into is not None:
            fill(self.into, rules.input, self.into.shape[1])
        for index, layer in enumerate(layers_of(self)):
            if self.convolutions:
                convolutions_of(self)[index].initialise()
            layer.initialise(rules)
            if self.feeds:
                feed = self.feeds[index]
                assert isinstance(feed, FeedForward)
                feed.initialise(rules)


def convolutions_of(core: ResidualCore) -> list[Convolution]:
    """The convolutions, lowest block first; none where blocks have none."""
    return [each for each in core.convolutions if isinstance(each, Convolution)]
