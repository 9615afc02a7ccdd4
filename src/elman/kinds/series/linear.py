"""The linear part of a model of series: ridge regression on differences, lags, seasons and covariates.

A network with a linear part models what is left, r_t = v_t - m_t. The prediction m_t of row v_t is

    m_t = b_t + d + s (c + sum_l A_l (d_{t-l} - d) / s + B x_t + B' x_{t-1})

where b_t = v_{t-1} and d_t = v_t - v_{t-1} where differences are taken, else b_t = 0 and d_t = v_t; d and s are the
mean and deviation of d_t in the training split, x_t the standardised covariates. All coefficients minimise the squared
error of the training split plus `penalty` times its rows times their squares (Hoerl & Kennard 1970).
"""

from collections.abc import Sequence
from typing import NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from elman.data.numbers import in_ranges
from elman.kinds.series.table import Array, carried

BLOCK = 8192
NO_ERROR = 1e-200  # above the scale of a column whose value a season before is always right
WARM_UP = 200  # steps of the past that a network reads before a split, beside the lags
Places = npt.NDArray[np.intp]
Bools = npt.NDArray[np.bool_]


class Residuals(NamedTuple):
    """What a network reads [n, F] and predicts [n, P] at the steps of a series; `gaps` [n]: steps that do not count."""

    inputs: Array
    targets: Array
    gaps: Bools


class Linear(msgspec.Struct, frozen=True):
    """A fitted linear part; `weights` has for each of the `groups` of columns a matrix [1 + L G + 2 C, G].

    `mean` and `deviation` [P + C] are of d_t and the covariates; `read_mean`, `read_deviation`, `low` and `high` [F] of
    what the network reads: r_{t-1}, v_{t-1}, m_t - v_{t-1} and x_t, kept within its range in the training split.
    `scale` [P] is the mean absolute error there of the value one `season` before (one step, where there is none).
    `share` [P]: of the network's mean, what is added to m_t.
    """

    difference: bool
    season: int | None
    lags: tuple[int, ...]
    penalty: float
    groups: tuple[tuple[int, ...], ...]
    weights: tuple[tuple[tuple[float, ...], ...], ...]
    mean: tuple[float, ...]
    deviation: tuple[float, ...]
    scale: tuple[float, ...] = ()
    read_mean: tuple[float, ...] = ()
    read_deviation: tuple[float, ...] = ()
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()
    share: tuple[float, ...] = ()

    def __str__(self) -> str:
        what = "of differences " if self.difference else ""
        season = f", a season of {self.season} steps" if self.season else ""
        steps = f"steps {in_ranges(self.lags)}" if self.lags else "no steps"
        return f"an autoregression {what}on {steps} before{season}, penalty {self.penalty:g}"

    @property
    def reach(self) -> int:
        """Steps before the present one that are read."""
        return max(self.lags, default=0) + 1

    def ahead(self, past: Array, known: Array) -> Array:
        """Predictions m [N, P] after each past [N, > reach, P]; known [N, 2, C] has the last step and the next one."""
        number = past.shape[2]
        changes = np.diff(past, axis=1) if self.difference else past
        lagged = changes[:, [-lag for lag in self.lags]]
        return past[:, -1] * self.difference + self._of(lagged, known, number)

    def _of(self, lagged: Array, known: Array, number: int) -> Array:
        mean, deviation = np.array(self.mean), np.array(self.deviation)
        lagged = (lagged - mean[:number]) / deviation[:number]
        known = (known - mean[number:]) / deviation[number:]
        found = np.empty((len(lagged), number))
        for group, weights in zip(self.groups, self.weights, strict=True):
            found[:, group] = features(lagged[:, :, group], known) @ np.array(weights)
        return mean[:number] + deviation[:number] * found

    def predict(self, values: Array, known: Array) -> tuple[Array, Array]:
        """The series [n, P] with its missing values (NaN) as predicted, and m [n, P] of every step.

        Steps before the first are taken to be as the first.
        """
        gaps, read = np.isnan(values), carried(values)
        read = np.where(np.isnan(read), 0.0 if self.difference else np.array(self.mean)[: read.shape[1]], read)
        for step in np.flatnonzero(gaps.any(axis=1)):
            begin = max(0, step - self.reach)
            found = self._all(read[begin : step + 1], known[begin : step + 1])[-1]
            read[step] = np.where(gaps[step], found, read[step])
        return read, self._all(read, known)

    def _all(self, values: Array, known: Array) -> Array:
        before = np.concatenate([values[:1], values[:-1]])
        changes, parts = values - before if self.difference else values, []
        for rows in np.array_split(np.arange(len(values)), 1 + len(values) // BLOCK):
            parts.append(self._of(changes[places(rows, self.lags)], known[places(rows, (1, 0))], values.shape[1]))
        return before * self.difference + np.concatenate(parts)

    def residuals(self, values: Array, known: Array, before: Array, first: Array, skipped: int = 0) -> Residuals:
        """What a network reads and predicts of a series that follows `before` [m, P + C], whose steps do not count.

        Where there is none, row `first` [P] precedes; `skipped` steps at the beginning do not count either.
        """
        whole, past = _whole(values, known, before, first, self.reach + WARM_UP)
        number = len(first)
        covariates = self._there(whole[:, number:])
        filled, found = self.predict(whole[:, :number], covariates)
        left = filled - found
        inputs = np.zeros((len(whole), 3 * number + covariates.shape[1]))
        inputs[:-1] = self.read(left[:-1], filled[:-1], found[1:], covariates[1:])
        gaps: Bools = np.isnan(whole[:, :number]).any(axis=1) | (np.arange(len(whole)) < past + skipped)
        return Residuals(inputs, left, gaps)

    def means(self, values: Array, known: Array, before: Array, first: Array) -> Array:
        """Predictions m [n, P] of a series that follows `before`; arguments are as for `residuals`."""
        whole, past = _whole(values, known, before, first, self.reach + WARM_UP)
        return self.predict(whole[:, : len(first)], self._there(whole[:, len(first) :]))[1][past:]

    def _there(self, known: Array) -> Array:
        """Covariates [n, C] in which a missing value is as the one before, and at the beginning the mean."""
        mean = np.array(self.mean)[len(self.mean) - known.shape[1] :]
        return np.where(np.isnan(filled := carried(known)), mean, filled)

    def read(self, left: Array, values: Array, found: Array, known: Array) -> Array:
        """What the network reads, [N, F]: residuals, values, predictions and covariates of the steps that follow."""
        inputs = np.concatenate([left, values, found - values, known], axis=1)
        return np.clip(inputs, self.low, self.high) if self.low else inputs


def _whole(values: Array, known: Array, before: Array, first: Array, most: int) -> tuple[Array, int]:
    """A series with covariates, [m + n, P + C], after at most `most` steps before it; and the number of these."""
    past = before[-most:]
    if not len(past):
        past = np.concatenate([first[None], known[:1]], axis=1)
    return np.concatenate([past, np.concatenate([values, known], axis=1)]), len(past)


def places(rows: Places, lags: Sequence[int]) -> Places:
    """The places [N, L] of the rows that precede some by these lags."""
    return np.maximum(rows[:, None] - np.array(lags, np.int64), 0)


def features(lagged: Array, known: Array) -> Array:
    """[N, 1 + L G + 2 C] of lagged values [N, L, G] and covariates [N, 2, C]."""
    flat = (one.reshape(len(one), one.shape[1] * one.shape[2]) for one in (lagged, known))
    return np.concatenate([np.ones((len(lagged), 1)), *flat], 1)
