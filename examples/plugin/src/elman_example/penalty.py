"""A penalty on the norm of the state (Krueger & Memisevic 2016, ICLR): weight * mean (|h_t+1| - |h_t|)^2."""

from torch import Tensor

from elman.config.training import Penalty
from elman.data.batches import Whole, pairs_of
from elman.objective.criteria import Seen


class NormStabiliser(Penalty, frozen=True, tag="norm-stabiliser"):
    """Over the pairs of neighbouring steps of the last layer that both count."""

    def __call__(self, seen: Seen) -> Tensor:
        """The penalty over a window."""
        norms, batch = seen.trace.raw[-1].norm(dim=-1), seen.batch
        changes = (norms[1:] - norms[:-1]).square()
        if batch.mask is None:
            return self.weight * changes.mean() * batch.share
        pairs = (batch.whole or Whole.of(batch)).pairs.clamp(min=1)
        return self.weight * (changes * pairs_of(batch.mask)).sum() / pairs
