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

    The state of the automaton is a value like that of a model (`elman.network.state`): tuples of tensors [N, ...] that
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

    The search of a source is over when K hypotheses have ended, or at the limit, where all must end. It does not depend
    on the other sources of the batch. The model is in evaluation mode, the source [S, B] on its device; `end` precedes
    and ends a target. A constraint excludes other targets; probabilities remain those of the model.

    Raises UserError where probabilities are not numbers, since the model has diverged.
    """
    search = _Search(model, source, beam, end, tuple(forbidden), constraint)
    while search.alive:
        search.step()
    return [sorted(found, key=lambda one: -one.score)[: beam.nbest] for found in search.ended]


class _Search:
    def __init__(
        self,
        model: SequenceToSequence,
        source: Source,
        beam: Beam,
        end: int,
        forbidden: tuple[int, ...],
        constraint: Constraint | None,
    ) -> None:
        lengths = source.mask.sum(0)
        num_sources, device = len(lengths), source.mask.device
        self.model, self.beam, self.end, self.forbidden, self.constraint = model, beam, end, forbidden, constraint
        self.lengths = lengths.tolist()
        # How long targets may be, without their end.
        self.limits = 2 * lengths + 10 if beam.max_length is None else torch.full_like(lengths, beam.max_length)
        self.alive, self.ended = list(range(num_sources)), [list[Hypothesis]() for _ in range(num_sources)]
        rows = torch.arange(num_sources, device=device).repeat_interleave(beam.size)
        self.state = select(model.read(source), rows)
        self.total = torch.full((num_sources, beam.size), -torch.inf, dtype=widest(device), device=device)
        self.total[:, 0] = 0.0
        self.symbols = torch.full((len(rows), 1), end, device=device)
        self.attention = torch.zeros(len(rows), 0, len(source.mask), device=device)
        self.place = None if constraint is None else constraint.begin(lengths[rows], self.limits[rows])

    def step(self) -> None:
        """Add one symbol to all hypotheses."""
        trace, self.state = self.model.trace(self.symbols[:, -1].unsqueeze(0), self.state)
        none = self.attention.new_zeros(len(self.attention), 1, self.attention.shape[2])
        weights = none if trace.attention is None else trace.attention.transpose(0, 1)
        self.attention = torch.cat([self.attention, weights], 1)
        log_probs = self.model.output.log_probs(trace).squeeze(0).to(self.total.dtype)
        require_numbers(log_probs)
        values, parents, symbols = self._candidates(log_probs.unflatten(0, self.total.shape))
        ends = (symbols == self.end) & values.isfinite()
        self._keep_ended(values, parents, ends[:, : self.beam.size])
        values = values.masked_fill(ends, -torch.inf)
        order = values.isinf().int().argsort(dim=1, stable=True)[:, : self.beam.size]
        self.total = values.gather(1, order)
        first = torch.arange(len(parents), device=parents.device).unsqueeze(1) * self.beam.size
        parents = parents.gather(1, order) + first
        self._continue(parents.flatten(), symbols.gather(1, order).flatten())

    def _candidates(self, log_probs: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The best 2 K continuations of log_probs [B, K, V]: totals, hypotheses they continue, symbols, [B, 2 K]."""
        num_symbols = log_probs.shape[-1]
        if self.forbidden:
            log_probs[..., list(self.forbidden)] = -torch.inf
        if self.constraint is not None and self.place is not None:
            allowed = self.constraint.allowed(self.place).view_as(log_probs)
            log_probs = log_probs.masked_fill(~allowed, -torch.inf)
        must_end = self.limits[self.alive] < self.attention.shape[1]
        if must_end.any():
            others = torch.arange(num_symbols, device=must_end.device) != self.end
            log_probs = log_probs.masked_fill(must_end.view(-1, 1, 1) & others, -torch.inf)
        totals = (self.total.unsqueeze(-1) + log_probs).flatten(1)
        ranks = torch.arange(totals.shape[1], dtype=totals.dtype, device=totals.device)
        places = (totals - TIE * ranks).topk(min(2 * self.beam.size, totals.shape[1])).indices
        return totals.gather(1, places), places // num_symbols, places % num_symbols

    def _keep_ended(self, values: Tensor, parents: Tensor, ends: Tensor) -> None:
        for block, place in ends.nonzero().tolist():
            row, of = block * self.beam.size + int(parents[block, place]), self.alive[block]
            attention = self.attention[row, :, : self.lengths[of]].float().cpu().numpy()
            log_prob = float(values[block, place])
            symbols = self.symbols[row, 1:].tolist()
            self.ended[of].append(Hypothesis(symbols, log_prob, self.beam.score(log_prob, attention), attention))

    def _continue(self, rows: Tensor, symbols: Tensor) -> None:
        over = self.total.isinf().all(1).tolist()
        left = [
            block for block, of in enumerate(self.alive) if not over[block] and len(self.ended[of]) < self.beam.size
        ]
        if len(left) == len(self.alive):
            self.state = self.model.reorder(self.state, rows)
        else:
            self.total, self.alive = self.total[left], [self.alive[block] for block in left]
            rows, symbols = (part.view(-1, self.beam.size)[left].flatten() for part in (rows, symbols))
            self.state = select(self.state, rows)
        self.symbols = torch.cat([self.symbols[rows], symbols.unsqueeze(1)], 1)
        self.attention = self.attention[rows]
        if self.constraint is not None and self.place is not None:
            self.place = self.constraint.advance(select(self.place, rows), symbols)
