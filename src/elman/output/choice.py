"""How one of V symbols is chosen, given a context.

N positions, K contexts a position, D their width, V symbols.
"""

from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn


class Choice(nn.Module, ABC):
    """p(symbol | context). Two methods say what it is; the two for mixtures may be overridden by faster ones."""

    @abstractmethod
    def log_probs(self, context: Tensor) -> Tensor:
        """Log-probabilities [N, K, V] of all symbols given contexts [N, K, D]."""

    @abstractmethod
    def log_prob(self, context: Tensor, target: Tensor) -> Tensor:
        """Log-probability [N, K] of target [N] under each context [N, K, D]."""

    def mixture_log_prob(self, context: Tensor, log_prior: Tensor, target: Tensor) -> Tensor:
        """Log sum_k exp(log_prior_k) p(target | context_k), [N]."""
        return torch.logsumexp(log_prior + self.log_prob(context, target), dim=-1)

    def mixture_nll(
        self, context: Tensor, log_prior: Tensor, target: Tensor, position_weight: Tensor
    ) -> tuple[Tensor, Tensor]:
        """The sum of position_weight * -mixture_log_prob, differentiable, and each position's NLL [N], detached."""
        nll = -self.mixture_log_prob(context, log_prior, target)
        return (position_weight * nll).sum(), nll.detach()
