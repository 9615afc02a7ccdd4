"""What training minimises over a window: the negative log-likelihood, reduced in one of two ways.

Learning rates and clipping thresholds belong to the one they were tuned with.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from elman.config.training import Criterion
from elman.data.batches import Batch, Whole
from elman.network.cores.core import Trace
from elman.network.model import LanguageModel
from elman.network.output.choice import Choice
from elman.network.output.contexts import Contexts


class Seen(NamedTuple):
    """A window, and what a model made of it, from which losses and penalties are computed."""

    model: LanguageModel
    trace: Trace
    contexts: Contexts
    batch: Batch

    @property
    def counted(self) -> Tensor:
        """1 where a position [T, B] counts, 0 elsewhere."""
        mask, top = self.batch.mask, self.trace.top
        return top.new_ones(top.shape[:2]) if mask is None else mask.to(top.dtype)

    @property
    def log_probs(self) -> Tensor:
        """Log-probabilities [T, B, V] of all symbols."""
        choice, (vectors, log_prior) = self.model.output.choice, self.contexts
        assert isinstance(choice, Choice), "there are too many frames to list"
        listed = choice.log_probs(vectors.flatten(0, 1)).unflatten(0, vectors.shape[:2])
        return torch.logsumexp(log_prior.unsqueeze(-1) + listed, dim=-2)

    def mean(self, values: Tensor) -> Tensor:
        """The mean of values [T, B] over the positions that count; of a part of a batch its share of the batch's."""
        if self.batch.mask is None:
            return values.mean() * self.batch.share
        return (values * self.batch.mask).sum() / (self.batch.whole or Whole.of(self.batch)).counted.clamp(min=1)


class Mean(Criterion, frozen=True, tag="mean"):
    """The mean over the positions that count (AWD-LSTM)."""

    def __call__(self, seen: Seen) -> tuple[Tensor, Tensor]:
        """The mean, and each NLL."""
        batch, counted = seen.batch, seen.counted
        count = counted.sum() if batch.whole is None else batch.whole.counted.to(counted.dtype)
        return seen.model.output.nll(seen.contexts, batch.targets, counted * (1.0 / count.clamp(min=1)))


class Sum(Criterion, frozen=True, tag="sum"):
    """The sum over the steps, and the mean over the columns (Zaremba et al. 2014; thesis 3.5)."""

    def __call__(self, seen: Seen) -> tuple[Tensor, Tensor]:
        """The sum, and each NLL."""
        batch = seen.batch
        columns = batch.targets.shape[1] if batch.whole is None else batch.whole.columns
        return seen.model.output.nll(seen.contexts, batch.targets, seen.counted * (1.0 / columns))
