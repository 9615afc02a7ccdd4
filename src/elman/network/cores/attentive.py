"""A decoder: recurrent layers that look at a source, which is part of their state (Luong et al. 2015)."""

import math
from abc import ABC, abstractmethod
from typing import Literal

import torch
from torch import Tensor, nn

from elman.network.cells.cell import Step, Weights
from elman.network.cores.core import RecurrentCore, Trace
from elman.network.cores.stack import Stack
from elman.network.kernels.matmul import linear
from elman.network.state import State, select


# FOLDED cores/attention.py: How a decoder looks at a source: a score for every position of it, and the mean of them so weighted.
#
# B sequences, T queries each, S positions of the source, D the width of a query, M that of the memory, A in
# between.
class Attention(nn.Module, ABC):
    """Scores of a memory under queries. What depends on the memory alone is formed once a source, as its keys."""

    @abstractmethod
    def keys(self, memory: Tensor) -> Tensor:
        """What queries are compared with, [B, S, _], of a memory [B, S, M]."""

    @abstractmethod
    def scores(self, query: Tensor, keys: Tensor) -> Tensor:
        """Scores [B, T, S] of queries [B, T, D]."""


class Dot(Attention):
    """score(h, m) = h . m (Luong et al. 2015, eq. 8); queries and memory have one width."""

    def keys(self, memory: Tensor) -> Tensor:
        """The memory itself."""
        return memory

    def scores(self, query: Tensor, keys: Tensor) -> Tensor:
        """Inner products."""
        return query @ keys.transpose(1, 2)


class General(Attention):
    """score(h, m) = h . W_a m (Luong et al. 2015, eq. 8)."""

    def __init__(self, query_size: int, memory_size: int) -> None:
        super().__init__()
        self.memory = nn.Linear(memory_size, query_size, bias=False)

    def keys(self, memory: Tensor) -> Tensor:
        """W_a m."""
        mapped: Tensor = self.memory(memory)
        return mapped

    def scores(self, query: Tensor, keys: Tensor) -> Tensor:
        """Inner products."""
        return query @ keys.transpose(1, 2)


class Additive(Attention):
    """score(h, m) = v . tanh(W_a h + U_a m) (Bahdanau et al. 2015, appendix A.1.2)."""

    def __init__(self, query_size: int, memory_size: int, size: int) -> None:
        super().__init__()
        self.query = nn.Linear(query_size, size, bias=False)
        self.memory = nn.Linear(memory_size, size, bias=False)
        self.vector = nn.Parameter(torch.empty(size).uniform_(-1 / math.sqrt(size), 1 / math.sqrt(size)))

    def keys(self, memory: Tensor) -> Tensor:
        """U_a m."""
        mapped: Tensor = self.memory(memory)
        return mapped

    def scores(self, query: Tensor, keys: Tensor) -> Tensor:
        """The sum over A of [B, T, S, A]: for this score memory grows with T S A."""
        return (self.query(query).unsqueeze(2) + keys.unsqueeze(1)).tanh() @ self.vector


