"""Frames of independent notes; N positions, K contexts, D their width, P pitches."""

from typing import final

import torch
from torch import Generator, Tensor, nn
from torch.nn.functional import linear

from elman import config
from elman.network.output.choice import Chord, Draws, PerContext, Row, Surroundings, Targets, Vectors
from elman.network.output.notes import draw_notes, log_likelihood


class Bernoulli(config.Choice, frozen=True, tag="bernoulli"):
    """Notes that sound independently of each other."""

    bias: bool = True


@final
class BernoulliChoice(Chord, of=Bernoulli):
    """log p(v) = sum_p log p(v_p), p(v_p = 1) = sigmoid(z_p), z = W context + b (thesis 3.5, logistic outputs).

    Notes are independent given one context; in a mixture over contexts they are not.
    """

    def __init__(self, record: Bernoulli, surroundings: Surroundings) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(surroundings.num_outputs, surroundings.size))
        self.bias = nn.Parameter(torch.zeros(surroundings.num_outputs)) if record.bias else None

    def log_prob(self, context: Vectors, target: Targets) -> PerContext:
        log_odds = linear(context, self.weight, self.bias)
        return log_likelihood(log_odds, target.unsqueeze(1))

    def sample(self, context: Row, temperature: float, generator: Generator | None) -> Draws:
        return draw_notes(linear(context, self.weight, self.bias), temperature, generator)

    @torch.no_grad()
    def begin_at(self, log_odds: Tensor) -> None:
        if self.bias is None:
            super().begin_at(log_odds)
        else:
            self.bias.copy_(log_odds)
