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

BLOCK = 256
"""Positions whose distributions over all symbols are held at once where a temperature needs them."""


@final
class OutputLayer(nn.Module):
    """The distribution of the next symbol or frame of notes given a trace: a choice, mixed over contexts.

    Attributes:
        temperature: T of the distribution of symbols, p^(1/T) and normalised, from which `log_prob` and `log_probs`
            are; training and the feedback of a Jordan network are without it (Guo et al. 2017).
    """

    def __init__(self, contexts: ContextLayer, choice: Conditional) -> None:
        super().__init__()
        self.contexts, self.choice = contexts, choice
        self.temperature = 1.0

    def log_prob(self, trace: Trace, target: Shaped[Tensor, "T B *P"]) -> Float[Tensor, "T B"]:
        """Log-probability [T, B] of target [T, B], or frames [T, B, P]."""
        vectors, log_prior = self.contexts(trace)
        parts = vectors.flatten(0, 1), log_prior.flatten(0, 1), target.flatten(0, 1)
        if self.temperature == 1:
            return self.choice.mixture_log_prob(*parts).view(target.shape[:2])
        blocks = zip(*(part.split(BLOCK) for part in parts), strict=True)
        flat = [self._tempered(self._listed(*block)).gather(-1, symbols.unsqueeze(-1)) for *block, symbols in blocks]
        return torch.cat(flat).view(target.shape[:2])

    def log_probs(self, trace: Trace) -> Float[Tensor, "T B V"]:
        """Log-probabilities [T, B, V] of every symbol."""
        return self._tempered(self.untempered(trace))

    def untempered(self, trace: Trace) -> Float[Tensor, "T B V"]:
        """As `log_probs` with temperature 1."""
        vectors, log_prior = self.contexts(trace)
        return self._listed(vectors.flatten(0, 1), log_prior.flatten(0, 1)).unflatten(0, vectors.shape[:2])

    def _listed(self, vectors: Tensor, log_prior: Tensor) -> Float[Tensor, "N V"]:
        assert isinstance(self.choice, Choice), "there are too many frames to list"
        joint = log_prior.unsqueeze(-1) + self.choice.log_probs(vectors)
        return joint.squeeze(1) if joint.shape[1] == 1 else torch.logsumexp(joint, dim=1)

    def _tempered(self, log_probs: Tensor) -> Tensor:
        return log_probs if self.temperature == 1 else torch.log_softmax(log_probs / self.temperature, dim=-1)

    def sample(
        self, trace: Trace, temperature: float = 1.0, generator: Generator | None = None
    ) -> Float[Tensor, "T B P"]:
        """Frames [T, B, P], drawn to follow each position: first a component of the mixture, then the vector."""
        vectors, log_prior = self.contexts(trace)
        parts = vectors.flatten(0, 1), log_prior.flatten(0, 1)
        return self.drawn(*parts, temperature, generator).unflatten(0, vectors.shape[:2])

    def drawn(self, vectors: Tensor, log_prior: Tensor, temperature: float, generator: Generator | None) -> Tensor:
        """As `sample`, [N, P], given N positions' contexts [N, K, D] and their log-probabilities [N, K]."""
        assert isinstance(self.choice, Drawn), "symbols are drawn from their log-probabilities"
        component = torch.multinomial(log_prior.exp(), 1, generator=generator).unsqueeze(-1)
        return self.choice.sample(vectors.take_along_dim(component, dim=1).squeeze(1), temperature, generator)

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
