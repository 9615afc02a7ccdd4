"""Log-probabilities of symbols by the logits of a model of transformers, formed in few passes over memory."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import torch

BLOCK = 1 << 11
"""Tokens of the vocabulary whose logits are formed at once, so that many symbols share a part of the weights."""


def with_fused_gelu(model: Any) -> Any:
    """The model, its approximate GELU of eight passes over the values replaced by torch's of one."""
    from transformers.activations import NewGELUActivation

    for part in list(model.modules()):
        for name, child in part.named_children():
            if isinstance(child, NewGELUActivation):
                setattr(part, name, torch.nn.GELU("tanh"))
    return model


def blocks_of(states: torch.Tensor, head: Any) -> Iterator[torch.Tensor]:
    """The logits of states [N, H], or of logits [N, V] where no head follows, in blocks of the vocabulary."""
    if type(head) is not torch.nn.Linear:
        yield from (states if head is None else head(states)).float().split(BLOCK, -1)
        return
    for at in range(0, len(head.weight), BLOCK):
        bias = None if head.bias is None else head.bias[at : at + BLOCK]
        yield torch.nn.functional.linear(states, head.weight[at : at + BLOCK], bias).float()


def log_probs_of(blocks: Iterable[torch.Tensor], following: torch.Tensor) -> torch.Tensor:
    """Log-probabilities [N] of symbols [N, 1] whose logits [N, V] come in blocks, and whose memory is used again."""
    at, picked, sums = 0, torch.zeros(following.shape, device=following.device), list[torch.Tensor]()
    for logits in blocks:
        size, own = logits.shape[-1], following - at
        picked = torch.where((own >= 0) & (own < size), logits.gather(-1, own.clamp(0, size - 1)), picked)
        largest = logits.amax(-1, keepdim=True).clamp_min_(torch.finfo(torch.float32).min)
        sums.append(largest.double() + logits.sub_(largest).exp_().sum(-1, keepdim=True).double().log_())
        at += size
    return (picked.double() - torch.cat(sums, -1).logsumexp(-1, keepdim=True)).squeeze(-1)


def figures_of(logits: torch.Tensor, following: torch.Tensor, spaces: Sequence[int]) -> torch.Tensor:
    """Log-probability, rank, entropy and space [4, N] of symbols `following` [N, 1] by their logits [N, V]."""
    log_probs = logits.log_softmax(-1)
    asked = torch.tensor(spaces, dtype=torch.long, device=logits.device)
    values = [
        log_probs.gather(-1, following).squeeze(-1),
        (logits > logits.gather(-1, following)).sum(-1) + 1,
        torch.special.entr(log_probs.exp()).sum(-1),
        log_probs[..., asked].logsumexp(-1),
    ]
    return torch.stack([value.double() for value in values])
