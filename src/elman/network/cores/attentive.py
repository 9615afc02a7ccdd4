"""A decoder: recurrent layers with attention to a source, which is part of their state (Luong et al. 2015).

Attention scores every position of the source and reads their weighted mean. B sequences, T queries each, S positions of
the source, D the width of a query, M of the memory, A of the attention layer.
"""

import math
from abc import ABC, abstractmethod
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from elman import config
from elman.config.record import Positive, Rate
from elman.errors import UserError
from elman.network.cells.cell import Step, Weights
from elman.network.cores.core import RecurrentCore, Surroundings, Trace
from elman.network.cores.stack import Stack, StackCore, build_stack
from elman.network.dropout import Dropout
from elman.network.fast.matmul import linear
from elman.network.initialisation import fill
from elman.network.state import State, leaves, select

Feed = Literal["nothing", "output", "context"]


class Attention(nn.Module, ABC):
    """Scores of a memory under queries; the part that depends on the memory alone, its keys, is computed once."""

    @abstractmethod
    def keys(self, memory: Tensor) -> Tensor:
        """The keys [B, S, _] of a memory [B, S, M]."""

    def scores(self, query: Tensor, keys: Tensor) -> Tensor:
        """Scores [B, T, S] of queries [B, T, D]: inner products with the keys, where nothing else is defined."""
        return query @ keys.transpose(1, 2)


class Dot(Attention):
    """score(h, m) = h . m (Luong et al. 2015, eq. 8); queries and memory have one width."""

    def keys(self, memory: Tensor) -> Tensor:
        return memory


class General(Attention):
    """score(h, m) = h . W_a m (Luong et al. 2015, eq. 8)."""

    def __init__(self, query_size: int, memory_size: int) -> None:
        super().__init__()
        self.memory = nn.Linear(memory_size, query_size, bias=False)

    def keys(self, memory: Tensor) -> Tensor:
        return self.memory(memory)


class Additive(Attention):
    """score(h, m) = v . tanh(W_a h + U_a m) (Bahdanau et al. 2015, appendix A.1.2)."""

    def __init__(self, query_size: int, memory_size: int, size: int) -> None:
        super().__init__()
        self.query = nn.Linear(query_size, size, bias=False)
        self.memory = nn.Linear(memory_size, size, bias=False)
        self.vector = nn.Parameter(torch.empty(size).uniform_(-1 / math.sqrt(size), 1 / math.sqrt(size)))

    def keys(self, memory: Tensor) -> Tensor:
        return self.memory(memory)

    def scores(self, query: Tensor, keys: Tensor) -> Tensor:
        """The sum over A of [B, T, S, A]: for this score memory grows with T S A."""
        return (self.query(query).unsqueeze(2) + keys.unsqueeze(1)).tanh() @ self.vector


