"""Log-probabilities of many sentences, every beginning that they share computed once.

Sentences in the order of their tokens make a tree of prefixes; its nodes of one depth are the columns of one step, and
a node takes its state from its parent. Minimal pairs share what comes before they differ, and many pairs of a set begin
alike. There is no padding, and one step has as many columns as there are nodes, which suits matrix products.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from elman.cores.core import Trace
from elman.model import LanguageModel
from elman.state import select

Ids: TypeAlias = npt.NDArray[np.int32]

_GROUP = 2048
"""Sentences whose tree is held at once: bounds the memory of the states."""


class Level(NamedTuple):
    """The nodes of one depth.

    Attributes:
        symbols: the last token of each as it is read, [N].
        targets: and as it is predicted, [N].
        parents: the node of the level before that each follows, [N]; at the first level the root, 0.

    """

    symbols: npt.NDArray[np.int64]
    targets: npt.NDArray[np.int64]
    parents: npt.NDArray[np.int64]


def levels_of(sentences: Sequence[Ids], inputs: Sequence[Ids] | None = None) -> tuple[list[Level], list[list[int]]]:
    """The tree of sentences, and the nodes, level by level, that each sentence goes through."""
    numbers: list[dict[tuple[int, int, int], int]] = []
    paths = []
    for sentence, read in zip(sentences, inputs or sentences, strict=True):
        path: list[int] = []
        for depth, (target, symbol) in enumerate(zip(sentence.tolist(), read.tolist(), strict=True)):
            if depth == len(numbers):
                numbers.append({})
            key = (path[-1] if path else 0, symbol, target)
            path.append(numbers[depth].setdefault(key, len(numbers[depth])))
        paths.append(path)
    levels = []
    for nodes in numbers:
        keys = np.array(list(nodes), dtype=np.int64)
        levels.append(Level(keys[:, 1], keys[:, 2], keys[:, 0]))
    return levels, paths


@torch.inference_mode()
def sentence_log_probs(
    model: LanguageModel,
    sentences: Sequence[Ids],
    first: int,
    advance: Callable[[int, int], None] | None = None,
    inputs: Sequence[Ids] | None = None,
) -> npt.NDArray[np.float64]:
    """Log-probability (nats) of each sentence, preceded by `first` and no other context, [n].

    Args:
        model: in evaluation mode.
        sentences: ids of each; none is empty.
        first: the symbol before each.
        advance: told how many sentences are done, and how many there are.
        inputs: what is read in place of the sentences, where unknown words have numbers of their own.

    """
    found, inputs = np.zeros(len(sentences)), inputs or sentences
    order = sorted(range(len(sentences)), key=lambda index: inputs[index].tolist())
    for start in range(0, len(order), _GROUP):
        group = order[start : start + _GROUP]
        levels, paths = levels_of([sentences[index] for index in group], [inputs[index] for index in group])
        by_level = _score(model, levels, first)
        for index, path in zip(group, paths, strict=True):
            found[index] = by_level[len(path) - 1][path[-1]]
        if advance is not None:
            advance(start + len(group), len(order))
    return found


def _score(model: LanguageModel, levels: Sequence[Level], first: int) -> list[npt.NDArray[np.float64]]:
    """The log-probability of every node's prefix, level by level."""
    state, symbols = model.begin(1), torch.tensor([first], device=model.device)
    so_far, found = np.zeros(1), []
    for depth, level in enumerate(levels):
        trace, state = model.trace(symbols.unsqueeze(0), state)
        parents = torch.from_numpy(level.parents).to(model.device)
        targets = torch.from_numpy(level.targets).to(model.device)
        log_prob = model.output.log_prob(_columns(trace, parents), targets.unsqueeze(0)).squeeze(0)
        so_far = so_far[level.parents] + log_prob.double().cpu().numpy()
        found.append(so_far)
        if depth + 1 < len(levels):
            state, symbols = select(state, parents), torch.from_numpy(level.symbols).to(model.device)
    return found


def _columns(trace: Trace, columns: Tensor) -> Trace:
    levels, raw = (tuple(level[:, columns] for level in part) for part in (trace.levels, trace.raw))
    return Trace(levels, raw)
