"""What training minimises over a window: the negative log-likelihood, reduced in one of two ways.

Learning rates and clipping thresholds belong to the one they were tuned with.
"""

from torch import Tensor

from elman.config.training import Criterion
from elman.data.batches import Batch
from elman.network.output.contexts import Contexts
from elman.network.output.layer import OutputLayer


class Mean(Criterion, frozen=True, tag="mean"):
    """The mean over the positions that count (AWD-LSTM)."""

    def __call__(self, output: OutputLayer, contexts: Contexts, batch: Batch, counted: Tensor) -> tuple[Tensor, Tensor]:
        """The mean, and each NLL."""
        count = counted.sum() if batch.whole is None else batch.whole.counted.to(counted.dtype)
        return output.nll(contexts, batch.targets, counted * (1.0 / count))


class Sum(Criterion, frozen=True, tag="sum"):
    """The sum over the steps, and the mean over the columns (Zaremba et al. 2014; thesis 3.5)."""

    def __call__(self, output: OutputLayer, contexts: Contexts, batch: Batch, counted: Tensor) -> tuple[Tensor, Tensor]:
        """The sum, and each NLL."""
        columns = batch.targets.shape[1] if batch.whole is None else batch.whole.columns
        return output.nll(contexts, batch.targets, counted * (1.0 / columns))
