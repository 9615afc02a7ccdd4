"""What a tab has read: a tree of prefixes, with the state at many of them, so that only new words are computed.

While a text grows or its last word changes, one or two symbols are read. A text that is changed earlier, continued
from the middle, or drawn by the model shares the beginning that is known.
"""

import math
from collections import OrderedDict
from collections.abc import Hashable, Sequence
from typing import NamedTuple

import torch

from elman.evaluation.scoring import predict
from elman.network.model import LanguageModel
from elman.network.state import State, leaves
from elman.serve.worker import Work

STRIDE = 16  # symbols read at once, and between two states that are kept
DENSE = 4  # the last symbols of a text, read one by one with a state each, since a text is changed at its end
NODES = 12_000  # prefixes that a tree has at most; a tree of more is begun again


class Scored(NamedTuple):
    """A symbol as it was predicted.

    Its surprisal in bits, its rank (1 the most probable), the entropy in bits before it, and the surprisal in bits of
    any symbol that begins with white space (`TextRun.spaces`). They are plain numbers, since a text has many.
    """

    bits: float
    rank: int
    entropy: float
    space: float


def scored(
    log_probs: Sequence[float], ranks: Sequence[int], entropies: Sequence[float], spaces: Sequence[float]
) -> list[Scored]:
    """Symbols of the figures of a `Prediction`, [n] each."""
    rows = zip(log_probs, ranks, entropies, spaces, strict=True)
    return [Scored(-log_prob / _NATS, rank, entropy / _NATS, -space / _NATS) for log_prob, rank, entropy, space in rows]


_NATS = math.log(2)  # nats per bit


class Symbols(NamedTuple):
    """A text as a model reads it, [n] each, without the symbol that precedes a text.

    Attributes:
        model: knows the inputs.
        inputs: numbers that are read; words beyond the vocabulary may have their own.
        ids: numbers that are predicted.
        keys: what distinguishes each symbol from all others, whatever the rest of the text is.
    """

    model: LanguageModel
    inputs: list[int]
    ids: list[int]
    keys: list[Hashable]


class _Node:
    """A prefix: how its last symbol was predicted, and the state before that symbol is read, where it is kept."""

    __slots__ = ("children", "scored", "state")

    def __init__(self, scored: Scored | None) -> None:
        self.scored = scored
        self.state: State | None = None
        self.children: dict[Hashable, _Node] = {}


class Prefixes:
    """The prefixes of the texts of one tab under one model, with states of `megabytes` in all.

    `first` is the symbol that precedes a text, `spaces` are those that begin with white space. The state used longest
    ago is forgotten first; `computed` counts the symbols that were read.
    """

    def __init__(self, first: int, megabytes: float, spaces: Sequence[int] = ()) -> None:
        self.first, self.computed, self._spaces = first, 0, spaces
        self._limit, self._bytes = int(megabytes * 2**20), 0
        self._begin()

    def _begin(self) -> None:
        self._root, self._nodes = _Node(None), 1
        self._kept: OrderedDict[int, _Node] = OrderedDict()
        self._bytes = 0

    def read(self, text: Symbols) -> Work[list[Scored]]:
        """How each symbol of a text was predicted, reading only what is new."""
        path = yield from self._path(text)
        return [node.scored for node in path[1:] if node.scored is not None]

    def place(self, text: Symbols, position: int) -> Work[tuple[list[int], State]]:
        """The symbols to read, at least one, and the state before them, after the first `position` symbols."""
        path = yield from self._path(
            Symbols(text.model, text.inputs[:position], text.ids[:position], text.keys[:position])
        )
        at, state = self._nearest(text, path)
        return [self.first, *text.inputs][at : position + 1], state

    def _path(self, text: Symbols) -> Work[list[_Node]]:
        """The prefixes of a text, [n + 1], the new ones read; another question of the tab may do the same meanwhile."""
        if self._nodes + len(text.keys) > NODES:
            self._begin()
        path = [self._root]
        for key in text.keys:
            if (node := path[-1].children.get(key)) is None:
                break
            path.append(node)
        known = len(path) - 1
        if known == len(text.keys):
            return path
        at, state = self._nearest(text, path)
        for end in _cuts(at, len(text.keys)):
            new, state = _predict(text.model, [self.first, *text.inputs], text.ids, at, end, state, self._spaces)
            self.computed += end - at
            for place, one in enumerate(new, start=at + 1):
                if place > known:
                    path.append(self._child(path[-1], text.keys[place - 1], one))
            self._keep(path[end], state)
            at = end
            yield
        return path

    def _child(self, node: _Node, key: Hashable, found: Scored) -> _Node:
        """The prefix with one more symbol, which another question may have read already."""
        child = node.children.get(key)
        if child is None:
            child = node.children[key] = _Node(found)
            self._nodes += 1
        return child

    def _nearest(self, text: Symbols, path: Sequence[_Node]) -> tuple[int, State]:
        """The last prefix of a path whose state is kept, and that state."""
        for at in range(len(path) - 1, 0, -1):
            node = path[at]
            if node.state is not None:
                if id(node) in self._kept:  # not of a tree that was begun again meanwhile
                    self._kept.move_to_end(id(node))
                return at, node.state
        return 0, begin(text.model)

    def _keep(self, node: _Node, state: State) -> None:
        if node.state is None:
            node.state = state
            self._kept[id(node)] = node
            self._bytes += size_of(state)
        while self._bytes > self._limit and len(self._kept) > 1:
            _, oldest = self._kept.popitem(last=False)
            assert oldest.state is not None
            self._bytes -= size_of(oldest.state)
            oldest.state = None


def size_of(state: State) -> int:
    return sum(leaf.numel() * leaf.element_size() for leaf in leaves(state))


@torch.inference_mode()
def begin(model: LanguageModel, batch: int = 1) -> State:
    """The state of `batch` sequences that have not begun."""
    return model.begin(batch)


def _cuts(at: int, end: int) -> list[int]:
    """Where pieces of a text end: at multiples of the stride, and after each of the last symbols."""
    dense = max(at, end - DENSE)
    strides = range((at // STRIDE + 1) * STRIDE, dense, STRIDE)
    return [*strides, *([dense] if dense > at else []), *range(dense + 1, end + 1)]


@torch.inference_mode()
def _predict(
    model: LanguageModel,
    symbols: Sequence[int],
    ids: Sequence[int],
    at: int,
    end: int,
    state: State,
    spaces: Sequence[int],
) -> tuple[list[Scored], State]:
    """How symbols `at` to `end` were predicted; `symbols` are read and begin with the first one."""
    inputs = torch.tensor(symbols[at:end], device=model.device).unsqueeze(1)
    targets = torch.tensor(ids[at:end], device=model.device).unsqueeze(1)
    found, state = predict(model, inputs, targets, state, spaces)
    return scored(*(part[:, 0].tolist() for part in found)), state
