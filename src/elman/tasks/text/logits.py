"""Log-probabilities of symbols by the logits of a model of transformers, formed in few passes over memory."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np
import torch

BLOCK = 1 << 11
"""Tokens of the vocabulary whose logits are formed at once, so that many symbols share a part of the weights."""

Tree: TypeAlias = dict[int, np.ndarray]
"""Rows of symbols by their numbers, each with the places of its symbols [n]; rows that begin alike share places."""


def size_of(tree: Tree) -> int:
    """How many symbols a tree has."""
    return max((int(path.max(initial=-1)) + 1 for path in tree.values()), default=0)


def trees_of(rows: Sequence[np.ndarray], size: int) -> list[Tree]:
    """Rows of symbols [n] in trees of at most `size` symbols; a longer row, or any one where `size` is 0, is alone."""
    trees, count = list[Tree](), 0
    before = path = np.empty(0, np.int64)
    for number in sorted(range(len(rows)), key=lambda number: rows[number].tolist()):
        row = rows[number]
        both = min(len(row), len(before))
        shared = int(np.append(row[:both] != before[:both], True).argmax())
        if not trees or count + len(row) - shared > size:
            trees.append({})
            count = shared = 0
        path = np.append(path[:shared], np.arange(count, count + len(row) - shared))
        before, count, trees[-1][number] = row, count + len(row) - shared, path
    return trees


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


def log_probs_of(blocks: Iterable[torch.Tensor], rows: torch.Tensor, following: torch.Tensor) -> torch.Tensor:
    """Log-probabilities [N] of symbols [N] by rows [N] of logits [R, V], which come in blocks.

    The sum of a block's exponentials is one by the largest value of its softmax, which torch forms in one pass.
    """
    at, picked, sums = 0, torch.zeros(len(rows), device=rows.device), list[torch.Tensor]()
    for logits in blocks:
        size, own = logits.shape[-1], following - at
        picked = torch.where((own >= 0) & (own < size), logits[rows, own.clamp(0, size - 1)], picked)
        largest = logits.amax(-1).clamp_min_(torch.finfo(torch.float32).min).double()
        sums.append(largest - logits.softmax(-1).amax(-1).nan_to_num_(1.0).double().log_())
        at += size
    return picked.double() - torch.stack(sums, -1).logsumexp(-1)[rows]


def figures_of(
    logits: torch.Tensor, rows: torch.Tensor, following: torch.Tensor, spaces: Sequence[int]
) -> torch.Tensor:
    """Log-probability, rank, entropy and space [4, N] of symbols `following` [N] by rows [N] of logits [R, V]."""
    log_probs, picked = logits.log_softmax(-1), logits[rows, following]
    values = [
        log_probs[rows, following],
        (logits[rows] > picked.unsqueeze(-1)).sum(-1) + 1,
        torch.special.entr(log_probs.exp()).sum(-1)[rows],
        log_probs[:, list(spaces)].logsumexp(-1)[rows],
    ]
    return torch.stack([value.double() for value in values])
