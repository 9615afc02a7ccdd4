"""A penalty on the size of the state, of which few units should be far from 0: weight * mean |h_t|."""

from torch import Tensor

from elman.config.training import Penalty
from elman.data.batches import Whole
from elman.objective.criteria import Seen


class Sparsity(Penalty, frozen=True, tag="sparsity"):
    """Over the steps of the last layer that count."""

    def __call__(self, seen: Seen) -> Tensor:
        """The penalty over a window."""
        sizes, batch = seen.trace.raw[-1].abs().mean(dim=-1), seen.batch
        if batch.mask is None:
            return self.weight * sizes.mean() * batch.share
        counted = (batch.whole or Whole.of(batch)).counted.clamp(min=1)
        return self.weight * (sizes * batch.mask).sum() / counted
