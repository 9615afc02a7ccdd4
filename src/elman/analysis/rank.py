"""The rank of a model's log-probabilities over a text, and whether it exceeds the bound of a softmax.

A softmax over d hidden units gives A = W H + b 1^T - 1 z^T, V symbols by T positions, so its rank is at most d + 2,
however large the vocabulary: the softmax bottleneck (Yang et al. 2018, section 2; Kanai's thesis, section 4.4.3).
"""

import math
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Literal, NamedTuple, TypeAlias

import msgspec
import numpy as np
import torch
from torch import Tensor

from elman.analysis.singular_values import Values, exact, gram, randomised
from elman.data.windows import EvaluationWindows
from elman.errors import UserError
from elman.evaluation.perplexity import evaluating, traces
from elman.jobs import Advance
from elman.network.model import LanguageModel
from elman.network.output.contexts import MixtureContexts
from elman.network.output.flat import FlatChoice

Method: TypeAlias = Literal["gram", "randomised", "exact"]

FACTORS = (0.1, 1.0, 10.0, 100.0, 1000.0)
"""Multiples of the machine epsilon at which the rank is reported, to show how much it depends on the threshold."""

_ELEMENTS = 1 << 24
"""How many log-probabilities of single components a window may hold: 64 MB in float32."""


class Spectrum(NamedTuple):
    """Singular values of a matrix [V, T] of log-probabilities in the precision `dtype`, float64, the largest first.

    There are min(V, T), or the leading ones that `randomised` finds; those below the absolute `error` are noise.
    """

    singular_values: np.ndarray
    num_words: int
    num_tokens: int
    dtype: str
    method: str
    error: float
    seconds: float = 0.0


def spectrum(
    model: LanguageModel,
    tokens: np.ndarray,
    first: int,
    *,
    method: Method | None = None,
    max_tokens: int | None = None,
    advance: Advance = None,
    streams: int = 1,
    num_values: int = 1000,
    inputs: np.ndarray | None = None,
) -> Spectrum:
    """The singular values of the log-probabilities [V, T] of every word after every position of a stream.

    The matrix is never held: windows of it are added up in float64. Its precision follows the model's parameters;
    `model.double()` gives float64.

    The first `max_tokens` tokens of the stream [n], n > 0, are read as for the perplexity, with the state carried, or
    `inputs` [n] in their place by a model that knows unknown words by their spelling; more `streams` are faster, and
    each begins with an empty state. The size of the matrix decides the method (see `elman.analysis.singular_values`) if
    None is given; `randomised` finds `num_values` values. `advance` is called with (tokens read, tokens in all),
    counted over all passes. Raises UserError where a log-probability is not finite.
    """
    tokens, inputs = tokens[:max_tokens], None if inputs is None else inputs[:max_tokens]
    assert len(tokens) > 0, "a spectrum needs a token"
    started, width = time.monotonic(), num_words(model)
    method = method or method_for(min(len(tokens), width))
    passes = 3 if method == "randomised" else 1
    read = 0

    def blocks() -> Iterator[Tensor]:
        nonlocal read
        for block in log_prob_rows(model, tokens, first, streams=streams, inputs=inputs):
            if not block.isfinite().all():
                raise UserError("the model gives log-probabilities that are not finite: their matrix has no rank")
            yield block
            read += len(block)
            if advance is not None:
                advance(read, passes * len(tokens))

    leading = partial(randomised, count=num_values)
    find: dict[Method, Callable[..., Values]] = {"gram": gram, "exact": exact, "randomised": leading}
    values, error = find[method](blocks, len(tokens), width)
    dtype = str(next(model.parameters()).dtype).removeprefix("torch.")
    seconds = time.monotonic() - started
    return Spectrum(values.cpu().numpy(), width, len(tokens), dtype, method, error, seconds)


def threshold(spectrum: Spectrum, eps: float | None = None) -> float:
    """The size from which a singular value counts: sqrt(V + T + 1)/2 * sigma_1 * eps (Press et al., Numerical Recipes).

    `eps` is by default the machine epsilon of the precision of the log-probabilities.
    """
    eps = float(np.finfo(spectrum.dtype).eps) if eps is None else eps
    root = math.sqrt(spectrum.num_words + spectrum.num_tokens + 1)
    return 0.5 * root * float(spectrum.singular_values[0]) * eps


def numerical_rank(spectrum: Spectrum, eps: float | None = None) -> int:
    """How many singular values exceed both `threshold` and the error of the method.

    The values of `randomised` are never too large, so all that exceed the threshold count: a lower bound of the rank.
    """
    noise = 0.0 if spectrum.method == "randomised" else spectrum.error
    return int((spectrum.singular_values > max(threshold(spectrum, eps), noise)).sum())


