"""What is drawn given a context: one of V symbols, or a frame of P notes that may sound together.

N positions, K contexts a position, D their width.
"""

from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn


class Conditional(nn.Module, ABC):
    """p(target | context). One method says what it is; the two for mixtures may be overridden by faster ones."""

    @abstractmethod
    def log_prob(self, context: Tensor, target: Tensor) -> Tensor:
        """Log-probability [N, K] of target [N], or frames [N, P], under each context [N, K, D]."""

    def mixture_log_prob(self, context: Tensor, log_prior: Tensor, target: Tensor) -> Tensor:
        """Log sum_k exp(log_prior_k) p(target | context_k), [N]."""
        return torch.logsumexp(log_prior + self.log_prob(context, target), dim=-1)

    def mixture_nll(
        self, context: Tensor, log_prior: Tensor, target: Tensor, position_weight: Tensor
    ) -> tuple[Tensor, Tensor]:
        """The sum of position_weight * -mixture_log_prob, differentiable, and each position's NLL [N], detached."""
        nll = -self.mixture_log_prob(context, log_prior, target)
        return (position_weight * nll).sum(), nll.detach()


class Choice(Conditional):
    """p(symbol | context): few enough outcomes to list all their probabilities."""

    @abstractmethod
    def log_probs(self, context: Tensor) -> Tensor:
        """Log-probabilities [N, K, V] of all symbols given contexts [N, K, D]."""

    @abstractmethod
    def multiply_adds(self, frequency: Tensor) -> float:
        """Multiply-adds of the matrix products of `log_prob`, forward and for one context.

        Args:
            frequency: how often each symbol is the target, [V], summing to one; see `zipf`.

        """


class Chord(Conditional):
    """p(frame | context): 2^P outcomes, which can be drawn but not listed."""

    @abstractmethod
    def sample(self, context: Tensor, temperature: float, generator: torch.Generator | None) -> Tensor:
        """Frames of zeros and ones [N, P] drawn given contexts [N, D].

        The temperature divides the log-odds of every note; 0 takes the likelier of on and off each time.
        """


def draw_notes(log_odds: Tensor, temperature: float, generator: torch.Generator | None) -> Tensor:
    """Zeros and ones of the shape of `log_odds`, each drawn on its own; temperature as in `Chord.sample`."""
    if temperature == 0:
        return (log_odds > 0).to(log_odds.dtype)
    return torch.bernoulli(torch.sigmoid(log_odds / temperature), generator=generator)


def normalised(scores: Tensor) -> Tensor:
    """Log-probabilities of scores log g(z), over the last axis."""
    return scores - scores.logsumexp(-1, keepdim=True)


def chosen(values: Tensor, target: Tensor) -> Tensor:
    """From values [N, K, V] those of target [N], as [N, K]."""
    return values.gather(-1, target.view(-1, 1, 1).expand(-1, values.shape[1], 1)).squeeze(-1)


def zipf(num_symbols: int) -> Tensor:
    """Relative frequencies [V] in proportion to 1 / rank: what stands for counts that are not known."""
    weight = 1 / torch.arange(1, num_symbols + 1, dtype=torch.float64, device="cpu")
    return weight / weight.sum()
