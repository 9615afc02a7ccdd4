"""The most probable targets of a source: greedy search and beam search, many sources in parallel.

B sources, K hypotheses each, V symbols, S positions of the source.
"""

import abc
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from elman.config.inference import Beam
from elman.data.batches import Source
from elman.decoding.sampling import require_numbers
from elman.network.device import widest
from elman.network.seq2seq import SequenceToSequence
from elman.network.state import State, select


class Constraint(abc.ABC):
    """A language of targets, as an automaton over N unfinished targets; V symbols.

    The state of the automaton is a value like a model's (`elman.network.state`): tuples of tensors [N, ...] that
    a search reorders with its hypotheses.
    """

    @abc.abstractmethod
    def begin(self, lengths: Tensor, limits: Tensor) -> State:
        """The state of N targets that have not begun; sources have `lengths` symbols, targets at most `limits`, [N]."""

    @abc.abstractmethod
    def allowed(self, state: State) -> Tensor:
        """Which symbols may come next [N, V], bool: those after which a target of the language can be finished."""

    @abc.abstractmethod
    def advance(self, state: State, symbols: Tensor) -> State:
        """The state after one more symbol of each [N]; the symbol of a discarded target may be any."""


TIE = 1e-12
"""Nats subtracted per rank, so that ties between equal candidates do not depend on the machine."""


class Hypothesis(NamedTuple):
    """A target, without the end symbol; its log-probability (nats) with it, and the score of `Beam`, which ranks it.

    `attention` holds the weights of the positions of the source at each symbol and the end, [T + 1, S]; zeros
    of a model without attention.
    """

    symbols: list[int]
    log_prob: float
    score: float
    attention: npt.NDArray[np.float32]


@torch.inference_mode()
def beam_search(
    model: SequenceToSequence,
    source: Source,
    beam: Beam,
    end: int,
    forbidden: Sequence[int] = (),
    constraint: Constraint | None = None,
) -> list[list[Hypothesis]]:
    """The `nbest` hypotheses of every source, the best first.

    The search of a source is over when K hypotheses have ended and no unfinished one is more probable than they are, or
    at the limit, where all must end. It does not depend on the other sources of the batch. The model is in evaluation
    mode, the source [S, B] on its device; `end` precedes and ends a target. A constraint excludes other targets;
    probabilities remain the model's.

    Raises UserError where probabilities are not numbers, since the model has diverged.
    """
    lengths, device = source.mask.sum(0), source.mask.device
    # How long targets may be, without their end.
    limits = 2 * lengths + 10 if beam.max_length is None else torch.full_like(lengths, beam.max_length)
    alive, ended = list(range(len(lengths))), [list[Hypothesis]() for _ in lengths]
    rows = torch.arange(len(lengths), device=device).repeat_interleave(beam.size)
    state = select(model.read(source), rows)
    total = torch.full((len(lengths), beam.size), -torch.inf, dtype=widest(device), device=device)
    total[:, 0] = 0.0
    written = torch.full((len(rows), 1), end, device=device)
    attention = torch.zeros(len(rows), 0, len(source.mask), device=device)
    place = None if constraint is None else constraint.begin(lengths[rows], limits[rows])
    while alive:
        trace, state = model.trace(written[:, -1].unsqueeze(0), state)
        none = attention.new_zeros(len(attention), 1, attention.shape[2])
        weights = none if trace.attention is None else trace.attention.transpose(0, 1)
        attention = torch.cat([attention, weights], 1)
        log_probs = model.output.log_probs(trace).squeeze(0).to(total.dtype)
        require_numbers(log_probs)
        log_probs = log_probs.unflatten(0, total.shape)
        log_probs[..., list(forbidden)] = -torch.inf
        if constraint is not None and place is not None:
            log_probs = log_probs.masked_fill(~constraint.allowed(place).view_as(log_probs), -torch.inf)
        must_end = limits[alive] < attention.shape[1]
        others = torch.arange(log_probs.shape[-1], device=device) != end
        log_probs = log_probs.masked_fill(must_end.view(-1, 1, 1) & others, -torch.inf)
        values, parents, symbols = _best(total.unsqueeze(-1) + log_probs, 2 * beam.size)
        ends = (symbols == end) & values.isfinite()
        for block, rank in ends[:, : beam.size].nonzero().tolist():
            row, of = block * beam.size + int(parents[block, rank]), alive[block]
            seen = attention[row, :, : int(lengths[of])].float().cpu().numpy()
            log_prob = float(values[block, rank])
            ended[of].append(Hypothesis(written[row, 1:].tolist(), log_prob, beam.score(log_prob, seen), seen))
        values = values.masked_fill(ends, -torch.inf)
        order = values.isinf().int().argsort(dim=1, stable=True)[:, : beam.size]
        total, symbols = values.gather(1, order), symbols.gather(1, order)
        first = torch.arange(len(parents), device=device).unsqueeze(1) * beam.size
        rows = parents.gather(1, order) + first
        likeliest = total.amax(1).tolist()
        found = [-np.inf if len(ended[of]) < beam.size else max(one.log_prob for one in ended[of]) for of in alive]
        left = [block for block in range(len(alive)) if likeliest[block] > found[block]]
        if len(left) == len(alive):
            rows, symbols = rows.flatten(), symbols.flatten()
            state = model.reorder(state, rows)
        else:
            total, alive = total[left], [alive[block] for block in left]
            rows, symbols = rows[left].flatten(), symbols[left].flatten()
            state = select(state, rows)
        written = torch.cat([written[rows], symbols.unsqueeze(1)], 1)
        attention = attention[rows]
        if constraint is not None and place is not None:
            place = constraint.advance(select(place, rows), symbols)
    return [sorted(found, key=lambda one: -one.score)[: beam.nbest] for found in ended]


def _best(totals: Tensor, number: int) -> tuple[Tensor, Tensor, Tensor]:
    """The best continuations of totals [B, K, V]: their totals, the hypotheses they continue, symbols, [B, number]."""
    num_symbols, totals = totals.shape[-1], totals.flatten(1)
    ranks = torch.arange(totals.shape[1], dtype=totals.dtype, device=totals.device)
    places = (totals - TIE * ranks).topk(min(number, totals.shape[1])).indices
    return totals.gather(1, places), places // num_symbols, places % num_symbols
