"""The neural cache: symbols that followed similar hidden states in the recent past are likely to follow again."""

import math

import torch
from torch import Tensor

from elman.config.inference import CacheRule


class NeuralCache:
    """The last `window` pairs of a hidden state and the symbol that followed it, of one stream."""

    def __init__(self, rule: CacheRule) -> None:
        self.rule = rule
        self._count = 0

    def read(self, log_prob: Tensor, hidden: Tensor, targets: Tensor) -> Tensor:
        """Mix the cache into the model's log-probabilities, then store the positions.

        Every position sees the `window` positions before it and none after, so the result does not depend on how a
        text is cut. `log_prob` [n] are the model's (nats) of `targets` [n], `hidden` [n, D] its last level; the result
        [n] is the model's own where the cache is still empty.
        """
        parts = [part.split(self.rule.window) for part in (log_prob, hidden, targets)]
        return torch.cat([self._read(*part) for part in zip(*parts, strict=True)])

    @torch.no_grad()
    def _read(self, log_prob: Tensor, hidden: Tensor, targets: Tensor) -> Tensor:
        window, size = self.rule.window, len(targets)
        if not self._count:
            self._states = hidden.new_zeros(window, hidden.shape[1])
            self._symbols = targets.new_zeros(window)
        now = torch.arange(self._count, self._count + size, device=targets.device)
        # What a slot of the ring holds is the last position before now[0] that falls on it.
        slots = torch.arange(window, device=targets.device)
        stored = now[0] - 1 - (now[0] - 1 - slots) % window
        at = torch.cat([stored, now])
        symbols = torch.cat([self._symbols, targets])
        similarity = self.rule.theta * (hidden @ torch.cat([self._states, hidden]).t())
        visible = (at >= 0) & (at < now[:, None]) & (at >= now[:, None] - window)
        similarity = similarity.masked_fill(~visible, -torch.inf)
        right = similarity.masked_fill(symbols != targets[:, None], -torch.inf)
        cached = right.logsumexp(1) - similarity.logsumexp(1)
        weight = math.log(self.rule.weight) if self.rule.weight else -math.inf
        mixed = torch.logaddexp(log_prob + math.log1p(-self.rule.weight), cached + weight)
        self._states[now % window], self._symbols[now % window] = hidden, targets
        self._count += size
        return torch.where(now > 0, mixed, log_prob)
