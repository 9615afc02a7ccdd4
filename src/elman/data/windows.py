"""Windows of T steps by B columns: a stream of tokens cut for training, read in full for evaluation, and in parts."""

import dataclasses
import itertools
import math
from array import array
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

import msgspec
import numpy as np
import torch
from torch import Tensor

from elman.config.training import Training
from elman.data.batches import Batch
from elman.data.text.vocabulary import Vocabulary
from elman.errors import UserError


class Span(NamedTuple):
    """Where a window lies in the columns of an epoch: from step `start`, `length` steps."""

    start: int
    length: int
    epoch: int = 0


class Spans(Sequence[Span]):
    """Consecutive windows from step 0, each of its number of `steps`; eight bytes each, for there may be millions.

    Equal to any sequence of the same windows.
    """

    def __init__(self, steps: Iterable[int]) -> None:
        self._edges = array("q", itertools.accumulate(steps, initial=0))

    def __len__(self) -> int:
        return len(self._edges) - 1

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[place] for place in range(len(self))[index]]
        place = range(len(self))[index]
        start, stop = self._edges[place : place + 2]
        return Span(start, stop - start)


class Windows(Protocol):
    """What training reads: the windows of every epoch, and their batches."""

    def spans(self, epoch: int) -> Sequence[Span]:
        """The windows of an epoch, in order."""

    def batch(self, span: Span) -> Batch: ...


class TrainingWindows:
    """A stream [n] cut into B columns that are read side by side; the remainder is dropped.

    With `random` the lengths vary: base `length` (bptt) with probability 1 - `short_probability`, else half of it, then
    max(5, int(N(base, spread))) and never more than `length + max_extra` (Merity et al. 2018, section 4.1). The spans
    of an epoch depend on the seed and the epoch's number alone, so a resumed run needs only its position.

    Raises UserError where the corpus is too short for one window in every column.
    """

    def __init__(
        self,
        tokens: np.ndarray,
        batch_size: int,
        length: int,
        *,
        random: bool = False,
        short_probability: float = 0.05,
        spread: float = 5.0,
        max_extra: int | None = None,
        seed: int = 0,
    ) -> None:
        steps = len(tokens) // batch_size
        if steps < length + 1:
            raise UserError(
                f"the training text has {len(tokens):,} tokens, too few for {batch_size} columns of one window of"
                f" {length} steps ({batch_size * (length + 1):,} tokens); use more text, or lower"
                " training.batch_size or training.window.length (of elman.fit: batch_size or bptt)"
            )
        self.columns = tokens[: steps * batch_size].reshape(batch_size, steps)
        self.batch_size, self.steps, self.length, self.random = batch_size, steps, length, random
        self.short_probability, self.spread, self.max_extra, self.seed = short_probability, spread, max_extra, seed

    def spans(self, epoch: int) -> Spans:
        """The windows of an epoch, in order; together they cover every step but the last once."""
        return Spans(self._lengths(epoch))

    def _lengths(self, epoch: int) -> Iterator[int]:
        draw, left = np.random.default_rng([self.seed, epoch]), self.steps - 1
        while left > 0:
            length = self.length
            if self.random:
                base = self.length if draw.random() >= self.short_probability else self.length / 2
                length = max(5, int(draw.normal(base, self.spread)))
                length = length if self.max_extra is None else min(length, self.length + self.max_extra)
            yield min(length, left)
            left -= length

    def batch(self, span: Span) -> Batch:
        """The window of a span; the columns are fresh at the beginning of the stream."""
        at, length, _ = span
        block = torch.from_numpy(self.columns[:, at : at + length + 1].astype(np.int64)).t().contiguous()
        fresh = torch.full((self.batch_size,), at == 0)
        return Batch(block[:-1], block[1:], None, fresh)


class PositionedWindows(Protocol):
    """Windows of an evaluation in order, each with the position of every target, [T, B]; -1: not counted."""

    @property
    def streams(self) -> int: ...
    @property
    def num_windows(self) -> int: ...
    def __iter__(self) -> Iterator[tuple[Batch, Tensor]]: ...


