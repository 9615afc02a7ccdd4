"""Steps that also give what a page shows, and steps of models of music, whose frames are drawn outside of the graph."""

from typing import final

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from elman.export.step import PlainStep, Step
from elman.network.output.choice import Choice
from elman.network.output.contexts import MixtureContexts
from elman.network.state import leaves, rebuild


@final
class LookStep(nn.Module):
    """A step that also gives what the panels show.

    Outputs: log-probabilities [B, V], the levels of the core side by side [B, H_0 + ... + H_L], of a mixture the
    weights [B, K] and log-probabilities [B, K, V] of its components, and the tensors of the state.
    """

    def __init__(self, step: Step) -> None:
        super().__init__()
        self.model, self.template = step.model, step.template
        self.mixes = isinstance(self.model.output.contexts, MixtureContexts)

    @property
    def names(self) -> list[str]:
        """Of the outputs before those of the state."""
        return ["log_probs", "levels", *(["prior", "each"] if self.mixes else [])]

    def forward(self, symbols: Int[Tensor, " B"], *state: Tensor) -> tuple[Tensor, ...]:
        """As described above, after `symbols` [B] and the state before them."""
        trace, after = self.model.trace(symbols.unsqueeze(0), rebuild(self.template, iter(state)))
        levels = torch.cat([level[0] for level in trace.raw], dim=-1)
        if not self.mixes:
            return self.model.output.log_probs(trace)[0], levels, *leaves(after)
        choice = self.model.output.choice
        assert isinstance(choice, Choice)
        vectors, log_prior = self.model.output.contexts(trace)
        each = choice.log_probs(vectors[0])
        log_probs = torch.logsumexp(log_prior[0].unsqueeze(-1) + each, dim=1)
        return log_probs, levels, log_prior[0].exp(), each, *leaves(after)


@final
class FrameStep(PlainStep):
    """A step of a model of music: frames of notes in, and what the next ones are drawn from out.

    Outputs: the contexts [B, K, D] of the choice of notes, the logarithms [B, K] of their weights, and the tensors of
    the state.
    """

    def forward(self, frames: Float[Tensor, "B P"], *state: Tensor) -> tuple[Tensor, ...]:
        """As described above, after `frames` [B, P] and the state before them."""
        trace, after = self.model.trace(frames.unsqueeze(0), rebuild(self.template, iter(state)))
        vectors, log_prior = self.model.output.contexts(trace)
        return vectors[0], log_prior[0], *leaves(after)
