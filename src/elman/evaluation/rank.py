"""The rank of what a model says: the singular values of the matrix of its log-probabilities over a text.

A softmax over d hidden units writes A = W H + b 1^T - 1 z^T, V symbols by T positions, so its rank is at most d + 2,
however large the vocabulary: the softmax bottleneck (Yang et al. 2018, section 2; Kanai's thesis, section 4.4.3).
"""

import math
from collections.abc import Callable, Iterator
from typing import Literal, NamedTuple, TypeAlias, assert_never

import numpy as np
import torch
from torch import Tensor

from elman.data.windows import EvaluationWindows
from elman.evaluation.perplexity import traces
from elman.evaluation.singular_values import Blocks, Values, exact, gram, randomised
from elman.model import LanguageModel
from elman.output.contexts import Mixture
from elman.output.flat import Flat

Method: TypeAlias = Literal["gram", "randomised", "exact"]

_ELEMENTS = 1 << 24
"""How many log-probabilities of single components a window may hold: 64 MB in float32."""


class Spectrum(NamedTuple):
    """Singular values of a matrix of log-probabilities.

    Attributes:
        singular_values: the largest first, float64; min(V, T) of them, or the leading ones that `randomised` finds.
        num_words: V.
        num_tokens: T.
        dtype: the precision that the log-probabilities were computed in.
        method: how the values were found.
        error: how far off each of them may be; smaller ones are noise.

    """

    singular_values: np.ndarray
    num_words: int
    num_tokens: int
    dtype: str
    method: str
    error: float

    @property
    def is_complete(self) -> bool:
        """Whether all values are there, and not only the leading ones."""
        return len(self.singular_values) == min(self.num_words, self.num_tokens)


def spectrum(
    model: LanguageModel,
    tokens: np.ndarray,
    first: int,
    *,
    method: Method = "gram",
    max_tokens: int | None = None,
    advance: Callable[[int, int], None] | None = None,
    streams: int = 1,
    num_values: int = 1000,
) -> Spectrum:
    """The singular values of the log-probabilities [V, T] of every word after every position of a stream.

    The matrix is never held: windows of it are added up in float64. Its precision is that of the model's parameters;
    `model.double()` gives float64.

    Args:
        model: the language model.
        tokens: the stream, an integer array [n], n > 0; read as for the perplexity, the state carried.
        first: the symbol read before it.
        method: see `elman.evaluation.singular_values`.
        max_tokens: T at most; the beginning of the stream.
        advance: told (tokens read, tokens in all), counted over all passes.
        streams: columns read side by side, as for the perplexity: faster, and each begins with an empty state.
        num_values: how many values `randomised` finds.

    """
    tokens = tokens[:max_tokens]
    assert len(tokens) > 0, "a spectrum needs a token"
    width = num_words(model)
    passes = 3 if method == "randomised" else 1
    read = 0

    def blocks() -> Iterator[Tensor]:
        nonlocal read
        for block in log_prob_rows(model, tokens, first, streams=streams):
            yield block
            read += len(block)
            if advance is not None:
                advance(read, passes * len(tokens))

    values, error = _decompose(method, blocks, len(tokens), width, num_values)
    dtype = str(next(model.parameters()).dtype).removeprefix("torch.")
    return Spectrum(values.cpu().numpy(), width, len(tokens), dtype, method, error)


def threshold(spectrum: Spectrum, eps: float | None = None) -> float:
    """The size from which a singular value counts: sqrt(V + T + 1)/2 * sigma_1 * eps (Press et al., Numerical Recipes).

    Args:
        spectrum: the singular values.
        eps: by default the machine epsilon of the precision that the log-probabilities were computed in.

    """
    if eps is None:
        eps = float(np.finfo(spectrum.dtype).eps)
    root = math.sqrt(spectrum.num_words + spectrum.num_tokens + 1)
    return 0.5 * root * float(spectrum.singular_values[0]) * eps


def numerical_rank(spectrum: Spectrum, eps: float | None = None) -> int:
    """How many singular values exceed `threshold`, and the error of the method, below which there is only noise.

    The values of `randomised` are never too large, so all that exceed the threshold count: the rank is at least that.
    """
    noise = 0.0 if spectrum.method == "randomised" else spectrum.error
    return int((spectrum.singular_values > max(threshold(spectrum, eps), noise)).sum())


def rank_bound(model: LanguageModel) -> int | None:
    """The largest rank that a model's log-probabilities can have: d + 2 for a softmax with a bias, d + 1 without.

    None where no such bound is known: mixtures, other activations, other choices than the flat one.
    """
    contexts, choice = model.output.contexts, model.output.choice
    if not isinstance(choice, Flat) or choice.activation != "softmax":
        return None
    if isinstance(contexts, Mixture) and sum(contexts.heads.values()) > 1:
        return None
    return contexts.size + 1 + (choice.bias is not None)


@torch.inference_mode()
def log_prob_rows(model: LanguageModel, tokens: np.ndarray, first: int, *, streams: int = 1) -> Iterator[Tensor]:
    """Log-probabilities [n, V] of every word to follow each position of a stream, window by window, T rows in all."""
    columns = EvaluationWindows(tokens, first, streams=streams).streams
    wide = num_words(model) * _num_components(model) * columns
    windows = EvaluationWindows(tokens, first, streams=streams, length=min(512, max(1, _ELEMENTS // wide)))
    for batch, _, trace in traces(model, windows):
        yield model.output.log_probs(trace)[batch.mask]


@torch.inference_mode()
def num_words(model: LanguageModel) -> int:
    """V, as the model gives it: every choice of a word knows its own."""
    training = model.training
    # Without dropout, since that would move the random state of a training run.
    model.eval()
    log_probs, _ = model.step(torch.zeros(1, dtype=torch.long, device=model.device), model.begin(1))
    model.train(training)
    return log_probs.shape[-1]


def _num_components(model: LanguageModel) -> int:
    contexts = model.output.contexts
    return sum(contexts.heads.values()) if isinstance(contexts, Mixture) else 1


def _decompose(method: Method, blocks: Blocks, num_rows: int, num_columns: int, num_values: int) -> Values:
    match method:
        case "gram":
            return gram(blocks, num_rows, num_columns)
        case "exact":
            return exact(blocks, num_rows, num_columns)
        case "randomised":
            return randomised(blocks, num_rows, num_columns, count=num_values)
        case _:
            assert_never(method)
