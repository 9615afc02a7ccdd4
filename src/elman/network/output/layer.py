"""The output layer: log p(y) = logsumexp_k [ log pi_k + log p_choice(y | context_k) ]."""

from collections.abc import Collection
from typing import final

import torch
from jaxtyping import Float, Shaped
from torch import Generator, Tensor, nn

from elman import config
from elman.network.cores.core import Trace
from elman.network.output.choice import Choice, Conditional, Drawn
from elman.network.output.contexts import ContextLayer, Contexts


@final
class OutputLayer(nn.Module):
    """The distribution of the next symbol or frame of notes given a trace: a choice, mixed over contexts."""

    def __init__(self, contexts: ContextLayer, choice: Conditional) -> None:
        super().__init__()
        self.contexts, self.choice = contexts, choice

    def log_prob(self, trace: Trace, target: Shaped[Tensor, "T B *P"]) -> Float[Tensor, "T B"]:
        """Log-probability [T, B] of target [T, B], or frames [T, B, P]."""
        vectors, log_prior = self.contexts(trace)
        flat = self.choice.mixture_log_prob(vectors.flatten(0, 1), log_prior.flatten(0, 1), target.flatten(0, 1))
        return flat.view(target.shape[:2])

    def log_probs(self, trace: Trace) -> Float[Tensor, "T B V"]:
        """Log-probabilities [T, B, V] of every symbol."""
        assert isinstance(self.choice, Choice), "there are too many frames to list"
        vectors, log_prior = self.contexts(trace)
        each = self.choice.log_probs(vectors.flatten(0, 1))
        joint = log_prior.flatten(0, 1).unsqueeze(-1) + each
        mixed = joint.squeeze(1) if joint.shape[1] == 1 else torch.logsumexp(joint, dim=1)
        return mixed.unflatten(0, vectors.shape[:2])

    def sample(
        self, trace: Trace, temperature: float = 1.0, generator: Generator | None = None
    ) -> Float[Tensor, "T B P"]:
        """Frames [T, B, P], drawn to follow each position: first a component of the mixture, then the vector."""
        assert isinstance(self.choice, Drawn), "symbols are drawn from their log-probabilities"
        vectors, log_prior = self.contexts(trace)
        component = torch.multinomial(log_prior.flatten(0, 1).exp(), 1, generator=generator).unsqueeze(-1)
        chosen = vectors.flatten(0, 1).take_along_dim(component, dim=1).squeeze(1)
        return self.choice.sample(chosen, temperature, generator).unflatten(0, vectors.shape[:2])

    def nll(
        self, contexts: Contexts, target: Shaped[Tensor, "T B *P"], position_weight: Float[Tensor, "T B"]
    ) -> tuple[Float[Tensor, ""], Float[Tensor, "T B"]]:
        """The weighted sum of negative log-likelihoods of target [T, B] or [T, B, P], and each of them [T, B] detached.

        Training uses this method because the weights of the positions are known before the loss, so that the gradients
        can be formed in the forward pass.
        """
        vectors, log_prior = contexts
        total, each = self.choice.mixture_nll(
            vectors.flatten(0, 1), log_prior.flatten(0, 1), target.flatten(0, 1), position_weight.flatten()
        )
        return total, each.view(target.shape[:2])

    def initialise(self, rules: config.Initialisation, tied: Collection[nn.Parameter] = ()) -> None:
        """Fill contexts and choice, except the parameters `tied` with an encoder's."""
        self.contexts.initialise(rules)
        self.choice.initialise(rules, tied)
