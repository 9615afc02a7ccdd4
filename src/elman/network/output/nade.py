"""Frames of notes, one after another (NADE).

N positions, K contexts, D their width, P pitches, M notes at most in a frame, Q hidden units.
"""

from typing import final

import torch
from torch import Generator, Tensor, nn
from torch.nn.functional import linear

from elman import config
from elman.config.record import Positive
from elman.network.fast import policy
from elman.network.output.bernoulli import draw_notes, log_likelihood
from elman.network.output.choice import Chord, Draws, PerContext, Row, Surroundings, Targets, Vectors


class NADE(config.Choice, frozen=True, tag="nade"):
    """Notes one after another, lowest first, through `size` hidden units."""

    size: Positive = 128


@final
class NADEChoice(Chord, of=NADE):
    """p(v) = prod_p p(v_p | v_<p), p(v_p = 1 | v_<p) = sigmoid(b_p + V_p h_p), h_p = sigmoid(c + sum_{j<p} W_j v_j).

    Larochelle & Murray (2011), eqs 4 and 5; conditioned by a recurrent network it is the RNN-NADE of
    Boulanger-Lewandowski et al. (2012), section 4. The visible biases b = B context + b_0 and the hidden biases
    c = C context + c_0 depend on the context, the weights do not. Pitches go from low to high. The hidden state changes
    only after a note that sounds, so a frame of m notes has m + 1 of them however many pitches there are: all of them
    and their products with V are formed at once, and each pitch reads its own.
    """

    def __init__(self, record: NADE, surroundings: Surroundings) -> None:
        super().__init__()
        num_pitches, hidden = surroundings.num_outputs, record.size
        self.visible = nn.Linear(surroundings.size, num_pitches)
        self.hidden = nn.Linear(surroundings.size, hidden)
        self.given = nn.Parameter(torch.empty(num_pitches, hidden))
        self.weight = nn.Parameter(torch.empty(num_pitches, hidden))
        nn.init.zeros_(self.visible.bias)
        nn.init.zeros_(self.hidden.bias)

    def log_prob(self, context: Vectors, target: Targets) -> PerContext:
        notes, index = target.bool().to(torch.int64), torch.arange(target.shape[1], device=target.device)
        most = len(index) if policy.followed() else int(notes.sum(1).max()) if len(notes) else 0
        # Stable, so the pitches that sound come first and in order; the remaining ones of the M are weighted by zero.
        first = notes.sort(dim=1, descending=True, stable=True).indices[:, :most]
        sounding = self.given[first] * notes.gather(1, first).unsqueeze(-1)
        sums = torch.cat([sounding.new_zeros(len(notes), 1, sounding.shape[-1]), sounding.cumsum(1)], dim=1)
        hidden = torch.sigmoid(self.hidden(context).unsqueeze(2) + sums.unsqueeze(1))
        log_odds = linear(hidden, self.weight)
        before = (notes.cumsum(1) - notes).view(len(notes), 1, 1, len(index)).expand(-1, context.shape[1], -1, -1)
        chosen = log_odds.gather(2, before).squeeze(2)
        return log_likelihood(self.visible(context) + chosen, target.unsqueeze(1))

    def sample(self, context: Row, temperature: float, generator: Generator | None) -> Draws:
        """Frames [N, P] given contexts [N, D], drawn exactly, pitch by pitch."""
        biases, total = self.visible(context), self.hidden(context)
        notes = []
        for pitch, (given, weight) in enumerate(zip(self.given, self.weight, strict=True)):
            log_odds = biases[:, pitch] + torch.sigmoid(total) @ weight
            notes.append(draw_notes(log_odds, temperature, generator))
            total = total + notes[-1].unsqueeze(1) * given
        return torch.stack(notes, dim=1)

    @torch.no_grad()
    def begin_at(self, log_odds: Tensor) -> None:
        """Visible biases with which a note has these log-odds while none below it sounds."""
        self.visible.bias.copy_(log_odds - self.weight @ torch.sigmoid(self.hidden.bias))
