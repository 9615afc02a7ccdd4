"""Does a run escape the softmax bottleneck? Its rank over a text beside the bound of a softmax of its width."""

import time
from collections.abc import Callable

import msgspec
import numpy as np

from elman.evaluation.rank import Method, Spectrum, num_words, numerical_rank, rank_bound, spectrum, threshold
from elman.model import LanguageModel
from elman.output.flat import Flat

FACTORS = (0.1, 1.0, 10.0, 100.0, 1000.0)
"""Multiples of the machine epsilon at which the rank is given, to show how much it depends on the threshold."""

_EXACT_TO, _GRAM_TO = 3_000, 20_000


class Sensitivity(msgspec.Struct, frozen=True):
    """The rank at one multiple of the machine epsilon; `at_least` where the method cannot tell more."""

    factor: float
    rank: int
    at_least: bool


class Finding(msgspec.Struct, frozen=True):
    """The rank of a model over a text.

    Attributes:
        size: d, the width of a context.
        bound: the largest rank this model can have; None where none is known.
        softmax_bound: that of one softmax over contexts of the same width.
        rank: by the rule of `threshold`.
        at_least: the rank may be larger: the threshold is below what the method can tell, or not all values are there.
        sensitivity: the rank at multiples of the machine epsilon.
        seconds: the time it took.
        spectrum: the singular values.

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
    def exceeds(self) -> bool:
        """Whether the rank is beyond what one softmax of this width can reach."""
        return self.rank > self.softmax_bound


def find_rank(
    model: LanguageModel,
    tokens: np.ndarray,
    first: int,
    *,
    method: Method | None = None,
    max_tokens: int | None = None,
    advance: Callable[[int, int], None] | None = None,
    streams: int = 1,
    num_values: int = 1000,
) -> Finding:
    """The spectrum of a model over a stream, and what it says.

    Arguments as for `spectrum`; where no method is given the size of the matrix decides.
    """
    started = time.monotonic()
    length = len(tokens) if max_tokens is None else min(max_tokens, len(tokens))
    found = spectrum(
        model,
        tokens,
        first,
        method=method or method_for(min(length, num_words(model))),
        max_tokens=max_tokens,
        advance=advance,
        streams=streams,
        num_values=num_values,
    )
    choice = model.output.choice
    has_bias = not isinstance(choice, Flat) or choice.bias is not None
    eps = float(np.finfo(found.dtype).eps)
    return Finding(
        size=model.output.contexts.size,
        bound=rank_bound(model),
        softmax_bound=model.output.contexts.size + 1 + has_bias,
        rank=numerical_rank(found),
        at_least=_at_least(found, eps),
        threshold=threshold(found),
        sensitivity=[
            Sensitivity(factor, numerical_rank(found, factor * eps), _at_least(found, factor * eps))
            for factor in FACTORS
        ],
        seconds=time.monotonic() - started,
        spectrum=found,
    )


def method_for(side: int) -> Method:
    """The most accurate method that is quick enough for a matrix whose smaller side is `side`."""
    return "exact" if side <= _EXACT_TO else "gram" if side <= _GRAM_TO else "randomised"


def _at_least(found: Spectrum, eps: float) -> bool:
    rank = numerical_rank(found, eps)
    if rank == min(found.num_words, found.num_tokens):
        return False
    if found.method == "randomised":
        return rank == len(found.singular_values)
    # The two are the same number for exact float64 outputs, but for their rounding.
    return threshold(found, eps) < found.error * (1 - 1e-9)
