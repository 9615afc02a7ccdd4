"""Independent notes: each sounds or not with a probability of its own, given the context."""

import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits, linear

from elman.output.choice import Chord, draw_notes


class Bernoulli(Chord):
    """log p(v) = sum_p log p(v_p), p(v_p = 1) = sigmoid(z_p), z = W context + b (thesis 3.5, logistic outputs).

    Notes are independent given one context only: a mixture over contexts ties them to each other.

    Args:
        num_pitches: P.
        size: D.
        bias: whether z has the bias b [P].

    """

    def __init__(self, num_pitches: int, size: int, *, bias: bool = True) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(num_pitches, size))
        self.bias = nn.Parameter(torch.zeros(num_pitches)) if bias else None

    def log_prob(self, context: Tensor, target: Tensor) -> Tensor:
        """Log-probability [N, K] of frames [N, P] under contexts [N, K, D]."""
        log_odds = linear(context, self.weight, self.bias)
        return log_likelihood(log_odds, target.unsqueeze(1))

    def sample(self, context: Tensor, temperature: float, generator: torch.Generator | None) -> Tensor:
        """Frames [N, P] given contexts [N, D]."""
        return draw_notes(linear(context, self.weight, self.bias), temperature, generator)


def log_likelihood(log_odds: Tensor, notes: Tensor) -> Tensor:
    """Log-probability [...] of zeros and ones [..., P], broadcast against their log-odds [..., P]."""
    notes = notes.to(log_odds.dtype).expand_as(log_odds)
    return -binary_cross_entropy_with_logits(log_odds, notes, reduction="none").sum(-1)
