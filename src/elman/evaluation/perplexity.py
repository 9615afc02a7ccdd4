"""Perplexity of a stream, every token counted exactly once (thesis 2.50).

A model that reads spelling (encoder of characters) also reads the words that its vocabulary lacks, each by a number of
its own, where the text distinguishes them; as targets they are always `<unk>`.
"""

import contextlib
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec
import numpy as np
import torch
from torch import Tensor, nn

from elman.config.text import TextEvaluation
from elman.data.batches import Batch
from elman.data.text.corpus import Split
from elman.data.text.passages import has_words
from elman.data.windows import EvaluationWindows, PositionedWindows
from elman.errors import UserError
from elman.evaluation.result import Result
from elman.jobs import Advance, advancing
from elman.network.cores.core import Trace
from elman.network.model import LanguageModel
from elman.network.state import restart
from elman.objective import perplexity

NOT_FINITE = "the network computes numbers beyond its precision: train it again, with clipping or a lower rate"


class Score(msgspec.Struct, frozen=True):
    """The sum of negative log-likelihoods (nats) over `count` tokens."""

    nll_sum: float
    count: int

    @property
    def nll(self) -> float:
        """The mean in nats per token."""
        return self.nll_sum / self.count

    @property
    def perplexity(self) -> float:
        """Exponential of the mean in nats."""
        return perplexity(self.nll)

    @property
    def bits(self) -> float:
        """The mean in bits per token."""
        return self.nll / math.log(2)

    def result(self, split: str, **figures: Any) -> Result:
        """The result on a split, with these other figures; raises UserError where nothing was counted."""
        if not self.count:
            raise UserError(f"nothing of the {split} split is counted; give more data, or count the first token too")
        first = {"nll": self.nll, "perplexity": self.perplexity, "bits_per_token": self.bits, "tokens": self.count}
        return Result.of(**{"split": split, **first, **figures})


@contextlib.contextmanager
def evaluating(model: nn.Module, *, dropout: bool = False) -> Iterator[None]:
    """Within the block the model is in evaluation mode, or with `dropout` in training mode; afterwards as before."""
    training = model.training
    model.train(dropout)
    try:
        yield
    finally:
        model.train(training)


@torch.inference_mode()
def traces(
    model: LanguageModel, windows: PositionedWindows, *, dropout: bool = False
) -> Iterator[tuple[Batch, Tensor, Trace]]:
    """Windows on the model's device, the positions of their targets, and the trace of the core, in order.

    With `dropout` its masks are drawn in every window, as in training.
    """
    with evaluating(model, dropout=dropout):
        beginning = state = model.begin(windows.streams)
        for batch, positions in windows:
            batch = batch.to(model.device)
            assert batch.fresh is not None
            state = restart(state, batch.fresh, beginning)
            trace, state = model.trace(batch.inputs, state)
            yield batch, positions, trace


@torch.inference_mode()
def stream(
    model: LanguageModel, windows: PositionedWindows, *, dropout: bool = False
) -> Iterator[tuple[Tensor, Tensor]]:
    """Log-probabilities (nats, [n]) window by window, and the positions [n] in the stream they belong to."""
    for batch, positions, trace in traces(model, windows, dropout=dropout):
        yield model.output.log_prob(trace, batch.targets)[batch.mask], positions[positions >= 0]


def evaluate(model: LanguageModel, windows: PositionedWindows, advance: Advance = None) -> Score:
    """The score of a stream, summed in float64; `advance` is called with (windows done, windows in all)."""
    return sum_scores((log_prob for log_prob, _ in stream(model, windows)), windows.num_windows, advance)


def sum_scores(log_probs: Iterable[Tensor], num_parts: int, advance: Advance = None) -> Score:
    """The score of log-probabilities (nats, [n] each); `advance` is called with (parts done, parts in all)."""
    total, count = 0.0, 0
    for log_prob in advancing(log_probs, num_parts, advance):
        total -= log_prob.cpu().double().sum().item()
        count += len(log_prob)
    return Score(total, count)


def token_log_probs(model: LanguageModel, windows: EvaluationWindows, advance: Advance = None) -> np.ndarray:
    """The log-probability (nats) of every token of the stream, float32 [n]; NaN for a token that is skipped."""
    return in_places(stream(model, windows), len(windows.tokens), windows.num_windows, advance)


