"""Sentences, independent of each other or as one document: the log-probability of every token, its rank, the entropy.

T steps, B sentences side by side, n symbols in a sentence. `inputs` replace sentences where they are read: to a model
that reads spelling unknown words have numbers of their own.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice, tee
from typing import Any, Literal, NamedTuple, TypeAlias, TypeVar

import msgspec
import numpy as np
import torch
from torch import Tensor

from elman.data.batches import stack_sequences
from elman.data.text.reading import Sentence
from elman.decoding.sampling import require_numbers
from elman.network.model import LanguageModel
from elman.network.state import State

LARGEST = 1 << 22  # log-probabilities formed at once

WINDOW = 1 << 12  # symbols of one sentence read at once; a longer one is read alone and in parts, which carry the state

BATCH = 1 << 16  # symbols of sentences side by side read at once, the padding included

Symbols: TypeAlias = Iterable[np.ndarray]
"""The symbols of several sentences, [n] each."""

FoundT = TypeVar("FoundT")

Treatment: TypeAlias = Literal["score", "exclude", "spread"]


class Unknown(msgspec.Struct, frozen=True, kw_only=True):
    """How unknown words are scored.

    Attributes:
        treatment: `score`: by the probability of `<unk>`; `exclude`: not at all (NaN, left out of sums); `spread`:
            that probability shared evenly among the types that `<unk>` stands for, log p(<unk>) - log `types`
            (Ueberla 1994, Analysing a simple language model, Computer Speech and Language 8).
        types: how many those are, for `spread`.
    """

    treatment: Treatment = "score"
    types: int = 1

    def apply(self, log_probs: np.ndarray, unknown: Sequence[bool]) -> np.ndarray:
        """Log-probabilities (nats) [n] in which unknown words have others; the argument is not changed."""
        if self.treatment == "score" or not any(unknown):
            return log_probs
        scored = log_probs - np.float32(math.log(max(1, self.types)))
        return np.where(np.asarray(unknown), np.nan if self.treatment == "exclude" else scored, log_probs)


def surprisal(log_probs: Sequence[float] | np.ndarray) -> np.ndarray:
    """Surprisal in bits of log-probabilities in nats."""
    return -np.asarray(log_probs, dtype=np.float64) / np.log(2.0)


class Sentences(NamedTuple):
    """The sentences of a text as a model reads them, each with its inputs [n].

    A model that reads spelling knows the unknown words: among the inputs they have their own numbers, among the ids of
    a sentence they are `<unk>`. The sentences may come from a text that is still being read. A model that elman did not
    train has no network here.
    """

    model: Any
    items: Iterable[tuple[Sentence, np.ndarray]]

    def asked(self, ask: Callable[[Symbols, Symbols], Iterator[FoundT]]) -> Iterator[tuple[Sentence, FoundT]]:
        """Each sentence with what `ask` found, given the ids and the inputs of all."""
        shown, predicted, fed = tee(self.items, 3)
        found = ask((sentence.ids for sentence, _ in predicted), (inputs for _, inputs in fed))
        return zip((sentence for sentence, _ in shown), found, strict=True)


def score_sentences(
    model: LanguageModel, sentences: Symbols, first: int, batch_size: int = 32, inputs: Symbols | None = None
) -> Iterator[np.ndarray]:
    """Log-probabilities (nats, float32 [n]) of each sentence, preceded by `first` and no other context.

    Padding never changes a probability: the model reads forward only, and padding is not counted. Long sentences are
    read alone and in parts, in constant memory.
    """
    remaining = _with_inputs(sentences, inputs)
    while group := list(islice(remaining, batch_size)):
        if _is_small(group):
            yield from _score_batch(model, group, first)
        else:
            for sentence, read in group:
                yield _score_column(model, sentence, read, first, model.begin(1))[0]


@torch.inference_mode()
def _score_batch(model: LanguageModel, group: Sequence[tuple[np.ndarray, np.ndarray]], first: int) -> list[np.ndarray]:
    batch, lengths = stack_sequences([sentence for sentence, _ in group], first, [read for _, read in group])
    batch = batch.to(model.device)
    log_prob, _ = model.log_prob(batch.inputs, batch.targets, model.begin(len(group)))
    return [row[:length] for row, length in zip(_rows(log_prob), lengths, strict=True)]


@torch.inference_mode()
def _score_column(
    model: LanguageModel, sentence: np.ndarray, read: np.ndarray, before: int, state: State
) -> tuple[np.ndarray, State]:
    """Log-probabilities of a sentence after `before` and a state, and the state before its last symbol is read."""
    parts = [np.empty(0, dtype=np.float32)]
    for ids, targets in _columns(np.concatenate([[before], read[:-1]]), sentence, model):
        log_prob, state = model.log_prob(ids, targets, state)
        parts.append(_rows(log_prob)[0])
    return np.concatenate(parts), state


def score_document(
    model: LanguageModel, sentences: Symbols, first: int, state: State | None = None, inputs: Symbols | None = None
) -> Iterator[np.ndarray]:
    """Log-probabilities (nats, float32 [n]) of each sentence, read in the context of all before it."""
    state = model.begin(1) if state is None else state
    before = first
    for sentence, read in _with_inputs(sentences, inputs):
        if len(sentence):
            log_prob, state = _score_column(model, sentence, read, before, state)
            before = int(read[-1])
        yield log_prob if len(sentence) else np.empty(0, dtype=np.float32)


class Prediction(NamedTuple):
    """How n symbols were predicted.

    Attributes:
        log_prob: of each symbol (nats), float32 [n].
        rank: of each among all V by falling probability, 1 the most probable, int64 [n]; of ties the smallest rank;
            0 where the model gives none.
        entropy: of the distribution before each symbol (nats), and of the one after the last: float32 [n + 1].
        space: log-probability (nats) that one of the asked `spaces` comes, before each symbol and after the last:
            float32 [n + 1]; -inf where none was asked for.
    """

    log_prob: np.ndarray
    rank: np.ndarray
    entropy: np.ndarray
    space: np.ndarray


class Columns(NamedTuple):
    """How sequences side by side were predicted: the figures of `Prediction`, each [T, B]."""

    log_prob: Tensor
    rank: Tensor
    entropy: Tensor
    space: Tensor


@torch.inference_mode()
def predict(
    model: LanguageModel, inputs: Tensor, targets: Tensor, state: State, spaces: Sequence[int] = ()
) -> tuple[Columns, State]:
    """How targets [T, B] are predicted after inputs [T, B], and the state after them; `spaces` are symbols.

    The figures follow from `LanguageModel.log_probs`, which every output layer has, a few steps at a time.
    """
    parts, at, steps = [], 0, 1
    asked = torch.tensor(spaces, dtype=torch.long, device=model.device)
    while at < len(inputs):
        log_probs, state = model.log_probs(inputs[at : at + steps], state)
        log_prob = log_probs.gather(-1, targets[at : at + steps].unsqueeze(-1))
        rank = (log_probs > log_prob).sum(-1) + 1
        entropy, space = torch.special.entr(log_probs.exp()).sum(-1), log_probs[..., asked].logsumexp(-1)
        parts.append((log_prob.squeeze(-1), rank, entropy, space))
        at, steps = at + steps, max(1, LARGEST // log_probs[0].numel())
    return Columns(*(torch.cat(part) for part in zip(*parts, strict=True))), state


def predict_sentences(
    model: LanguageModel,
    sentences: Symbols,
    first: int,
    batch_size: int = 32,
    inputs: Symbols | None = None,
    spaces: Sequence[int] = (),
) -> Iterator[Prediction]:
    """The prediction of each sentence, preceded by `first` and no other context."""
    remaining = _with_inputs(sentences, inputs)
    while group := list(islice(remaining, batch_size)):
        if not _is_small(group):
            for sentence, read in group:
                yield _predict_column(model, sentence, read, first, model.begin(1), spaces)[0]
            continue
        # One more target, whatever it is: the model reads the last symbol, too, for the entropy after it.
        longer = [(np.append(sentence, first), np.append(read, first)) for sentence, read in group]
        batch, lengths = stack_sequences([sentence for sentence, _ in longer], first, [read for _, read in longer])
        batch = batch.to(model.device)
        found, _ = predict(model, batch.inputs, batch.targets, model.begin(len(group)), spaces)
        columns = list(map(_rows, found))
        for row, length in enumerate(lengths):
            log_prob, rank, entropy, space = (column[row, :length] for column in columns)
            yield Prediction(log_prob[:-1], rank[:-1], entropy, space)


def predict_document(
    model: LanguageModel,
    sentences: Symbols,
    first: int,
    inputs: Symbols | None = None,
    spaces: Sequence[int] = (),
) -> Iterator[Prediction]:
    """The prediction of each sentence, read in the context of all before it."""
    state, before = model.begin(1), first
    for sentence, read in _with_inputs(sentences, inputs):
        prediction, state = _predict_column(model, sentence, read, before, state, spaces)
        before = int(read[-1]) if len(read) else before
        yield prediction


def _predict_column(
    model: LanguageModel, sentence: np.ndarray, read: np.ndarray, before: int, state: State, spaces: Sequence[int]
) -> tuple[Prediction, State]:
    """The prediction of a sentence after `before` and a state, and the state before its last symbol is read."""
    empty = np.empty(0, np.float32)
    parts: list[tuple[np.ndarray, ...]] = [(empty, np.empty(0, np.int64), empty, empty)]
    for ids, targets in _columns(np.concatenate([[before], read[:-1]])[: len(read)], sentence, model):
        found, state = predict(model, ids, targets, state, spaces)
        parts.append(tuple(_rows(part)[0] for part in found))
    last = torch.tensor([[int(read[-1]) if len(read) else before]], device=model.device)
    after, _ = predict(model, last, torch.zeros_like(last), state, spaces)
    log_prob, rank, entropy, space = (np.concatenate(part) for part in zip(*parts, strict=True))
    entropy, space = np.append(entropy, _rows(after.entropy)[0]), np.append(space, _rows(after.space)[0])
    return Prediction(log_prob, rank, entropy, space), state


def _is_small(group: Sequence[tuple[np.ndarray, np.ndarray]]) -> bool:
    """Whether sentences are read side by side: none is empty or long, and they are not too many for their length."""
    lengths = [len(sentence) for sentence, _ in group]
    return min(lengths) > 0 and max(lengths) < WINDOW and (max(lengths) + 1) * len(group) <= BATCH


def _columns(inputs: np.ndarray, targets: np.ndarray, model: LanguageModel) -> Iterator[tuple[Tensor, Tensor]]:
    """Inputs and targets, [T, 1] each, window by window."""
    for at in range(0, len(targets), WINDOW):
        window = slice(at, at + WINDOW)
        pair = (torch.tensor(part[window], dtype=torch.long, device=model.device) for part in (inputs, targets))
        ids, wanted = pair
        yield ids.unsqueeze(1), wanted.unsqueeze(1)


def _with_inputs(sentences: Symbols, inputs: Symbols | None) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    if inputs is None:
        return ((sentence, sentence) for sentence in sentences)
    return zip(sentences, inputs, strict=True)


def _rows(columns: Tensor) -> np.ndarray:
    """[T, B] as an array [B, T], floats in single precision; raises Diverged where one is no number."""
    values = columns.t()
    require_numbers(values)
    return (values.float() if values.is_floating_point() else values).cpu().numpy()
