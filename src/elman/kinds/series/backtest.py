"""Forecasts from several origins of a series beside what came, and beside simple predictions."""

from typing import Any

import numpy as np

from elman.errors import UserError
from elman.kinds.series.corpus import SeriesCorpus
from elman.kinds.series.evaluation import mase
from elman.kinds.series.run import SeriesRun
from elman.kinds.series.table import Array, carried

MEASURES = {"nrmse": "NRMSE", "mase": "MASE", "coverage_80": "in 80 %"}


def backtested(
    run: SeriesRun, corpus: SeriesCorpus, origins: int, steps: int, samples: int, seed: int
) -> tuple[int, list[dict[str, Any]]]:
    """How many evenly spaced origins of the test split there are, and the errors of forecasts from them, by model.

    NRMSE is as of one step; MASE the mean absolute error over the one of persistence, or the season before, one step
    ahead in the training split. Steps without a value do not count, nor columns of which a measure is not defined.

    Raises UserError where the split is shorter than a forecast.
    """
    split, linear = corpus.split("test"), run.inputs.linear
    values = split.values
    run.say_left_out(split)
    if len(values) <= steps:
        raise UserError(f"--steps {steps}: the test split has {len(values)} steps; give fewer")
    begins = np.unique(np.linspace(0, len(values) - steps, origins).astype(int))
    found: dict[str, list[Array]] = {}
    inside, truth = [], []
    for begin in begins:
        past, to_come = split.part(0, int(begin)), split.part(int(begin), int(begin) + steps)
        before = carried(np.concatenate([past.before[:, : values.shape[1]], past.values]))
        history = past if linear else before
        drawn = run.forecast(steps=steps, samples=samples, seed=seed, history=history, known=to_come.known)
        low, high = np.quantile(drawn, (0.1, 0.9), axis=0, method="weibull")  # .1 and .9 on average, not .108 and .892
        inside.append((low <= to_come.values) & (to_come.values <= high))
        truth.append(to_come.values)
        each = {"persistence": np.repeat(before[-1:], steps, axis=0)}
        if linear is not None:
            if linear.season is not None:
                each[f"seasonal, {linear.season} steps"] = np.resize(before[-linear.season :], (steps, values.shape[1]))
            each["linear part"] = run.linear_path(past, steps, to_come.known)
        for name, one in {"this model": drawn.mean(axis=0), **each}.items():
            found.setdefault(name, []).append(one)
    there = np.concatenate(truth)
    varied = np.nanmin(values, axis=0) < np.nanmax(values, axis=0)
    deviation, train = np.nanstd(values, axis=0)[varied], corpus.split("train").values
    scale = np.array(linear.scale) if linear else np.nanmean(np.abs(np.diff(train, axis=0)), axis=0)
    rows = list[dict[str, Any]]()
    for name, parts in found.items():
        error = np.concatenate(parts) - there
        nrmse = float(np.sqrt(np.nanmean(np.square(error[:, varied] / deviation)))) if varied.any() else None
        row = {"model": name, "nrmse": nrmse, "mase": mase(error, scale)}
        rows.append({key: value for key, value in row.items() if value is not None})
    rows[0]["coverage_80"] = float(np.concatenate(inside)[~np.isnan(there)].mean())
    return len(begins), rows