def attend(scores: Tensor, memory: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Read a memory [B, S, M] where the mask [B, S] has a symbol.

    Returns:
        contexts [B, T, M], the means of the memory under weights [B, T, S] in proportion to exp(scores); the weights
        of padding are exactly zero, and so are all weights where nothing but padding is there.

    """
    hidden = ~mask.unsqueeze(1)
    least = torch.finfo(scores.dtype).min
    weights = scores.masked_fill(hidden, least).softmax(-1).masked_fill(hidden, 0.0)
    return weights @ memory, weights


# TARGET
Feed = Literal["nothing", "output", "context"]


class AttentiveCore(RecurrentCore):
    """Layers h_t, a context c_t of the source, and the attention layer a_t (Luong et al. 2015, eq. 5).

        a_t = tanh(W_c [c_t; h_t])

    is the last level of the trace. The state is (layers, memory, fed): memory = (vectors [B, S, M], keys
    [B, S, _], mask [B, S]) stays as `prepare` made it, so a conditional model is a language model whose state was
    prepared. Without a source c_t = 0.

    What enters the layers beside the symbol, x_t:

        "nothing"   [x_t]             c_t is read by h_t; the steps are one fused sequence
        "output"    [x_t; a_{t-1}]    input feeding (Luong et al. 2015, section 3.3)
        "context"   [x_t; c_t]        c_t is read by h_{t-1} (Bahdanau et al. 2015, section 3.1; there the output reads
                                      c_t and h_{t-1} through a maxout layer, here c_t and h_t through the attention
                                      layer)

    Args:
        stack: the layers; the first takes the symbol's vector and what is fed.
        attention: the scores.
        memory_size: M.
        size: width A of the attention layer.
        feed: see above.
        after: dropout rate on the attention layer; what is dropped is not fed either.

    """

    def __init__(
        self, stack: Stack, attention: Attention, memory_size: int, size: int, *, feed: Feed, after: float = 0.0
    ) -> None:
        super().__init__()
        self.stack, self.attention, self.feed, self.after = stack, attention, feed, after
        self.fed_size = fed_size(feed, memory_size, size)
        self.memory_size = memory_size
        self.combine = nn.Linear(memory_size + stack.dims[-1], size, bias=False)
        self.dims = (stack.dims[0] - self.fed_size, *stack.dims[1:], size)

    def begin(self, batch: int) -> State:
        """Zeros, and no source."""
        vectors = self.combine.weight.new_zeros(1, batch, self.memory_size)
        return self.prepare(vectors, vectors.new_zeros(1, batch, dtype=torch.bool), self.stack.begin(batch))

    def prepare(self, memory: Tensor, mask: Tensor, layers: State) -> State:
        """The state before the first symbol.

        Args:
            memory: of the source, [S, B, M].
            mask: which positions of it count, bool [S, B].
            layers: the state that the layers begin with.

        """
        vectors = memory.transpose(0, 1).contiguous()
        fed = (vectors.new_zeros(len(vectors), self.fed_size),) if self.feed == "output" else ()
        return layers, (vectors, self.attention.keys(vectors), mask.t().contiguous()), fed

    def reorder(self, state: State, rows: Tensor) -> State:
        """Exchange rows that have one source: the memory, which is most of a state, is left where it is."""
        layers, memory, fed = state
        return select(layers, rows), memory, select(fed, rows)

    def forward(self, x: Tensor, state: State) -> tuple[Trace, State]:
        """Run over x [T, B, E]."""
        return self._at_once(x, state) if self.feed == "nothing" else self._step_by_step(x, state)

    def _at_once(self, x: Tensor, state: State) -> tuple[Trace, State]:
        layers, memory, fed = state
        trace, layers = self.stack(x, layers)
        context, looks = self._look(trace.top, memory)
        output = linear(torch.cat([context, trace.top], -1), self.combine.weight).tanh()
        dropped = self.stack.drop(output, self.after if self.training else 0.0)
        return Trace((*trace.levels, dropped), (*trace.raw, output), looks), (layers, memory, fed)

    def _step_by_step(self, x: Tensor, state: State) -> tuple[Trace, State]:
        """The same one symbol after another; the symbols' part of the first product and all masks are made before."""
        (*layers,), memory, fed = state
        cells = self.stack.stepwise(layers)
        from_symbols, cells[0] = _hoist(x, cells[0])
        masks = [*self.stack.masks(x), self.stack.mask(x, self.combine.weight.shape[0], self.after)]
        steps: list[list[Tensor]] = []
        looks = []
        for t, from_symbol in enumerate(from_symbols):
            if self.feed == "context":
                context, look = self._look(layers[-1][0].unsqueeze(0), memory)
                below = context.squeeze(0)
            else:
                (below,) = fed
            raw = []
            for index, (step, weights) in enumerate(cells):
                given = weights if index else weights._replace(input_bias=from_symbol)
                layers[index] = step(given, below, layers[index])
                raw.append(layers[index][0])
                below = _masked(raw[-1], masks[index], t)
            if self.feed == "output":
                context, look = self._look(below.unsqueeze(0), memory)
            raw.append(linear(torch.cat([context.squeeze(0), below], -1), self.combine.weight).tanh())
            if self.feed == "output":
                fed = (_masked(raw[-1], masks[-1], t),)
            steps.append(raw)
            looks.append(look)
        outputs = [torch.stack(level) for level in zip(*steps, strict=True)]
        dropped = [output if mask is None else output * mask for output, mask in zip(outputs, masks, strict=True)]
        return Trace((x, *dropped), (x, *outputs), torch.cat(looks)), (tuple(layers), memory, fed)

    def _look(self, query: Tensor, memory: State) -> tuple[Tensor, Tensor]:
        """Contexts [T, B, M] and weights [T, B, S] of queries [T, B, D]."""
        vectors, keys, mask = memory
        contexts, weights = attend(self.attention.scores(query.transpose(0, 1), keys), vectors, mask)
        return contexts.transpose(0, 1), weights.transpose(0, 1)


def fed_size(feed: Feed, memory_size: int, size: int) -> int:
    """How wide is what enters the layers beside the symbol."""
    return {"nothing": 0, "output": size, "context": memory_size}[feed]


def _hoist(x: Tensor, cell: tuple[Step, Weights]) -> tuple[Tensor, tuple[Step, Weights]]:
    """W x + b [T, B, G*H] of the symbols' vectors [T, B, E], to serve as the bias of each step, and what is left."""
    step, weights = cell
    of_symbol, of_fed = weights.input.split((x.shape[-1], weights.input.shape[1] - x.shape[-1]), dim=1)
    return linear(x, of_symbol.contiguous(), weights.input_bias), (step, weights._replace(input=of_fed.contiguous()))


def _masked(x: Tensor, mask: Tensor | None, t: int) -> Tensor:
    return x if mask is None else x * mask[t]
