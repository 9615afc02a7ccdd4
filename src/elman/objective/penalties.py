"""Penalties beside the negative log-likelihood. Each gives a scalar; the reported NLL is never mixed with them."""

from typing import Protocol

from torch import Tensor

from elman.cores.core import Trace
from elman.output.contexts import Contexts


class Penalty(Protocol):
    """A scalar computed from what the model did over one window."""

    def __call__(self, trace: Trace, contexts: Contexts) -> Tensor:
        """The penalty, weight included."""


class ActivationPenalty:
    """AR: alpha * mean(h^2) of the last level after dropout (Merity et al. 2017)."""

    def __init__(self, alpha: float) -> None:
        self.alpha = alpha

    def __call__(self, trace: Trace, contexts: Contexts) -> Tensor:  # noqa: ARG002
        """Large activations."""
        return self.alpha * trace.top.square().mean()


class TemporalActivationPenalty:
    """TAR: beta * mean((h_{t+1} - h_t)^2) of the last level before dropout (Merity et al. 2017)."""

    def __init__(self, beta: float) -> None:
        self.beta = beta

    def __call__(self, trace: Trace, contexts: Contexts) -> Tensor:  # noqa: ARG002
        """Large changes; zero for a window of one step."""
        last = trace.raw[-1]
        if len(last) < 2:
            return last.new_zeros(())
        return self.beta * (last[1:] - last[:-1]).square().mean()


class BalancePenalty:
    """lambda * the squared coefficient of variation of the component weights (Takase et al. 2018, eqs 12-13).

    Args:
        weight: lambda_beta.
        columns: the form of the published code, with which lambda = 0.001 was tuned: (S - 1) * unbiased variance
            over the [batch, component] sums over time, divided by their squared mean. Otherwise (std / mean)^2 of the
            S sums over the whole minibatch, as printed.

    """

    def __init__(self, weight: float, *, columns: bool = True) -> None:
        self.weight, self.columns = weight, columns

    def __call__(self, trace: Trace, contexts: Contexts) -> Tensor:  # noqa: ARG002
        """How unevenly the components are used."""
        sums = contexts.log_prior.exp().sum(0)
        if self.columns:
            return self.weight * (sums.shape[-1] - 1) * sums.var() / sums.mean().square()
        return self.weight * squared_variation(sums.sum(0))


def squared_variation(sums: Tensor) -> Tensor:
    """The squared coefficient of variation, (std / mean)^2, of the summed weights [S] (Takase et al. 2018, eq. 13)."""
    return sums.var(unbiased=False) / sums.mean().square()
