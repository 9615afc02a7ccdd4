"""The task of series: real values, one row per step."""

import math
from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np
import torch

from elman.config.recipe import Recipe
from elman.data.catalog.known import info
from elman.data.windows import WHOLE, ColumnsOf, Part
from elman.drawing.forecast import Forecast
from elman.errors import UserError
from elman.evaluation.perplexity import Score, evaluate
from elman.evaluation.result import Result
from elman.jobs import Advance
from elman.kinds.series.corpus import Columns, SeriesTrainingWindows, SeriesWindows, open_series
from elman.kinds.series.dates import written
from elman.kinds.series.evaluation import (
    Baseline,
    autoregression,
    baseline_prediction,
    mean_of,
    persistence,
    prediction_result,
    seasonal,
    share_of,
)
from elman.kinds.series.run import SeriesRun
from elman.network.model import LanguageModel
from elman.tasks.run import data_facts
from elman.tasks.samples import Sample
from elman.tasks.splits import SplitTask
from elman.tasks.task import Size, copy_weights, write_json

ORDERS = (1, 2, 4, 8, 16, 32)  # orders of the linear autoregression; the one with the lowest validation NRMSE is taken
CLOSE = 1.005  # times the error of a baseline, the error from which a model is said not to beat it
SHOWN_STEPS, FORECAST_STEPS, FORECAST_SAMPLES = 200, 100, 50
"""Steps of the test split that the report shows, how many of them are forecast freely, and from how many samples."""


