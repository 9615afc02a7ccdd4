"""elman forecast: a series of values, drawn from a trained model."""

import csv
import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter
from msgspec import Meta

from elman.cli import show
from elman.cli.groups import Common
from elman.cli.options import Natural, OutFile, Positive, Reals, number
from elman.errors import UserError
from elman.kinds.series.record import Missing

if TYPE_CHECKING:
    from elman.kinds.series.table import Array


def forecast(
    run: Path,
    /,
    *,
    steps: Positive = 100,
    samples: Positive = 100,
    seed: Natural = 0,
    temperature: Annotated[float, number(float, Meta(ge=0))] = 1.0,
    quantiles: Reals = (0.1, 0.5, 0.9),
    every_sample: bool = False,
    history: Annotated[Path | None, Parameter(name="--from", metavar="FILE")] = None,
    missing: Missing | None = None,
    out: OutFile = None,
    common: Common = Common(),
) -> None:
    """Continue a series freely: every step is drawn given the steps drawn before it.

    The table has a row per step: for each column the mean and the quantiles over the samples, or with --every-sample
    the samples themselves.

    Args:
        run: a run on series
        steps: steps to draw
        samples: continuations to draw
        seed: seed of the draws
        temperature: multiplies the variances; 0 takes the mean, of a mixture that of its heaviest component
        quantiles: over the samples, each between 0 and 1
        every_sample: write the samples instead of means and quantiles
        history: a series to continue, read as the data of the run was (default: the run's own data, to its end)
        missing: what becomes of missing values of the series: interpolate, previous (the value before), drop (the row)
            or mask (read as the value before; default: as the run's recipe says)
        out: the CSV file to write (default: standard output)
    """
    from elman.files import write_atomic
    from elman.kinds.series.run import SeriesRun

    if not all(0 <= one <= 1 for one in quantiles):
        raise UserError(f"--quantiles {' '.join(f'{one:g}' for one in quantiles)}: each must be between 0 and 1")
    loaded = common.open_as(SeriesRun, run)
    read = None
    if history is not None:
        read = loaded.table(history, missing)
    elif missing is not None:
        read = loaded.corpus(missing=missing).split("test").values
    drawn = loaded.forecast(steps=steps, samples=samples, seed=seed, history=read, temperature=temperature)
    table = _samples(drawn, loaded.inputs.names) if every_sample else _summary(drawn, loaded.inputs.names, quantiles)
    if out is not None:
        write_atomic(out, _csv(table))
    facts = {"run": str(run), "samples": samples, "seed": seed, "forecast": table}
    note = _csv(table).rstrip("\n") if out is None else f"{out}: {steps:,} steps, {samples:,} samples"
    show.print_result(common.as_json, facts, notes=[note])


def _summary(drawn: "Array", names: Sequence[str], quantiles: Sequence[float]) -> dict[str, list[float]]:
    """Columns of means and quantiles over samples [samples, steps, P]."""
    import numpy as np

    table = {}
    for index, name in enumerate(names):
        table[f"{name} mean"] = drawn[:, :, index].mean(axis=0).tolist()
        for one in quantiles:
            table[f"{name} q{one:g}"] = np.quantile(drawn[:, :, index], one, axis=0).tolist()
    return table


def _samples(drawn: "Array", names: Sequence[str]) -> dict[str, list[float]]:
    """Columns of samples [samples, steps, P]."""
    return {
        f"{name} sample {number}": sample[:, index].tolist()
        for index, name in enumerate(names)
        for number, sample in enumerate(drawn, start=1)
    }


def _csv(table: dict[str, list[float]]) -> str:
    """A row per step, numbered from 1, under a header."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(["step", *table])
    writer.writerows([step, *row] for step, row in enumerate(zip(*table.values(), strict=True), start=1))
    return file.getvalue()
