"""Independent zeros and ones, and frames of such notes; N positions, K contexts, D their width, P pitches."""

from typing import final

import torch
from torch import Generator, Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits, linear

from elman import config
from elman.network.output.choice import Chord, Draws, PerContext, Row, Surroundings, Targets, Vectors


def log_likelihood(log_odds: Tensor, notes: Tensor) -> Tensor:
    """Log-probability [...] of zeros and ones [..., P], broadcast against their log-odds [..., P]."""
    notes = notes.to(log_odds.dtype).expand_as(log_odds)
    return -binary_cross_entropy_with_logits(log_odds, notes, reduction="none").sum(-1)


def draw_notes(log_odds: Tensor, temperature: float, generator: Generator | None) -> Tensor:
    """Independent zeros and ones in the shape of `log_odds`; temperature as in `Chord`."""
    if temperature == 0:
        return (log_odds > 0).to(log_odds.dtype)
    return torch.bernoulli(torch.sigmoid(log_odds / temperature), generator=generator)


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
