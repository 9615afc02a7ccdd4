"""A run on series, and what can be computed with the model in its folder."""

from pathlib import Path

import msgspec
import numpy as np
import torch

from elman.config.inference import require_temperature
from elman.config.recipe import Recipe
from elman.errors import UserError
from elman.evaluation.dynamic import COLUMNS, SEGMENT
from elman.evaluation.result import Result
from elman.jobs import Advance
from elman.kinds.series.corpus import Columns, Series, SeriesCorpus, SeriesTrainingWindows, SeriesWindows, open_series
from elman.kinds.series.evaluation import predict, prediction_result
from elman.kinds.series.record import Missing
from elman.kinds.series.table import Array, carried, read_table
from elman.network.build import build_model
from elman.network.encoders.values import StandardisedValues
from elman.network.model import LanguageModel
from elman.network.output.density import Density, Rescaled
from elman.network.state import select
from elman.tasks.evaluating import DEFAULT, AdaptationSource, EvaluationOptions
from elman.tasks.splits import SplitRun

HOTTEST = 1e6
"""The greatest temperature: with one that is much greater, values are drawn that overflow."""

LENGTH = 500
"""Steps read at once to evaluate; the figures do not depend on it."""


class SeriesRun(SplitRun):
    """A trained model of series with its recipe; raises UserError where the folder is not a run on series.

    `inputs` are the columns, and how they were standardised.

    Example (see docs/series.md)::

        run = elman.load("runs/mackey-glass")
        samples = run.forecast(steps=100, samples=50, seed=1)  # [50, 100, P]
    """

    kind, reads, allowed = "series", "columns", ("streams", "warm_up", "missing")
    inputs: Columns

    def read_inputs(self) -> Columns:
        """The columns, as data.json has them."""
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
        corpus = self.opened(data, lambda source: open_series(source, options, self.inputs.names))
        self._require_columns(corpus.names, corpus.source)
        return corpus

    def table(self, path: Path | str, missing: Missing | None = None) -> Array:
        """A whole file as a series, float64 [n, P]; `missing` and errors are as for `corpus`."""
        if not Path(path).is_file():
            raise UserError(f"{path}: no such file; give a CSV, TSV, .npy or .npz file")
        names, values = read_table(Path(path), self.options.columns, missing or self.options.missing, self.inputs.names)
        self._require_columns(names, str(path))
        return values

    def asked(self, options: EvaluationOptions) -> SeriesCorpus:
        return self.corpus(options.data, options.missing)

    @staticmethod
    def build(recipe: Recipe, inputs: Columns) -> LanguageModel:
        """The network of a recipe for these columns, with random weights; it reads and predicts their own units."""
        model = build_model(recipe.model, len(inputs))
        mean, deviation = (torch.tensor(each, dtype=torch.float64) for each in (inputs.mean, inputs.deviation))
        assert isinstance(model.output.choice, Density)
        model.encoder = encoder = StandardisedValues(model.encoder, mean, deviation)
        model.output.choice = Rescaled(model.output.choice, encoder)
        return model

    def uniform_nll(self) -> float:
        """Nats per step of a normal distribution with the mean and variance of the training split."""
        return float(np.sum(np.log(self.inputs.deviation) + 0.5 * (1 + np.log(2 * np.pi))))

    def windows(self, values: Array, *, streams: int = 1, warm_up: int = 0, length: int = LENGTH) -> SeriesWindows:
        """A series [n, P] to evaluate."""
        first = np.array(self.inputs.mean)
        return SeriesWindows(values, first, streams=streams, length=length, warm_up=warm_up)

    def result(
        self,
        corpus: SeriesCorpus,  # noqa: ARG002 - a split is evaluated by itself
        split: Series,
        options: EvaluationOptions = DEFAULT,
        advance: Advance = None,
    ) -> Result:
        """NLL (nats per step in the units of the data) and NRMSE of a split."""
        streams, warm_up = options.streams or 1, options.warm_up
        windows = self.windows(split.values, streams=streams, warm_up=warm_up)
        result = prediction_result(predict(self.model, windows, advance), split, self.inputs.names)
        return msgspec.structs.replace(result, streams=windows.streams, warm_up=warm_up, method="static")

    def adaptation_source(self, options: EvaluationOptions = DEFAULT) -> AdaptationSource:
        """A split, from its beginning to its end."""
        options.require(self.kind)
        corpus = self.asked(options)
        return self._source(corpus.split(options.split), corpus.source)

    def _source(self, split: Series, data: str) -> AdaptationSource:
        values, size = split.values, len(split.values)

        def statistics_windows() -> SeriesTrainingWindows:
            columns = min(COLUMNS, max(1, size // (SEGMENT + 1)))
            return SeriesTrainingWindows(values, np.array(self.inputs.mean), columns, SEGMENT)

        return AdaptationSource(
            data,
            split.sha256,
            len(split.counted),
            beginning=lambda first: self._source(Series(split.name, values[:first]), data),
            column=lambda length: (self.model, self.windows(values, length=length)),
            statistics_windows=statistics_windows,
            result=lambda score: score.result(split.name, context="carried"),
            discrete=False,
        )

    @torch.inference_mode()
    def forecast(
        self, *, steps: int, samples: int = 1, seed: int = 0, history: Array | None = None, temperature: float = 1.0
    ) -> Array:
        """Continue a series freely, each step drawn given those drawn before; float64 [samples, steps, P].

        `history`, float64 [n, P], is continued; in the place of a missing value (NaN) the one before is read. None: the
        test split of the run's own data, with UserError where it cannot be read. The temperature multiplies the
        variances; at 0 every step is the mean (of a mixture, of its heaviest part). Raises UserError where it is
        negative, or beyond what can be computed with.
        """
        if not 0 <= temperature <= HOTTEST:
            raise UserError(f"--temperature is {temperature:g}; it must be 0 or more, and {HOTTEST:g} at most")
        require_temperature(temperature)
        values = self.corpus().split("test").values if history is None else history
        generator = torch.Generator(self.device).manual_seed(seed)
        read = torch.from_numpy(carried(np.concatenate([np.array([self.inputs.mean]), values])))
        read = read.unsqueeze(1).to(self.device)
        state = self.model.begin(1)
        for block in read[:-1].split(LENGTH) if len(values) else ():
            _, state = self.model.trace(block, state)
        state = select(state, torch.zeros(samples, dtype=torch.int64, device=self.device))
        step, drawn = read[-1:].expand(-1, samples, -1), []
        for _ in range(steps):
            step, state = self.model.sample(step, state, temperature, generator)
            drawn.append(step.squeeze(0).double().cpu())
        return torch.stack(drawn, dim=1).numpy() if drawn else np.zeros((samples, 0, len(self.inputs)))

    def _require_columns(self, names: tuple[str, ...], source: str) -> None:
        """Demand the columns of the training; of a file without a header, whose names are numbers, as many."""
        known = self.inputs.names
        named = not any(all(map(str.isdigit, each)) for each in (names, known))
        if len(names) != len(known) or (named and names != known):
            raise UserError(
                f"{source}: {len(names)} columns ({', '.join(names)}), but the run was trained on"
                f" {len(known)} ({', '.join(known)}); give these, in the same order"
            )
