"""Words too rare to learn an output of their own share one."""

import math
from itertools import pairwise
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor, nn

from elman import config
from elman.config.record import Positive
from elman.errors import UserError
from elman.network.output.choice import NLL, Choice, Each, PerContext, Surroundings, Targets, Vectors
from elman.network.output.flat import FlatChoice


class RareClass(config.Choice, frozen=True, tag="rare-class"):
    """One output for all words with fewer than `threshold` occurrences."""

    threshold: Positive
    bias: bool = True


@final
class RareClassChoice(Choice, of=RareClass):
    """p(y) = p(rare) / number of rare words for a rare word, p(y) for another (Mikolov et al. 2010, eq. 7).

    Words are numbered by falling frequency, so the rare ones are the last.
    """

    def __init__(self, record: RareClass, surroundings: Surroundings) -> None:
        super().__init__()
        counts, num_words = surroundings.counts, surroundings.num_outputs
        if counts is None:
            raise UserError('model.output.choice.kind = "rare-class" needs the counts of a vocabulary')
        assert len(counts) == num_words
        assert all(high >= low for high, low in pairwise(counts)), "words by falling frequency"
        self.num_kept = sum(count >= record.threshold for count in counts)
        self.num_rare = num_words - self.num_kept
        if not self.num_kept:
            raise UserError(
                f"model.output.choice.threshold is {record.threshold}, but the most frequent word occurs {counts[0]}"
                " times; lower it"
            )
        weight = nn.Parameter(torch.empty(self.num_kept + min(1, self.num_rare), surroundings.size))
        self.outputs = FlatChoice(weight, surroundings.activation, bias=record.bias)

    @property
    def fast(self) -> bool:
        return self.outputs.fast

    @fast.setter
    def fast(self, value: bool) -> None:
        self.outputs.fast = value

    def log_probs(self, context: Vectors) -> Float[Tensor, "N K V"]:
        found = self.outputs.log_probs(context)
        if not self.num_rare:
            return found
        rare = found[..., -1:] - math.log(self.num_rare)
        return torch.cat([found[..., :-1], rare.expand(*rare.shape[:-1], self.num_rare)], dim=-1)

    def log_prob(self, context: Vectors, target: Targets) -> PerContext:
        output, share = self._split(target)
        return self.outputs.log_prob(context, output) + share.to(context.dtype).unsqueeze(1)

    def mixture_log_prob(self, context: Vectors, log_prior: PerContext, target: Targets) -> Each:
        """As in `Choice`: a word's share of its output is the same under every context."""
        output, share = self._split(target)
        return self.outputs.mixture_log_prob(context, log_prior, output) + share.to(context.dtype)

    def mixture_nll(self, context: Vectors, log_prior: PerContext, target: Targets, position_weight: Each) -> NLL:
        output, share = self._split(target)
        total, each = self.outputs.mixture_nll(context, log_prior, output, position_weight)
        share = share.to(each.dtype)
        return total - (position_weight * share).sum(), each - share

    def multiply_adds(self, frequency: Tensor) -> float:
        return self.outputs.multiply_adds(frequency)

    def _split(self, target: Tensor) -> tuple[Tensor, Tensor]:
        share = (target >= self.num_kept) * -math.log(max(1, self.num_rare))
        return target.clamp(max=self.num_kept), share