def rank_bound(model: LanguageModel) -> int | None:
    """The largest rank that a model's log-probabilities can have: d + 2 for a softmax with a bias, d + 1 without.

    None where no such bound is known: mixtures, other activations, other choices than the flat one, gated logits.
    """
    contexts, choice = model.output.contexts, model.output.choice
    if not isinstance(choice, FlatChoice) or choice.activation != "softmax" or choice.gate_weight is not None:
        return None
    if isinstance(contexts, MixtureContexts) and sum(contexts.heads.values()) > 1:
        return None
    return contexts.size + 1 + (choice.bias is not None)


@torch.inference_mode()
def log_prob_rows(
    model: LanguageModel, tokens: np.ndarray, first: int, *, streams: int = 1, inputs: np.ndarray | None = None
) -> Iterator[Tensor]:
    """Log-probabilities [n, V] of every word to follow each position of a stream, window by window, T rows in all.

    `inputs` are as in `spectrum`.
    """
    columns = EvaluationWindows(tokens, first, streams=streams).streams
    contexts = model.output.contexts
    wide = num_words(model) * columns * (sum(contexts.heads.values()) if isinstance(contexts, MixtureContexts) else 1)
    length = min(512, max(1, _ELEMENTS // wide))
    windows = EvaluationWindows(tokens, first, streams=streams, length=length, inputs=inputs)
    for batch, _, trace in traces(model, windows):
        yield model.output.log_probs(trace)[batch.mask]


@torch.inference_mode()
def num_words(model: LanguageModel) -> int:
    """V, by the output of the model."""
    with evaluating(model):  # without dropout, which would move the random state of a training run
        log_probs, _ = model.step(torch.zeros(1, dtype=torch.long, device=model.device), model.begin(1))
    return log_probs.shape[-1]


class Sensitivity(msgspec.Struct, frozen=True):
    """The rank at one multiple of the machine epsilon; `at_least` where the method cannot resolve more."""

    factor: float
    rank: int
    at_least: bool


class Finding(msgspec.Struct, frozen=True):
    """The rank of a model over a text, by the rule of `threshold`, and at multiples of the machine epsilon.

    `size` is d, the width of a context; `bound` the largest rank this model can have (None where none is known),
    `softmax_bound` the largest of one softmax over contexts of the same width. `at_least`: the rank may be larger,
    since the threshold is below the error, a value that does not count would with the error, or not all values were
    computed.
    """

    size: int
    bound: int | None
    softmax_bound: int
    rank: int
    at_least: bool
    threshold: float
    sensitivity: list[Sensitivity]
    seconds: float
    spectrum: Spectrum

    @property
    def exceeds(self) -> bool | None:
        """Whether the rank exceeds the bound of one softmax of this width; None: a lower bound leaves it open."""
        if self.at_least and self.bound is None and self.rank <= self.softmax_bound:
            return None
        return self.rank > self.softmax_bound


def find_rank(model: LanguageModel, found: Spectrum) -> Finding:
    """The rank by the spectrum of a model's log-probabilities, and its bounds."""
    size, choice = model.output.contexts.size, model.output.choice
    has_bias = not isinstance(choice, FlatChoice) or choice.bias is not None
    eps = float(np.finfo(found.dtype).eps)
    at = {factor: Sensitivity(factor, *_rank(found, factor * eps)) for factor in (1.0, *FACTORS)}
    return Finding(
        size=size,
        bound=rank_bound(model),
        softmax_bound=size + 1 + has_bias,
        rank=at[1.0].rank,
        at_least=at[1.0].at_least,
        threshold=threshold(found),
        sensitivity=[at[factor] for factor in FACTORS],
        seconds=found.seconds,
        spectrum=found,
    )


def method_for(side: int) -> Method:
    """The most accurate method that is fast enough for a matrix whose smaller side is `side`."""
    return "exact" if side <= 3_000 else "gram" if side <= 20_000 else "randomised"


def _rank(found: Spectrum, eps: float) -> tuple[int, bool]:
    """The rank, and whether it is only a lower bound."""
    rank = numerical_rank(found, eps)
    if rank == min(found.num_words, found.num_tokens):
        return rank, False
    if found.method == "randomised":
        # The first value that does not count may be too small by the error.
        return rank, rank == len(found.singular_values) or bool(
            found.singular_values[rank] + found.error > threshold(found, eps)
        )
    # For exact float64 outputs the two are the same number up to rounding.
    return rank, threshold(found, eps) < found.error * (1 - 1e-9)
