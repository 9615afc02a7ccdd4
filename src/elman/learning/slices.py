"""A batch computed in slices: parts of its columns, each with its own dropout masks, by one process or by several.

The gradient does not depend on who computes a slice. A slice is a fixed range of columns; its masks are drawn from a
generator seeded by (seed, step, slice); and the gradients of slices are added as a balanced tree, neighbours first.
"""

import contextlib
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import torch
from torch import Tensor, nn

from elman.data.batches import Batch, Whole
from elman.data.windows import Part, Summed
from elman.errors import UserError
from elman.learning.team import Team
from elman.network.device import random_states, restore_random_states, widest
from elman.network.state import State, concatenate, map_state, select
from elman.objective.loss import Loss

Learn = Callable[[Batch, State | None], tuple[Loss, State | None]]
"""From columns of a batch and the state before them to their loss and the state after; adds to every `.grad`."""


class Slices:
    """`count` slices of every batch, of which this process of a team computes its share.

    Memory: activations of one slice, and 2 + log2(slices of a process) gradients.

    Raises UserError where the team does not divide the slices.
    """

    def __init__(self, count: int, seed: int, team: Team) -> None:
        if count % team.size:
            raise UserError(
                f"training.slices = {count}: {team.size} processes cannot share them equally; set training.slices to a"
                f" multiple of {team.size} when the run is begun, or start fewer processes"
            )
        each = count // team.size
        self.count, self.seed, self.team = count, seed, team
        self.own = range(team.rank * each, (team.rank + 1) * each)

    def columns(self, total: int, slices: range) -> slice:
        """The columns of neighbouring slices of a batch of `total` columns."""
        return slice(slices.start * total // self.count, slices.stop * total // self.count)

    def own_rows(self, state: State) -> State:
        """The rows of a whole batch's state that belong to this process."""
        return map_state(lambda leaf: leaf[self.columns(len(leaf), self.own)].clone(), state)

    def whole(self, state: State) -> State:
        """The state of the whole batch, from the states of all processes; every process must ask."""
        return map_state(lambda leaf: torch.cat(self._gather(leaf)), state)

    def mean_nll(self, score: Callable[[Part], Summed], device: torch.device) -> float:
        """Nats per target of an evaluation in `count` parts, added in their order; every process computes its share."""
        own = [score(Part(index, self.count)) for index in self.own]
        sums = torch.tensor([[one.nll_sum, one.count] for one in own], dtype=widest(device), device=device)
        parts = torch.cat(self.team.gather(sums)).tolist()
        return float(sum(nll for nll, _ in parts) / sum(count for _, count in parts))

    def _gather(self, leaf: Tensor) -> list[Tensor]:
        if self.team.size == 1:
            return [leaf]
        sizes = [int(size) for size in self.team.gather(torch.tensor([len(leaf)], device=leaf.device))]
        padded = leaf.new_zeros(max(sizes), *leaf.shape[1:])
        padded[: len(leaf)] = leaf
        return [found[:size] for found, size in zip(self.team.gather(padded), sizes, strict=True)]

    def gradient(
        self, learn: Learn, parameters: Sequence[nn.Parameter], batch: Batch, state: State | None, step: int
    ) -> tuple[Loss, State | None]:
        """Set every `.grad` to the gradient of the batch's loss; parameters it does not depend on have one of zeros.

        `state` and the state returned belong to this process's columns, the loss to the whole batch. `step`
        numbers the steps of training: each has its own masks.
        """
        total = batch.num_columns
        whole, first, states = Whole.of(batch), self.columns(total, self.own).start, list[State | None]()

        def one(index: int) -> tuple[Tensor, Tensor]:
            rows = self.columns(total, range(index, index + 1))
            if rows.start == rows.stop:
                flat = parameters[0].new_zeros(sum(map(torch.numel, parameters)))
                return flat, torch.zeros(len(Loss._fields), dtype=widest(flat.device), device=flat.device)
            for parameter in parameters:
                parameter.grad = None
            before = None if state is None else select(state, slice(rows.start - first, rows.stop - first))
            with masks_of(self.seed, step, index):
                loss, after = learn(batch.columns(rows)._replace(whole=whole), before)
            states.append(after)
            gradients = (torch.zeros_like(one) if one.grad is None else one.grad for one in parameters)
            flat = torch.cat([one.flatten() for one in gradients])
            return flat, torch.stack([part.detach().to(widest(part.device)) for part in loss])

        def tree(slices: range) -> tuple[Tensor, Tensor]:
            if len(slices) == 1:
                return one(slices.start)
            middle = slices.start + len(slices) // 2
            left, right = tree(range(slices.start, middle)), tree(range(middle, slices.stop))
            for into, other in zip(left, right, strict=True):
                into.add_(other)
            return left

        gradient, losses = tree(self.own)
        self.team.add([gradient, losses])
        for parameter, part in zip(parameters, gradient.split([one.numel() for one in parameters]), strict=True):
            parameter.grad = part.view_as(parameter)
        found = [one for one in states if one is not None]
        return Loss(*losses), concatenate(found) if found else None


@contextlib.contextmanager
def masks_of(seed: int, step: int, index: int) -> Iterator[None]:
    """Within the block torch draws the random numbers of one slice of one step; then it continues as before."""
    own, before = np.random.SeedSequence([seed, step, index]).generate_state(1, np.uint64), random_states()
    try:
        torch.manual_seed(int(own[0]))
        yield
    finally:
        restore_random_states(before)