def in_places(parts: Iterable[tuple[Tensor, Tensor]], size: int, num_parts: int, advance: Advance = None) -> np.ndarray:
    """Log-probabilities in their places, float32 [size], from pairs with positions such as `stream` gives; else NaN.

    `advance` is called with (parts done, parts in all).
    """
    result = np.full(size, np.nan, dtype=np.float32)
    for log_prob, positions in advancing(parts, num_parts, advance):
        result[positions.numpy()] = log_prob.float().cpu().numpy()
    return result


@torch.inference_mode()
def token_and_space_log_probs(
    model: LanguageModel, windows: EvaluationWindows, spaces: Sequence[int], advance: Advance = None
) -> tuple[np.ndarray, np.ndarray]:
    """The log-probabilities, float32 [n] each, of every token, and of any of the symbols `spaces` in its place."""
    own, space = (np.full(len(windows.tokens), np.nan, dtype=np.float32) for _ in range(2))
    asked = torch.tensor(spaces, dtype=torch.long, device=model.device)
    for batch, positions, trace in advancing(traces(model, windows), windows.num_windows, advance):
        log_probs = model.output.log_probs(trace)[batch.mask]
        places, targets = positions[positions >= 0].numpy(), batch.targets[batch.mask].unsqueeze(-1)
        own[places] = log_probs.gather(-1, targets).squeeze(-1).float().cpu().numpy()
        space[places] = log_probs[:, asked].logsumexp(-1).float().cpu().numpy()
    return own, space


def score_of(log_probs: np.ndarray) -> Score:
    """The score of per-token log-probabilities (nats); NaN tokens are not counted."""
    counted = log_probs[~np.isnan(log_probs)]
    return Score(-float(counted.sum(dtype=np.float64)), len(counted))


def average_probabilities(log_probs: Sequence[np.ndarray], weights: Sequence[float] | None = None) -> np.ndarray:
    """Log of the weighted mean of probabilities, token by token: an ensemble of models (float64 [n]).

    Example:
        >>> average_probabilities([np.log([0.5]), np.log([0.25])]).round(4)
        array([-0.9808])
    """
    stacked = np.stack([part.astype(np.float64) for part in log_probs])
    share = np.full(len(stacked), 1 / len(stacked)) if weights is None else np.array(weights) / np.sum(weights)
    with np.errstate(divide="ignore", invalid="ignore"):  # a token may have no probability, or none that counts
        return np.logaddexp.reduce(stacked + np.log(share)[:, None], axis=0)


ONE_STREAM = TextEvaluation(streams=1)


def reading(
    model: LanguageModel, split: Split, first: int, rules: TextEvaluation = ONE_STREAM
) -> tuple[LanguageModel, EvaluationWindows]:
    """The model that knows the split's words, and the windows of the split, which `first` precedes."""
    inputs = split.inputs if model.encoder.spells else None
    windows = EvaluationWindows(split.tokens, first, **msgspec.structs.asdict(rules), inputs=inputs)
    return (model if inputs is None else model.knowing(split.unknown_words)), windows


def evaluate_split(
    model: LanguageModel, split: Split, first: int, rules: TextEvaluation = ONE_STREAM, advance: Advance = None
) -> Result:
    """Evaluate a split, which `first` precedes; `advance` is called with (windows done, windows in all)."""
    model, windows = reading(model, split, first, rules)
    place = {"context": "carried", "streams": windows.streams, "warm_up": rules.warm_up, "method": "static"}
    return text_result(evaluate(model, windows, advance), split.counted(skip_first=rules.skip_first), **place)


def text_result(score: Score, split: Split, **others: Any) -> Result:
    """The result of a score of all tokens of a split: per token, character, byte and word, with other figures.

    Whatever the tokens are, the perplexity of words is exp of all nats over the words of the split and its line ends
    (`elman.data.text.passages`), so that models of words, subwords, characters and bytes of one text compare; of raw
    text the words are its tokens. A text without spaces between words has no figures per word.

    Raises UserError where tokens of the split were not counted, of which the model has no probability.
    """
    if 0 < score.count < (size := len(split.tokens)):
        raise UserError(f"{size - score.count:,} of {size:,} tokens have no probability but NaN; {NOT_FINITE}")
    total, spaced = score.nll_sum / math.log(2), has_words(split.unseparated, split.characters)
    return score.result(
        split.name,
        bits_per_character=total / max(1, split.characters),
        bits_per_byte=total / max(1, split.num_bytes),
        bits_per_word=total / max(1, split.num_words) if spaced else None,
        word_perplexity=perplexity(score.nll_sum / max(1, split.num_words)) if spaced else None,
        unknown=split.unknown,
        characters=split.characters,
        bytes=split.num_bytes,
        words=split.num_words,
        **others,
    )
