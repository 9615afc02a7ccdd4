"""Independent zeros and ones: their log-probability, and drawing them."""

import torch
from torch import Generator, Tensor
from torch.nn.functional import binary_cross_entropy_with_logits


def log_likelihood(log_odds: Tensor, notes: Tensor) -> Tensor:
    """Log-probability [...] of zeros and ones [..., P], broadcast against their log-odds [..., P]."""
    notes = notes.to(log_odds.dtype).expand_as(log_odds)
    return -binary_cross_entropy_with_logits(log_odds, notes, reduction="none").sum(-1)


def draw_notes(log_odds: Tensor, temperature: float, generator: Generator | None) -> Tensor:
    """Independent zeros and ones in the shape of `log_odds`; temperature as in `Chord`."""
    if temperature == 0:
        return (log_odds > 0).to(log_odds.dtype)
    return torch.bernoulli(torch.sigmoid(log_odds / temperature), generator=generator)
