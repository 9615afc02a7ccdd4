"""A run on series, and what can be computed with the model in its folder."""

from pathlib import Path

import msgspec
import numpy as np
import torch

from elman.config.inference import require_temperature
from elman.config.recipe import Recipe
from elman.errors import UserError, counted, notice
from elman.evaluation.dynamic import COLUMNS, SEGMENT
from elman.evaluation.result import Result
from elman.jobs import Advance
from elman.kinds.series.corpus import (
    Columns,
    Series,
    SeriesCorpus,
    SeriesTrainingWindows,
    SeriesWindows,
    open_series,
    series_of,
)
from elman.kinds.series.evaluation import Prediction, predict, prediction_result
from elman.kinds.series.linear import NO_ERROR
from elman.kinds.series.record import Missing
from elman.kinds.series.table import Array, carried, read_table
from elman.network.build import build_model
from elman.network.encoders.values import StandardisedValues
from elman.network.model import LanguageModel
from elman.network.output.density import Density, Rescaled
from elman.network.state import select
from elman.tasks.evaluating import DEFAULT, AdaptationSource, EvaluationOptions
from elman.tasks.splits import SplitRun

LENGTH = 500  # steps read at once to evaluate; the figures do not depend on it


class SeriesRun(SplitRun):
    """A trained model of series with its recipe; raises UserError where the folder is not a run on series.

    `inputs` are the columns, and how they were standardised.

    Example (see docs/music-and-series.md)::

        run = elman.load("runs/mackey-glass")
        samples = run.forecast(steps=100, samples=50, seed=1)  # [50, 100, P]
    """

    kind, reads, allowed = "series", "columns", ("streams", "warm_up", "missing")
    inputs: Columns

    def read_inputs(self) -> Columns:
        try:
            return msgspec.convert(self.facts.get("inputs"), Columns)
        except msgspec.ValidationError as error:
            raise UserError(f"{self.path / 'data.json'}: damaged ({error}); restore the file of the run") from None

    def corpus(self, data: str | Path | None = None, missing: Missing | None = None) -> SeriesCorpus:
        """The run's series, or another, with a rule for missing values (None: the run's own).

        Raises UserError where it is unreadable or has another number of columns.
        """
        options = self.options
        if missing not in (None, options.missing):
            data = self.corpus().source if data is None else data  # the training's, read otherwise
            options = msgspec.structs.replace(options, missing=missing)
        names = (*self.inputs.names, *options.covariates)
        corpus = self.opened(data, lambda source: open_series(source, options, names))
        self._require_columns(corpus.names, corpus.source)
        return corpus

    def series(self, path: Path | str, missing: Missing | None = None) -> Series:
        """A whole file as a series, with its covariates and dates; `missing` and errors are as for `corpus`."""
        if not Path(path).is_file():
            raise UserError(f"{path}: no such file; give a CSV, TSV, .npy or .npz file")
        covariates = self.options.covariates
        names = (*self.inputs.names, *covariates)
        found = read_table(Path(path), self.options.all_columns, missing or self.options.missing, names)
        split = series_of(str(path), found, covariates)
        self._require_columns(tuple(one for one in found.names if one not in covariates), str(path))
        return split

    def asked(self, options: EvaluationOptions) -> SeriesCorpus:
        return self.corpus(options.data, options.missing)

    @staticmethod
    def build(recipe: Recipe, inputs: Columns) -> LanguageModel:
        """The network of a recipe for these columns, with random weights; it reads and predicts their own units."""
        linear, share = inputs.linear, None
        read = inputs
        if linear is not None:
            read = Columns(tuple(map(str, range(len(linear.read_mean)))), linear.read_mean, linear.read_deviation)
        model = build_model(recipe.model, len(read), num_labels=len(inputs))
        mean, deviation = (torch.tensor(each, dtype=torch.float64) for each in (read.mean, read.deviation))
        assert isinstance(model.output.choice, Density)
        model.encoder = encoder = StandardisedValues(model.encoder, mean, deviation)
        if linear is not None and linear.share != (1.0,) * len(inputs):
            share = torch.tensor(linear.share)
        model.output.choice = Rescaled(model.output.choice, encoder, share, len(inputs))
        return model

    def uniform_nll(self) -> float:
        """Nats per step of a normal distribution with the mean and variance of the training split."""
        return float(np.sum(np.log(self.inputs.deviation) + 0.5 * (1 + np.log(2 * np.pi))))

    def windows(self, split: Series, *, streams: int = 1, warm_up: int = 0, length: int = LENGTH) -> SeriesWindows:
        """A series to evaluate; where there is a linear part, what precedes it is read before."""
        first, rest = np.array(self.inputs.mean), self.inputs.rest(split)
        return SeriesWindows(split.values, first, rest, streams=streams, length=length, warm_up=warm_up)

    def predict(self, split: Series, advance: Advance = None, **rules: int) -> Prediction:
        linear = self.inputs.linear
        found = predict(self.model, self.windows(split, **rules), advance)
        if linear is None:
            return found
        means = linear.means(split.values, split.known, split.before, np.array(self.inputs.mean))
        means = means[~np.isnan(split.values).any(axis=1)]
        return msgspec.structs.replace(found, mean=found.mean + means)

    def result(
        self, corpus: SeriesCorpus, name: str, options: EvaluationOptions = DEFAULT, advance: Advance = None
    ) -> Result:
        """NLL (nats per step in the units of the data) and NRMSE of a split."""
        split = corpus.split(name)
        streams, warm_up = options.streams or 1, options.warm_up
        found = self.predict(split, advance, streams=streams, warm_up=warm_up)
        streams = self.windows(split, streams=streams).streams
        result = prediction_result(found, split, self.inputs.names, self.inputs.linear)
        self.say_left_out(split)
        return msgspec.structs.replace(result, streams=streams, warm_up=warm_up, method="static")

    def say_left_out(self, split: Series) -> None:
        """Notices of the columns of which NRMSE or MASE is not defined."""
        names, linear = self.inputs.names, self.inputs.linear
        if flat := [name for name, one in zip(names, np.ptp(split.counted, axis=0), strict=True) if not one]:
            notice(f"constant in the {split.name} split, so that NRMSE leaves out: {', '.join(flat)}")
        if linear and (same := [name for name, one in zip(names, linear.scale, strict=True) if one <= NO_ERROR]):
            notice(f"repeating in the training split exactly, so that MASE leaves out: {', '.join(same)}")

    def adaptation_source(self, options: EvaluationOptions = DEFAULT) -> AdaptationSource:
        options.require(self.kind)
        corpus = self.asked(options)
        return self._source(corpus.split(options.split), corpus.source)

    def _source(self, split: Series, data: str) -> AdaptationSource:
        size = len(split.values)

        def statistics_windows() -> SeriesTrainingWindows:
            columns = min(COLUMNS, max(1, size // (SEGMENT + 1)))
            rest = self.inputs.rest(split)
            return SeriesTrainingWindows(split.values, np.array(self.inputs.mean), columns, SEGMENT, rest)

        return AdaptationSource(
            data,
            split.sha256,
            len(split.counted),
            beginning=lambda first: self._source(split.part(0, first), data),
            column=lambda length: (self.model, self.windows(split, length=length)),
            statistics_windows=statistics_windows,
            result=lambda score: score.result(split.name, context="carried"),
            discrete=False,
        )

    @torch.inference_mode()
    def forecast(
        self,
        *,
        steps: int,
        samples: int = 1,
        seed: int = 0,
        history: Array | Series | None = None,
        temperature: float = 1.0,
        known: Array | None = None,
    ) -> Array:
        """Continue a series freely, each step drawn given those drawn before; float64 [samples, steps, P].

        `history`, float64 [n, P], is continued; in the place of a missing value (NaN) the one before is read. None: the
        test split of the run's own data, with UserError where it cannot be read. The temperature multiplies the
        variances; at 0 every step is the mean (of a mixture, of its heaviest part). `known`, [steps, C], are the
        covariates of the steps to come (None: as a season before, or the last). Raises UserError where the temperature
        cannot be computed with.
        """
        require_temperature(temperature)
        found = self.corpus().split("test") if history is None else history
        if not isinstance(found, Series):
            found = Series("", found, np.empty((len(found), 0)), np.empty((0, 0)))
        generator = torch.Generator(self.device).manual_seed(seed)
        path = None
        if self.inputs.linear is None:
            read = torch.from_numpy(carried(np.concatenate([np.array([self.inputs.mean]), found.values])))
        else:
            path = Continuation(self.inputs, found, steps, samples, known)
            read = torch.from_numpy(path.read)
        read = read.unsqueeze(1).to(self.device)
        state = self.model.begin(1)
        for block in read[:-1].split(LENGTH) if len(read) > 1 else ():
            _, state = self.model.trace(block, state)
        state = select(state, torch.zeros(samples, dtype=torch.int64, device=self.device))
        step, drawn = read[-1:].expand(-1, samples, -1), []
        for _ in range(steps):
            step, state = self.model.sample(step, state, temperature, generator)
            drawn.append(step.squeeze(0).double().cpu())
            if path is not None:
                drawn[-1], step = path.add(drawn[-1])
                step = step.to(self.device)
        return torch.stack(drawn, dim=1).numpy() if drawn else np.zeros((samples, 0, len(self.inputs)))

    def linear_path(self, history: Series, steps: int, known: Array | None = None) -> Array:
        """The linear part continued by itself, [steps, P]; arguments are as for `forecast`."""
        path = Continuation(self.inputs, history, steps, 1, known)
        still = torch.zeros(1, len(self.inputs), dtype=torch.float64)
        return np.concatenate([path.add(still)[0].numpy() for _ in range(steps)])

    def covariates(self, path: Path, steps: int) -> Array:
        """The columns known ahead, [steps, C], from a table; raises UserError where it has not as many rows."""
        names = self.options.covariates
        if not names:
            raise UserError(f"--covariates {path}: the run reads none; leave it out")
        found = read_table(path, names)
        if len(found.values) < steps:
            raise UserError(
                f"{path}: {counted(len(found.values), 'row')}, too few for --steps {steps}; give a row per step"
            )
        return found.values[:steps]

    def _require_columns(self, names: tuple[str, ...], source: str) -> None:
        """Demand the columns of the training; of a file without a header, whose names are numbers, as many."""
        known = self.inputs.names
        named = not any(all(map(str.isdigit, each)) for each in (names, known))
        if len(names) != len(known) or (named and names != known):
            raise UserError(
                f"{source}: {len(names)} columns ({', '.join(names)}), but the run was trained on"
                f" {len(known)} ({', '.join(known)}); give these, in the same order"
            )


class Continuation:
    """Continuations of a series with a linear part, side by side; `read` [n, F]: what the network reads before them."""

    def __init__(self, inputs: Columns, split: Series, steps: int, samples: int, known: Array | None) -> None:
        assert inputs.linear is not None
        self.linear, number = inputs.linear, len(inputs)
        whole = np.concatenate([split.values, split.known], axis=1)
        whole = np.concatenate([split.before, whole]) if len(split.before) else whole
        whole = whole[-self.linear.reach - 500 :]
        if not len(whole):
            whole = np.array([[*inputs.mean, *self.linear.mean[number:]]])
        covariates = carried(whole[:, number:])
        if known is None:
            season = self.linear.season or 1
            known = np.resize(covariates[-season:], (steps, covariates.shape[1]))
        self.known = np.concatenate([covariates, known])
        self.at = len(whole)
        values, means = self.linear.predict(whole[:, :number], covariates)
        size = self.linear.reach + 1
        past = np.concatenate([np.repeat(values[:1], max(0, size - len(values)), axis=0), values[-size:]])
        self.past = np.tile(past, (samples, 1, 1))
        self.means = self.linear.ahead(self.past, self._known(samples))
        ahead = np.concatenate([means[1:], self.means[:1]])
        after = (
            self.known[1 : self.at + 1]
            if len(self.known) > self.at
            else np.concatenate([covariates[1:], covariates[-1:]])
        )
        self.read = self.linear.read(values - means, values, ahead, after)

    def _known(self, samples: int) -> Array:
        rows = np.minimum([self.at - 1, self.at], len(self.known) - 1)
        return np.broadcast_to(self.known[rows], (samples, 2, self.known.shape[1]))

    def add(self, left: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """The values [S, P] of the next step with these residuals, and what the network reads then, [1, S, F]."""
        values, samples = self.means + left.numpy(), len(left)
        self.past = np.concatenate([self.past[:, 1:], values[:, None]], axis=1)
        self.at += 1
        known = self._known(samples)
        self.means = self.linear.ahead(self.past, known)
        read = self.linear.read(left.numpy(), values, self.means, known[:, 1])
        return torch.from_numpy(values), torch.from_numpy(read)[None]
