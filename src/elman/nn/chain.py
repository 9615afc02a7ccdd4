"""Sequences of tags as a whole: a chain of scores, which is a conditional random field or a hidden Markov model."""

import torch
from torch import Tensor, nn


class LinearChain(nn.Module):
    """p(y | x) proportional to exp of first[y_1] + sum_t scores_t[y_t] + sum_t transitions[y_{t-1}, y_t] + last[y_T].

    With scores from a network of the whole sentence it is a conditional random field (Lafferty, McCallum & Pereira
    2001; over an LSTM: Huang, Xu & Yu 2015, Lample et al. 2016). With scores_t[k] = log p(x_t | k) and the logarithms
    of a Markov chain in `first` and `transitions` it is a hidden Markov model, whose normaliser is log p(x): `forward`
    is the forward algorithm (Baum, Petrie, Soules & Weiss 1970; Rabiner 1989), `decode` is Viterbi's (1967). The
    derivatives of the normaliser by the scores are the posteriors p(y_t = k | x) (the backward algorithm).

    T steps, B sequences, K tags; sequences that are shorter than T have `lengths` [B], at least 1. What stands in
    `scores` and `tags` beyond them has no influence.

    Args:
        tags: K

    Its methods raise ValueError where shapes do not fit.
    """

    def __init__(self, tags: int) -> None:
        super().__init__()
        self.first, self.last = nn.Parameter(torch.zeros(tags)), nn.Parameter(torch.zeros(tags))
        self.transitions = nn.Parameter(torch.zeros(tags, tags))

    def forward(self, scores: Tensor, lengths: Tensor | None = None) -> Tensor:
        """The logarithm of the sum over all sequences of tags, [B], of scores [T, B, K]."""
        read = self._read(scores, lengths)
        before = self.first + scores[0]
        for score, here in zip(scores[1:], read[1:], strict=True):
            after = (before.unsqueeze(-1) + self.transitions).logsumexp(-2) + score
            before = torch.where(here.unsqueeze(-1), after, before)
        return (before + self.last).logsumexp(-1)

    def score(self, scores: Tensor, tags: Tensor, lengths: Tensor | None = None) -> Tensor:
        """The score [B] of one sequence of tags each, ids [T, B]."""
        read = self._read(scores, lengths)
        if tags.shape != read.shape:
            raise ValueError(f"tags have shape {list(tags.shape)}, and scores {list(scores.shape)}")
        tags = tags.where(read, 0)
        found = scores.gather(-1, tags.unsqueeze(-1)).squeeze(-1).where(read, 0.0).sum(0)
        found = found + self.transitions[tags[:-1], tags[1:]].where(read[1:], 0.0).sum(0)
        end = tags.gather(0, read.sum(0, keepdim=True) - 1).squeeze(0)
        return found + self.first[tags[0]] + self.last[end]

    def nll(self, scores: Tensor, tags: Tensor, lengths: Tensor | None = None) -> Tensor:
        """-log p(y | x), [B], in nats."""
        return self(scores, lengths) - self.score(scores, tags, lengths)

    @torch.no_grad()
    def decode(self, scores: Tensor, lengths: Tensor | None = None) -> Tensor:
        """The most probable sequences of tags, ids [T, B]; -1 beyond the lengths. Of equal ones any."""
        read = self._read(scores, lengths)
        before, best = self.first + scores[0], []
        for score, here in zip(scores[1:], read[1:], strict=True):
            after, arg = (before.unsqueeze(-1) + self.transitions).max(-2)
            before = torch.where(here.unsqueeze(-1), after + score, before)
            best.append(arg)
        tags = [(before + self.last).argmax(-1)]
        for arg, here in zip(reversed(best), reversed(read[1:].unbind()), strict=True):
            tags.append(torch.where(here, arg.gather(-1, tags[-1].unsqueeze(-1)).squeeze(-1), tags[-1]))
        return torch.stack(tags[::-1]).where(read, -1)

    def _read(self, scores: Tensor, lengths: Tensor | None) -> Tensor:
        """Where a sequence is, bool [T, B]."""
        if scores.dim() != 3 or scores.shape[-1] != len(self.first):
            raise ValueError(f"scores have shape {list(scores.shape)}; [T, B, {len(self.first)}] is read")
        steps = torch.arange(len(scores), device=scores.device).unsqueeze(-1)
        lengths = steps.new_full(scores.shape[1:2], len(scores)) if lengths is None else lengths
        if lengths.shape != scores.shape[1:2] or not bool(((lengths >= 1) & (lengths <= len(scores))).all()):
            raise ValueError(f"lengths are from 1 to {len(scores)}, one for each of {scores.shape[1]} sequences")
        return steps < lengths