class EvaluationWindows:
    """A stream [n] read so that every token is a target exactly once, in `streams` columns.

    Column j covers the j-th part of the stream and reads up to `warm_up` tokens before it without counting them. With
    one column the state is carried over the whole stream; more are faster, and each begins with an empty state before
    its warm-up. The stream is preceded by the symbol `first`, and windows have `length` steps. `skip_first` does not
    count the first token, as the published figures do (DOC eq. 1). `inputs` [n] are read in place of `tokens` where
    unknown words have numbers of their own.
    """

    def __init__(
        self,
        tokens: np.ndarray,
        first: int,
        *,
        streams: int = 1,
        length: int = 70,
        warm_up: int = 0,
        skip_first: bool = False,
        inputs: np.ndarray | None = None,
    ) -> None:
        assert inputs is None or len(inputs) == len(tokens)
        size = math.ceil(len(tokens) / max(1, streams))
        parts = range(0, len(tokens), max(1, size))
        self.tokens, self.first, self.length, self.skip_first = tokens, first, length, skip_first
        self.read = tokens if inputs is None else inputs
        self.counted = [(at, min(at + size, len(tokens))) for at in parts]
        self.begin = [max(0, at - warm_up) for at, _ in self.counted]
        self.steps = max((end - begin for begin, (_, end) in zip(self.begin, self.counted, strict=True)), default=0)

    @property
    def streams(self) -> int:
        """The number of columns; never more than tokens."""
        return len(self.counted)

    @property
    def num_windows(self) -> int:
        return math.ceil(self.steps / self.length)

    def __iter__(self) -> Iterator[tuple[Batch, Tensor]]:
        """Windows, each with the position in the stream of every target, [T, B] (-1: not counted)."""
        for at in range(0, self.steps, self.length):
            yield self._window(at, min(self.length, self.steps - at))

    def _window(self, at: int, length: int) -> tuple[Batch, Tensor]:
        inputs = np.full((self.streams, length), self.first, dtype=np.int64)
        targets = inputs.copy()
        positions = np.full((self.streams, length), -1, dtype=np.int64)
        for row, (begin, (counted_from, end)) in enumerate(zip(self.begin, self.counted, strict=True)):
            low, high = begin + at, min(begin + at + length, end)
            if low >= high:
                continue
            span, early = high - low, not low  # the first symbol is read before the stream
            targets[row, :span] = self.tokens[low:high]
            inputs[row, early:span] = self.read[low - 1 + early : high - 1]
            index = np.arange(low, high)
            positions[row, :span] = np.where(index >= counted_from + (self.skip_first and counted_from == 0), index, -1)
        where = torch.from_numpy(positions).t()
        fresh = torch.full((self.streams,), at == 0)
        return Batch(torch.from_numpy(inputs).t(), torch.from_numpy(targets).t(), where >= 0, fresh), where


def start_symbol(vocabulary: Vocabulary) -> int:
    """The symbol that a text is preceded by: `<eos>`, or the most frequent word where the text has none."""
    return vocabulary.eos if vocabulary.eos is not None else 0


Item = TypeVar("Item")


@dataclasses.dataclass(frozen=True, order=True)
class Part:
    """Part `index` of `count`; which columns, batches or sentences it has depends on these two numbers alone."""

    index: int = 0
    count: int = 1

    def columns(self, total: int) -> slice:
        """The adjacent columns of this part, of `total` in all; may be empty."""
        return slice(self.index * total // self.count, (self.index + 1) * total // self.count)

    def of(self, items: Sequence[Item]) -> Sequence[Item]:
        """Every `count`-th of the items, from item `index` on."""
        return items[self.index :: self.count]


WHOLE = Part()


class Summed(Protocol):
    """The sum of negative log-likelihoods (nats) over `count` targets."""

    @property
    def nll_sum(self) -> float: ...
    @property
    def count(self) -> int: ...


class ColumnsOf:
    """The windows of an evaluation, of which a part of the columns is read; none where there are no columns."""

    def __init__(self, windows: PositionedWindows, part: Part) -> None:
        self.windows, self.columns = windows, part.columns(windows.streams)
        self.streams = self.columns.stop - self.columns.start
        self.num_windows = windows.num_windows if self.streams else 0

    def __iter__(self) -> Iterator[tuple[Batch, Tensor]]:
        for batch, positions in self.windows if self.streams else ():
            yield batch.columns(self.columns), positions[:, self.columns]


def columns_of(tokens: np.ndarray, training: Training, max_extra: int | None, seed: int) -> TrainingWindows:
    """The windows of a text [N] as a recipe trains on it; `max_extra` caps random windows.

    Raises UserError where the text is too short.
    """
    rules = msgspec.structs.asdict(training.window) | {"max_extra": max_extra, "seed": seed}
    return TrainingWindows(tokens, training.batch_size, **rules)