class SeriesTask(SplitTask):
    kind, run, opening = "series", SeriesRun, open_series
    inputs: Columns

    def require(self) -> None:
        if self.recipe.training.memory:
            raise UserError("training.memory: the stages of a growing memory are words of a text; leave the key out")

    @classmethod
    def nominal_size(cls, recipe: Recipe) -> Size:
        return Size(info(cls.own_corpus(recipe)).published["train"], 1)

    @property
    def first(self) -> np.ndarray:
        """What is read before the first step: zero in standardised units, [P]."""
        return np.array(self.inputs.mean)

    def windows(self, max_extra: int | None) -> SeriesTrainingWindows:
        split, training, window = self.corpus.split("train"), self.recipe.training, self.recipe.training.window
        values, linear = split.values, self.inputs.linear
        if (needed := training.batch_size * (window.length + 1) - 1) > len(values):
            raise UserError(
                f"{self.source}: the training split has {len(values):,} rows, too few for {training.batch_size} columns"
                f" of one window of {window.length} steps ({needed:,} rows); use more data, or lower"
                " training.batch_size or training.window.length"
            )
        rules = msgspec.structs.asdict(window) | {"max_extra": max_extra, "seed": self.recipe.seed}
        rest = self.inputs.rest(split, min(linear.reach, len(values) // 4) if linear else 0)
        return SeriesTrainingWindows(values, self.first, training.batch_size, rest=rest, **rules)

    def validate(self, model: LanguageModel, part: Part = WHOLE) -> Score:
        """Nats over the steps of the validation split, in columns and in the units of the data."""
        split, rules = self.corpus.split("valid"), msgspec.structs.asdict(self.data.evaluation)
        windows = SeriesWindows(split.values, self.first, self.inputs.rest(split), **rules)
        return evaluate(model, ColumnsOf(windows, part))

    def begin(self, model: LanguageModel) -> None:
        """Where there is a linear part, output weights of zero: the network adds nothing to it yet."""
        super().begin(model)
        if self.inputs.linear is not None:
            for parameter in model.output.choice.parameters():
                if parameter.ndim > 1:
                    torch.nn.init.zeros_(parameter)

    def finish(self, out: Path, device: torch.device, prompts: Sequence[str], advance: Advance) -> list[Result]:
        """As of every kind; where there is a linear part, the share of the network's mean is found before."""
        if self.inputs.linear is not None:
            run = SeriesRun(out, device)
            run.inputs = self.inputs  # with the whole mean
            split = self.corpus.split("valid")
            means = self.inputs.linear.means(split.values, split.known, split.before, self.first)
            means = means[~np.isnan(split.values).any(axis=1)]
            shares = share_of(run.predict(split).mean - means, split.counted - means)
            linear = msgspec.structs.replace(self.inputs.linear, share=tuple(shares.tolist()))
            inputs = msgspec.structs.replace(self.inputs, linear=linear)
            write_json(out / "data.json", data_facts(out) | {"inputs": msgspec.to_builtins(inputs)})
        return super().finish(out, device, prompts, advance)

    def start_from(self, model: LanguageModel, folder: Path) -> None:
        """Weights of a run on as many columns with the same network; the columns keep their own standardisation."""
        kept = {name: buffer.clone() for name, buffer in model.encoder.named_buffers()}
        copy_weights(model, SeriesRun(folder), "the same model section and number of columns")
        model.encoder.load_state_dict(kept, strict=False)

    def baselines(self, order: int | None, splits: Sequence[str]) -> list[Result]:  # noqa: ARG002 - chosen by validation
        """The mean, persistence and linear autoregression, each with the variance of its training errors.

        A split is taken to follow those before it: its first steps are predicted from the end of the previous one.
        """
        train = self.corpus.split("train").values
        measured = self.corpus.split("train").counted

        def figures(baseline: Baseline, order: int, name: str) -> Result:
            split = self.corpus.split(name)
            before = {"train": train[:order], "valid": train}.get(name)
            if before is None:
                before = np.concatenate([train, self.corpus.split("valid").values])
            prediction = baseline_prediction(baseline, train, order, split.values, before)
            return prediction_result(prediction, split, self.inputs.names, self.inputs.linear)

        def error(order: int) -> float:
            return figures(autoregression(train, order), order, "valid").nrmse or 0.0

        best = min((order for order in ORDERS if len(train) > 4 * order * len(self.inputs)), key=error, default=1)
        models: dict[str, tuple[Baseline, int]] = {
            "mean": (mean_of(measured), 1),
            "persistence": (persistence, 1),
            f"linear autoregression, order {best}": (autoregression(train, best), best),
        }
        if (linear := self.inputs.linear) is not None and linear.season is not None:
            models[f"seasonal, {linear.season} steps"] = seasonal(linear.season), linear.season
        return [
            msgspec.structs.replace(figures(model, order, split), name=name)
            for name, (model, order) in models.items()
            for split in splits
        ]

    def summary(self) -> list[str]:
        cut = "cut in order of time" if self.corpus.cut else "divided as given"
        lines = [f"{name:5} {len(split.values):>11,} steps ({cut})" for name, split in self.corpus.splits.items()]
        units = "standardised by the training split" if self.data.standardise else "not standardised"
        lines.append(f"columns {', '.join(self.inputs.names)} ({units})")
        if (linear := self.inputs.linear) is not None:
            lines.append(f"linear part: {linear}")
            figures = (f"{one.name} {one.nrmse:.3f}" for one in self.baselines(0, ["valid"]) if one.nrmse is not None)
            lines.append(f"NRMSE to beat (valid): {'; '.join(figures)}")
        return lines

    def remark(self, results: Sequence[Result], baselines: Sequence[Result]) -> str | None:
        """What is said where a baseline has a lower error than the model on the test split, and what to try."""
        (own,) = (one.nrmse for one in results if one.split == "test")
        found = [(one.nrmse, one.name) for one in baselines if one.split == "test" and one.nrmse is not None]
        best, name = min(found, default=(math.inf, ""))
        if own is None or own <= CLOSE * best:
            return None
        linear = "" if self.data.linear else ", --set data.linear=true"
        return (
            f"the model does not beat {name}: NRMSE {own:.4f}, {best:.4f} without it; try more --minutes{linear},"
            " columns that are known ahead (--set 'data.covariates=[\"NAME\"]'), or more data"
        )

    def samples(self, run: SeriesRun, count: int) -> list[Sample]:  # noqa: ARG002 - one for each column
        """A row of samples.json per column, with the forecast that the report draws."""
        split = self.corpus.split("test")
        values = split.values
        shown, steps = min(SHOWN_STEPS, len(values)), min(FORECAST_STEPS, len(values) // 2)
        one_step = np.full_like(values, np.nan)
        one_step[~np.isnan(values).any(axis=1)] = run.predict(split).mean
        free = len(values) - steps
        drawn = run.forecast(
            steps=steps, samples=FORECAST_SAMPLES, history=split.part(0, free), known=split.known[free:]
        )
        dates = None if split.dates is None else written(split.dates[-shown:])
        quantiles = np.quantile(drawn, (0.1, 0.5, 0.9), axis=0)
        rows = []
        for index, name in enumerate(self.inputs.names):
            low, middle, high = (one[:, index].tolist() for one in quantiles)
            truth, means = (
                [None if np.isnan(one) else float(one) for one in part[-shown:, index]] for part in (values, one_step)
            )
            forecast = Forecast(name, len(values) - shown, truth, means, low, middle, high, dates)
            text = f"{name}: the end of the test split; {steps} steps forecast from {FORECAST_SAMPLES} samples"
            rows.append(Sample(text=text, figure=forecast))
        return rows
