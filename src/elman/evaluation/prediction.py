"""What a model predicts at each position: the probability of what comes, its rank, and the entropy of what might."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from elman.data.windows import stack_sequences
from elman.evaluation.scoring import with_inputs
from elman.network.cores.core import Trace
from elman.network.model import LanguageModel
from elman.network.state import State, select

LARGEST = 1 << 22
"""Log-probabilities formed at once."""


class Prediction(NamedTuple):
    """How n symbols were predicted.

    Attributes:
        log_prob: of each symbol (nats), float32 [n].
        rank: of each among all V by falling probability, 1 the most probable, int64 [n]; ties count in its favour.
        entropy: of the distribution that each was drawn from (nats), and of the one after the last: float32 [n + 1].

    """

    log_prob: np.ndarray
    rank: np.ndarray
    entropy: np.ndarray


@torch.inference_mode()
def predict(model: LanguageModel, inputs: Tensor, targets: Tensor, state: State) -> tuple[Tensor, Tensor, Tensor]:
    """Log-probability, rank and entropy, each [T, B], of targets [T, B] after inputs [T, B].

    They come from `LanguageModel.log_probs`, which every output layer has, a few steps at a time.
    """
    parts, at, steps = [], 0, 1
    while at < len(inputs):
        log_probs, state = model.log_probs(inputs[at : at + steps], state)
        log_prob = log_probs.gather(-1, targets[at : at + steps].unsqueeze(-1))
        rank = (log_probs > log_prob).sum(-1) + 1
        parts.append((log_prob.squeeze(-1), rank, torch.special.entr(log_probs.exp()).sum(-1)))
        at, steps = at + steps, max(1, LARGEST // log_probs[0].numel())
    log_prob, rank, entropy = (torch.cat(part) for part in zip(*parts, strict=True))
    return log_prob, rank, entropy


def predict_sentences(
    model: LanguageModel,
    sentences: Iterable[np.ndarray],
    first: int,
    batch_size: int = 32,
    inputs: Iterable[np.ndarray] | None = None,
) -> Iterator[Prediction]:
    """The prediction of each sentence, preceded by `first` and no other context; see `scoring.score_sentences`."""
    remaining = with_inputs(sentences, inputs)
    while group := list(islice(remaining, batch_size)):
        # One target more, whatever it is: the model reads the last symbol, too, and what it then expects is asked for.
        longer = [(np.append(sentence, first), np.append(read, first)) for sentence, read in group]
        batch, lengths = stack_sequences([sentence for sentence, _ in longer], first, [read for _, read in longer])
        batch = batch.to(model.device)
        columns = predict(model, batch.inputs, batch.targets, model.begin(len(group)))
        log_prob, rank, entropy = (_rows(column) for column in columns)
        for row, length in enumerate(lengths):
            yield Prediction(log_prob[row, : length - 1], rank[row, : length - 1], entropy[row, :length])


def predict_document(
    model: LanguageModel, sentences: Iterable[np.ndarray], first: int, inputs: Iterable[np.ndarray] | None = None
) -> Iterator[Prediction]:
    """As `predict_sentences`, but each sentence is read in the context of all before it."""
    state, before = model.begin(1), first
    for sentence, read in with_inputs(sentences, inputs):
        symbols = torch.tensor([before, *read.tolist()], device=model.device).unsqueeze(1)
        targets = torch.tensor([*sentence.tolist(), first], device=model.device).unsqueeze(1)
        log_prob, rank, entropy = (_rows(column)[0] for column in predict(model, symbols, targets, state))
        with torch.inference_mode():
            _, state = model.trace(symbols[:-1], state)
        before = int(read[-1])
        yield Prediction(log_prob[:-1], rank[:-1], entropy)


def _rows(column: Tensor) -> np.ndarray:
    values = column.t()
    return (values.float() if values.is_floating_point() else values).cpu().numpy()


# FOLDED evaluation/prefixes.py: Log-probabilities of many sentences, every beginning that they share computed once.
#
# Sentences in the order of their tokens make a tree of prefixes; its nodes of one depth are the columns of one
# step, and
# a node takes its state from its parent. Minimal pairs share what comes before they differ, and many pairs of a
# set begin
# alike. There is no padding, and one step has as many columns as there are nodes, which suits matrix products.
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
