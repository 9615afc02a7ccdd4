"""A model of series evaluated: nats per step in the units of the data, and the error of its one-step means.

NRMSE, the normalised root mean squared error, is the RMSE of the one-step mean divided by the standard deviation of the
split that is evaluated: 1 for a model that always predicts the mean of the split. Over several columns it is the root
of the mean of their squares.
"""

import math
from collections.abc import Callable
from typing import TypeAlias

import msgspec
import numpy as np
import torch
from scipy.special import ndtr

from elman.evaluation.perplexity import Score, traces
from elman.evaluation.result import Result
from elman.jobs import Advance, advancing
from elman.kinds.series.corpus import Series, SeriesWindows
from elman.kinds.series.linear import NO_ERROR, Linear
from elman.kinds.series.table import Array, carried
from elman.network.model import LanguageModel
from elman.network.output.density import Density


class Prediction(msgspec.Struct, frozen=True):
    """One-step predictions of the n steps that count: means, float64 [n, P], and log-densities (nats), float64 [n].

    `below`, [n, P]: the probability that was given to values below the true one, NaN where the density has none.
    """

    mean: Array
    log_density: Array
    below: Array


@torch.inference_mode()
def predict(model: LanguageModel, windows: SeriesWindows, advance: Advance = None) -> Prediction:
    """The mean and the log-density of every step of a series that counts, given all steps before it."""
    choice, parts = model.output.choice, []
    assert isinstance(choice, Density)
    for batch, positions, trace in advancing(traces(model, windows), windows.num_windows, advance):
        vectors, log_prior = model.output.contexts(trace)
        each = choice.mean(vectors), choice.below(vectors, batch.targets.unsqueeze(-2))
        mean, below = ((log_prior.exp().unsqueeze(-1) * one).sum(-2) for one in each)
        found = mean, model.output.log_prob(trace, batch.targets), below
        parts.append((positions[positions >= 0], *(one[batch.mask].cpu().double() for one in found)))
    order, *found_all = (torch.cat(part) for part in zip(*parts, strict=True))
    return Prediction(*(one[order.argsort()].numpy() for one in found_all))


def nrmse(mean: Array, values: Array) -> Array:
    """The NRMSE of each column, [P], of predictions [n, P]; NaN where a column is constant in the split."""
    deviation = values.std(axis=0)
    error = np.sqrt(np.square(mean - values).mean(axis=0))
    return np.divide(error, deviation, out=np.full(len(error), np.nan), where=np.ptp(values, axis=0) > 0)


def mase(error: Array, scale: Array) -> float | None:
    """The mean absolute scaled error of errors [n, P] (NaN: missing), over the columns whose scale [P] is not 0."""
    known = scale > NO_ERROR
    return float(np.nanmean(np.abs(error[:, known]) / scale[known])) if known.any() else None


def prediction_result(
    prediction: Prediction, split: Series, names: tuple[str, ...], linear: Linear | None = None
) -> Result:
    """The result of predictions: nats per step, and NRMSE over all columns and per column.

    With a linear part also the MASE (Hyndman & Koehler 2006), the mean over columns of the mean absolute error over the
    one in training of the value a season, or else a step, before; and the share of values between .1 and .9 quantiles.
    """
    score = Score(-math.fsum(prediction.log_density), len(prediction.log_density))
    each = nrmse(prediction.mean, split.counted)
    known, more = each[~np.isnan(each)], dict[str, float | None]()
    if linear is not None:
        more["mase"] = mase(prediction.mean - split.counted, np.array(linear.scale))
        if not np.isnan(prediction.below).any():
            more["coverage_80"] = float((np.abs(prediction.below - 0.5) <= 0.4).mean())
    return score.result(
        split.name,
        context="carried",
        nrmse=float(np.sqrt(np.square(known).mean())) if len(known) else None,
        nrmse_by_column={name: float(one) for name, one in zip(names, each, strict=True) if not np.isnan(one)},
        **more,
    )


def share_of(means: Array, left: Array) -> Array:
    """The share of a network's means [n, P] by which the squared error of residuals [n, P] is the least, 0 to 1, [P].

    It is 0 where the errors without it are not greater by one standard error of their mean difference.
    """
    share = np.clip((left * means).sum(axis=0) / np.maximum(np.square(means).sum(axis=0), 1e-300), 0, 1)
    gain = np.square(left) - np.square(left - share * means)
    return np.where(gain.mean(axis=0) > gain.std(axis=0) / max(1, len(left)) ** 0.5, share, 0.0)


Baseline: TypeAlias = Callable[[Array, Array], Array]
"""A one-step prediction: the means [n, P] of values [n, P], given them and the steps before the first, [m, P]."""


def persistence(values: Array, before: Array) -> Array:
    """Predict that every step repeats the one before it, [n, P]."""
    return np.concatenate([before[-1:], values[:-1]])


def seasonal(season: int) -> Baseline:
    """Predict that every step repeats the one a season before it, [n, P]."""
    return lambda values, before: np.concatenate([before[-season:], values])[: len(values)]


def mean_of(train: Array) -> Baseline:
    """Predict the mean of the training split at every step."""
    return lambda values, _: np.tile(train.mean(axis=0), (len(values), 1))


def autoregression(train: Array, order: int) -> Baseline:
    """v_t = b + sum_k A_k v_{t-k} over `order` steps, fitted to the training split [n, P] by least squares.

    The weights are [1 + order * P, P], the constant first, then the most recent step. Steps with missing values (NaN),
    and those for which they are read, are left out.
    """
    before, after = lagged(train, order), train[order:]
    gaps = np.isnan(before).any(axis=1) | np.isnan(after).any(axis=1)
    if gaps.any():
        before, after = before[~gaps], after[~gaps]
    weights = np.linalg.lstsq(before, after, rcond=None)[0].astype(np.float64)
    return lambda values, before: lagged(np.concatenate([before[-order:], values]), order) @ weights


def lagged(values: Array, order: int) -> Array:
    """A constant and the `order` steps before each step from `order` on: [n - order, 1 + order * P]."""
    size = len(values) - order
    lags = [values[order - lag : order - lag + size] for lag in range(1, order + 1)]
    return np.concatenate([np.ones((size, 1)), *lags], axis=1)


def baseline_prediction(baseline: Baseline, train: Array, order: int, values: Array, before: Array) -> Prediction:
    """Predictions of a split whose error is normal, with its variance per column in the training split from `order`.

    In the place of missing values (NaN) those before them are read; their steps do not count.
    """

    def predicted(values: Array, before: Array) -> tuple[Array, Array]:
        gaps = np.isnan(values).any(axis=1)
        if not gaps.any() and not np.isnan(before).any():
            return baseline(values, before), values
        read = carried(np.concatenate([before, values]))
        return baseline(read[len(before) :], read[: len(before)])[~gaps], values[~gaps]

    found, truth = predicted(train[order:], train[:order])
    variance = np.maximum(np.square(found - truth).mean(axis=0), np.finfo(np.float64).tiny)
    mean, values = predicted(values, before)
    each = -0.5 * (np.square(values - mean) / variance + np.log(2 * np.pi * variance))
    return Prediction(mean, each.sum(axis=1), ndtr((values - mean) / np.sqrt(variance)))
