"""The task of series: real values, one row per step."""

from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np

from elman.config.recipe import Recipe
from elman.data.catalog.prepare import info
from elman.data.parts import WHOLE, ColumnsOf, Part
from elman.drawing.forecast import Forecast
from elman.errors import UserError
from elman.evaluation.perplexity import Score, evaluate
from elman.evaluation.result import Result
from elman.kinds.series.corpus import Columns, SeriesTrainingWindows, SeriesWindows, open_series
from elman.kinds.series.evaluation import (
    Baseline,
    autoregression,
    baseline_prediction,
    mean_of,
    persistence,
    predict,
    prediction_result,
)
from elman.kinds.series.run import SeriesRun
from elman.network.model import LanguageModel
from elman.tasks.samples import Sample
from elman.tasks.splits import SplitTask
from elman.tasks.task import Size, copy_weights

ORDERS = (1, 2, 4, 8, 16, 32)
"""Orders of the linear autoregression; the one with the lowest validation NRMSE is taken."""

SHOWN_STEPS, FORECAST_STEPS, FORECAST_SAMPLES = 200, 100, 50
"""Steps of the test split that the report shows, how many of them are forecast freely, and from how many samples."""


class SeriesTask(SplitTask):
    """A series and its columns."""

    kind, run, opening = "series", SeriesRun, open_series
    used_by = ("forecast",)
    inputs: Columns

    def require(self) -> None:
        """Raise UserError where training reads a growing memory."""
        if self.recipe.training.memory:
            raise UserError("training.memory: the stages of a growing memory are words of a text; leave the key out")

    @classmethod
    def nominal_size(cls, recipe: Recipe) -> Size:
        """Training steps of the recipe's own corpus, and one number per step."""
        assert recipe.data.corpus is not None, "a recipe whose cost is asked for names its corpus"
        return Size(info(recipe.data.corpus).published["train"], 1)

    @property
    def first(self) -> np.ndarray:
        """What is read before the first step: zero in standardised units, [P]."""
        return np.array(self.inputs.mean)

    def windows(self, max_extra: int | None) -> SeriesTrainingWindows:
        """The training split in columns."""
        values, training, window = self.corpus.split("train").values, self.recipe.training, self.recipe.training.window
        if (needed := training.batch_size * (window.length + 1) - 1) > len(values):
            raise UserError(
                f"{self.source}: the training split has {len(values):,} rows, too few for {training.batch_size} columns"
                f" of one window of {window.length} steps ({needed:,} rows); use more data, or lower"
                " training.batch_size or training.window.length"
            )
        rules = msgspec.structs.asdict(window) | {"max_extra": max_extra, "seed": self.recipe.seed}
        return SeriesTrainingWindows(values, self.first, training.batch_size, **rules)

    def validate(self, model: LanguageModel, part: Part = WHOLE) -> Score:
        """Nats over the steps of the validation split, in columns and in the units of the data."""
        values, rules = self.corpus.split("valid").values, self.data.evaluation
        return evaluate(model, ColumnsOf(SeriesWindows(values, self.first, **msgspec.structs.asdict(rules)), part))

    def start_from(self, model: LanguageModel, folder: Path) -> None:
        """Weights of a run on as many columns with the same network; the columns keep their own standardisation."""
        kept = {name: buffer.clone() for name, buffer in model.encoder.named_buffers()}
        copy_weights(model, SeriesRun(folder), "the same model section and number of columns")
        model.encoder.load_state_dict(kept, strict=False)

    def baselines(self, order: int, splits: Sequence[str]) -> list[Result]:  # noqa: ARG002 - chosen by validation
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
            return prediction_result(prediction, split, self.inputs.names)

        def error(order: int) -> float:
            return figures(autoregression(train, order), order, "valid").nrmse or 0.0

        best = min((order for order in ORDERS if len(train) > 4 * order * len(self.inputs)), key=error, default=1)
        models: dict[str, tuple[Baseline, int]] = {
            "mean": (mean_of(measured), 1),
            "persistence": (persistence, 1),
            f"linear autoregression, order {best}": (autoregression(train, best), best),
        }
        return [
            msgspec.structs.replace(figures(model, order, split), name=name)
            for name, (model, order) in models.items()
            for split in splits
        ]

    def summary(self) -> list[str]:
        """Steps of each split, how they were cut, and the columns."""
        cut = "cut in order of time" if self.corpus.cut else "a file each"
        lines = [f"{name:5} {len(split.values):>11,} steps ({cut})" for name, split in self.corpus.splits.items()]
        units = "standardised by the training split" if self.data.standardise else "not standardised"
        return [*lines, f"columns {', '.join(self.inputs.names)} ({units})"]

    def samples(self, run: SeriesRun, count: int) -> list[Sample]:  # noqa: ARG002 - one for each column
        """A row of samples.json per column, with the forecast that the report draws."""
        values = self.corpus.split("test").values
        shown, steps = min(SHOWN_STEPS, len(values)), min(FORECAST_STEPS, len(values) // 2)
        one_step = np.full_like(values, np.nan)
        one_step[~np.isnan(values).any(axis=1)] = predict(run.model, run.windows(values)).mean
        drawn = run.forecast(steps=steps, samples=FORECAST_SAMPLES, history=values[: len(values) - steps])
        quantiles = np.quantile(drawn, (0.1, 0.5, 0.9), axis=0)
        rows = []
        for index, name in enumerate(self.inputs.names):
            low, middle, high = (one[:, index].tolist() for one in quantiles)
            truth, means = (
                [None if np.isnan(one) else float(one) for one in part[-shown:, index]] for part in (values, one_step)
            )
            forecast = Forecast(name, len(values) - shown, truth, means, low, middle, high)
            text = f"{name}: the end of the test split; {steps} steps forecast from {FORECAST_SAMPLES} samples"
            rows.append(Sample(text=text, figure=forecast))
        return rows
