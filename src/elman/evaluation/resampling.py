"""How sure a measure of many sentences is, and whether two systems differ: resampling of sentences.

A measure is a function of sums over sentences (matches, lengths), so a resample is a matrix product.
"""

import dataclasses
from collections.abc import Callable

import msgspec
import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

SAMPLES = 1000
"""Resamples, as usual in machine translation."""


@dataclasses.dataclass(frozen=True)
class Measure:
    """A measure of a system's output.

    Attributes:
        name: such as `BLEU`.
        statistics: what is summed over sentences, [n, k].
        figure: the measure of the sums [k].
        signature: how it was computed, as published figures should say it.

    """

    name: str
    statistics: Floats
    figure: Callable[[Floats], float]
    signature: str = ""

    @property
    def value(self) -> float:
        """The measure of all sentences."""
        return self.figure(self.statistics.sum(axis=0))


class Figure(msgspec.Struct, frozen=True):
    """A measure's value with its 95 % bootstrap interval."""

    name: str
    value: float
    low: float
    high: float
    signature: str = ""


class Difference(msgspec.Struct, frozen=True):
    """How two systems differ by a measure.

    Attributes:
        name: of the measure.
        a, b: the values of both.
        difference: b - a.
        low, high: 95 % interval of the difference, by the paired bootstrap.
        p_value: of no difference, two-sided, by approximate randomisation.

    """

    name: str
    a: float
    b: float
    difference: float
    low: float
    high: float
    p_value: float


def interval(measure: Measure, samples: int = SAMPLES, seed: int = 0) -> Figure:
    """The value and its percentile bootstrap interval (Koehn 2004, Significance tests for MT)."""
    values = _figures(measure, _draws(len(measure.statistics), samples, seed) @ measure.statistics)
    low, high = np.percentile(values, [2.5, 97.5])
    return Figure(measure.name, measure.value, float(low), float(high), measure.signature)


def difference(a: Measure, b: Measure, samples: int = SAMPLES, seed: int = 0) -> Difference:
    """Compare two systems on the same sentences.

    The interval is of the paired bootstrap (Koehn 2004). The p-value is of approximate randomisation: the outputs of
    each sentence change sides with probability 1/2, and p is the share, (1 + count) / (1 + samples), of such worlds
    whose difference is no smaller than the real one (Riezler & Maxwell 2005, On some pitfalls in automatic evaluation).
    """
    assert a.name == b.name
    assert a.statistics.shape == b.statistics.shape, "the same sentences"
    draws = _draws(len(a.statistics), samples, seed)
    resampled = _figures(b, draws @ b.statistics) - _figures(a, draws @ a.statistics)
    low, high = np.percentile(resampled, [2.5, 97.5])
    swaps = np.random.default_rng([seed, 1]).integers(0, 2, size=draws.shape).astype(np.float64)
    moved = swaps @ (b.statistics - a.statistics)
    worlds = _figures(b, b.statistics.sum(axis=0) - moved) - _figures(a, a.statistics.sum(axis=0) + moved)
    real = b.value - a.value
    extreme = int((np.abs(worlds) >= abs(real) - 1e-12).sum())
    return Difference(a.name, a.value, b.value, real, float(low), float(high), (extreme + 1) / (samples + 1))


def _draws(sentences: int, samples: int, seed: int) -> Floats:
    """How often each sentence is in each resample, [samples, n]."""
    share = np.full(sentences, 1 / sentences)
    return np.random.default_rng(seed).multinomial(sentences, share, size=samples).astype(np.float64)


def _figures(measure: Measure, sums: Floats) -> Floats:
    return np.array([measure.figure(row) for row in sums])