def attend(scores: Tensor, memory: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Read a memory [B, S, M] with scores [B, T, S]; the mask [B, S] is false at padding.

    Returns:
        contexts [B, T, M], the means of the memory under the weights, and the weights [B, T, S] = softmax(scores). The
        weights of padding are exactly zero, also in a row that is all padding.
    """
    hidden = ~mask.unsqueeze(1)
    least = torch.finfo(scores.dtype).min
    weights = scores.masked_fill(hidden, least).softmax(-1).masked_fill(hidden, 0.0)
    return weights @ memory, weights


class Attentive(config.Core, frozen=True, tag="attentive"):
    """A stack with attention; `size` and the additive score's `score_size` are by default its last layer's size."""

    stack: Stack
    score: Literal["dot", "general", "additive"] = "general"
    size: Positive | None = None
    score_size: Positive | None = None
    feed: Feed = "nothing"
    output_dropout: Rate = 0.0

    def build(self, surroundings: Surroundings) -> "AttentiveCore":
        """The decoder; raises UserError where there is no source, or widths do not fit one."""
        memory, query, locked = surroundings.memory_size, self.stack.sizes[-1], surroundings.locked
        if memory is None:
            raise UserError(
                'model.core.kind = "attentive" needs a source, but there is no model.source; describe its reader, such'
                " as source = { stack = { sizes = [200] } }"
            )
        if self.score == "dot" and query != memory:
            raise UserError(
                'model.core.score = "dot" needs a decoder as wide as the memory, but the last of model.core.stack.sizes'
                f" is {query} and the source is read into {memory} (both directions together); make them equal, or use"
                ' "general"'
            )
        size = self.size or query
        stack = build_stack(self.stack, surroundings.input_size + fed_size(self.feed, memory, size), locked=locked)
        attention: Attention
        match self.score:
            case "dot":
                attention = Dot()
            case "general":
                attention = General(query, memory)
            case "additive":
                attention = Additive(query, memory, self.score_size or size)
        dropout = self.output_dropout
        return AttentiveCore(stack, attention, memory, size, feed=self.feed, output_dropout=dropout, locked=locked)


class AttentiveCore(RecurrentCore):
    """Layers h_t, a context c_t of the source, and the attention layer a_t (Luong et al. 2015, eq. 5).

        a_t = tanh(W_c [c_t; h_t])

    is the last level of the trace. The state is (layers, memory, fed): memory = (vectors [B, S, M], keys [B, S, _],
    mask [B, S]) is made by `prepare` and does not change, so a conditional model is a language model whose state was
    prepared. Without a source c_t = 0. The output dropout also acts on a_t where it is fed.

    The layers read the symbol's vector x_t and, by `feed`:

        "nothing"   [x_t]             c_t is read by h_t; the steps are one fused sequence
        "output"    [x_t; a_{t-1}]    input feeding (Luong et al. 2015, section 3.3)
        "context"   [x_t; c_t]        c_t is read by h_{t-1} (Bahdanau et al. 2015, section 3.1; there the output reads
                                      c_t and h_{t-1} through a maxout layer, here c_t and h_t through the attention
                                      layer)
    """

    def __init__(
        self,
        stack: StackCore,
        attention: Attention,
        memory_size: int,
        size: int,
        *,
        feed: Feed,
        output_dropout: float = 0.0,
        locked: bool = True,
    ) -> None:
        super().__init__()
        self.stack, self.attention, self.feed = stack, attention, feed
        self.output_dropout = Dropout(output_dropout, locked=locked)
        self.fed_size = fed_size(feed, memory_size, size)
        self.memory_size = memory_size
        self.combine = nn.Linear(memory_size + stack.dims[-1], size, bias=False)
        self.dims = (stack.dims[0] - self.fed_size, *stack.dims[1:], size)

    def begin(self, batch: int) -> State:
        vectors = self.combine.weight.new_zeros(1, batch, self.memory_size)
        return self.prepare(vectors, vectors.new_zeros(1, batch, dtype=torch.bool), self.stack.begin(batch))

    def prepare(self, memory: Tensor, mask: Tensor, layers: State) -> State:
        """The state before the first symbol: a memory [S, B, M], its mask [S, B], and the first state of the layers."""
        vectors = memory.transpose(0, 1).contiguous()
        fed = (vectors.new_zeros(len(vectors), self.fed_size),) if self.feed == "output" else ()
        return layers, (vectors, self.attention.keys(vectors), mask.t().contiguous()), fed

    def reorder(self, state: State, rows: Tensor) -> State:
        """Exchange rows that have the same source; the memory, most of a state, is not copied."""
        layers, memory, fed = state
        return select(layers, rows), memory, select(fed, rows)

    def forward(self, x: Float[Tensor, "T B E"], state: State) -> tuple[Trace, State]:
        if self.feed != "nothing":
            return self._step_by_step(x, state)
        layers, memory, fed = state
        trace, layers = self.stack(x, layers)
        context, looks = self._look(trace.top, memory)
        output = linear(torch.cat([context, trace.top], -1), self.combine.weight).tanh()
        return Trace((*trace.levels, self.output_dropout(output)), (*trace.raw, output), looks), (layers, memory, fed)

    def _step_by_step(self, x: Tensor, state: State) -> tuple[Trace, State]:
        """One symbol after another; the symbols' part of the first product and all masks are computed beforehand."""
        parts, memory, fed = state
        layers, fed = [tuple(leaves(layer)) for layer in parts], tuple(leaves(fed))
        cells = self.stack.stepwise(layers)
        from_symbols, cells[0] = _hoist(x, cells[0])
        masks = [*self.stack.masks(x), self.output_dropout.mask(x, self.combine.weight.shape[0])]
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
                given = weights if index else weights.replaced(bias_ih=from_symbol)
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

    def initialise(self, rules: config.Initialisation) -> None:
        self.stack.initialise(rules)
        for parameter in (*self.attention.parameters(), self.combine.weight):
            fill(parameter, rules.input, parameter.shape[-1])

    def _look(self, query: Tensor, memory: State) -> tuple[Tensor, Tensor]:
        """Contexts [T, B, M] and weights [T, B, S] of queries [T, B, D]."""
        vectors, keys, mask = leaves(memory)
        contexts, weights = attend(self.attention.scores(query.transpose(0, 1), keys), vectors, mask)
        return contexts.transpose(0, 1), weights.transpose(0, 1)


def _hoist(x: Tensor, cell: tuple[Step, Weights]) -> tuple[Tensor, tuple[Step, Weights]]:
    """W x + b [T, B, G*H] of the symbols' vectors [T, B, E], to be the bias of each step, and the cell without W."""
    step, weights = cell
    of_symbol, of_fed = weights.weight_ih[:, : x.shape[-1]], weights.weight_ih[:, x.shape[-1] :]
    return linear(x, of_symbol.contiguous(), weights.bias_ih), (step, weights.replaced(weight_ih=of_fed.contiguous()))


def _masked(x: Tensor, mask: Tensor | None, t: int) -> Tensor:
    return x if mask is None else x * mask[t]


def fed_size(feed: Feed, memory_size: int, size: int) -> int:
    """The width of what layers read in addition to the symbol's vector."""
    return {"nothing": 0, "output": size, "context": memory_size}[feed]
