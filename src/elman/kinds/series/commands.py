"""elman forecast: a series of values, drawn from a trained model."""

import csv
import io
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter
from msgspec import Meta

from elman.cli import show
from elman.cli.groups import Common
from elman.cli.options import Natural, OutFile, Positive, Reals, drawings, file_to_write, number, refuse
from elman.errors import UserError, counted
from elman.kinds.series.record import Missing

if TYPE_CHECKING:
    from elman.kinds.series.corpus import Series
    from elman.kinds.series.table import Array

QUANTILES = (0.1, 0.5, 0.9)


def forecast(
    run: Path,
    /,
    *,
    steps: Positive = 100,
    samples: Positive = 100,
    seed: Natural = 0,
    temperature: Annotated[float, number(float, Meta(ge=0))] = 1.0,
    quantiles: Reals = QUANTILES,
    every_sample: bool = False,
    history: Annotated[Path | None, Parameter(name="--from", metavar="FILE")] = None,
    covariates: Annotated[Path | None, Parameter(metavar="FILE")] = None,
    missing: Missing | None = None,
    backtest: Positive | None = None,
    plot: Annotated[Path | None, Parameter(metavar="FILE", validator=file_to_write)] = None,
    out: OutFile = None,
    common: Common = Common(),
) -> None:
    """Continue a series freely: every step is drawn given the steps drawn before it.

    The table has a row per step, with its date where the series has dates: for each column the mean and the quantiles
    over the samples, or with --every-sample the samples themselves. With --backtest the forecast is compared with what
    came, from several origins within the test split, beside simple predictions.

    Args:
        run: a run on series
        steps: steps to draw
        samples: continuations to draw
        seed: seed of the draws
        temperature: multiplies the variances; 0 takes the mean, or the mean of a mixture's heaviest component
        quantiles: over the samples, each between 0 and 1
        every_sample: write the samples instead of means and quantiles
        history: a series to continue, read as the data of the run was (default: the run's own data, to its end)
        covariates: a table with the columns that are known ahead, a row per step to come (default: as they were a
            season before, or at the last step)
        backtest: from this number of origins of the test split, forecast --steps and print the errors by the side of
            persistence, the season before and the linear part; nothing is written
        plot: draw the end of the series and the forecast into an .svg or .png file
        missing: what becomes of missing values of the series: interpolate, previous (the value before), drop (the row)
            or mask (read as the value before; default: as the run's recipe says)
        out: the CSV file to write (default: standard output)
    """
    from elman.files import write_atomic
    from elman.kinds.series.backtest import MEASURES, backtested
    from elman.kinds.series.dates import following, written
    from elman.kinds.series.run import SeriesRun

    if not all(0 <= one <= 1 for one in quantiles):
        raise UserError(f"--quantiles {' '.join(f'{one:g}' for one in quantiles)}: each must be between 0 and 1")
    loaded = common.open_as(SeriesRun, run)
    names = loaded.inputs.names
    plots = [] if plot is None else drawings(plot, *names[1:])
    if backtest is not None:
        others: dict[str, object] = {"--plot": plot, "--out": out, "--from": history, "--covariates": covariates}
        others |= {"--quantiles": tuple(quantiles) != QUANTILES, "--every-sample": every_sample}
        others |= {"--temperature": temperature != 1}
        refuse((name for name, given in others.items() if given), "does not belong to --backtest; leave it out")
        origins, rows = backtested(loaded, loaded.corpus(missing=missing), backtest, steps, samples, seed)
        cells = [[row["model"], *(f"{row[one]:.4f}" if one in row else "" for one in MEASURES)] for row in rows]
        title = f"{run}: {steps} steps from {counted(origins, 'origin')} of the test split"
        show.print_result(
            common.as_json,
            {"run": str(run), "origins": origins, "backtest": rows},
            (title, ["model", *MEASURES.values()], cells),
        )
        return
    known = None if covariates is None else loaded.covariates(covariates, steps)
    read = loaded.corpus(missing=missing).split("test") if history is None else loaded.series(history, missing)
    drawn = loaded.forecast(steps=steps, samples=samples, seed=seed, history=read, temperature=temperature, known=known)
    dates = written(following(read.dates, steps)) if read.dates is not None and len(read.dates) > 1 else None
    table = _table(drawn, names, None if every_sample else quantiles)
    text = _csv(table, dates, min(loaded.inputs.deviation))
    notes = [text.rstrip("\n") if out is None else f"{out}: {steps:,} steps, {samples:,} samples"]
    if out is not None:
        write_atomic(out, text)
    if plots:
        notes += _draw(plots, read, drawn, names, dates)
    facts = {"run": str(run), "samples": samples, "seed": seed, "forecast": table}
    show.print_result(common.as_json, facts | ({} if dates is None else {"dates": dates}), notes=notes)


def _draw(
    files: Sequence[Path], read: "Series", drawn: "Array", names: Sequence[str], dates: list[str] | None
) -> list[str]:
    """Write a drawing of each column into the file at its place; a line for each."""
    import numpy as np

    from elman.drawing.forecast import Forecast
    from elman.drawing.style import write_drawing
    from elman.kinds.series.dates import written

    past, steps, said = read.values[-max(30, 2 * drawn.shape[1]) :], drawn.shape[1], []
    every = None if dates is None or read.dates is None else [*written(read.dates[-len(past) :]), *dates]
    for index, (name, file) in enumerate(zip(names, files, strict=True)):
        low, middle, high = np.quantile(drawn[:, :, index], (0.1, 0.5, 0.9), axis=0).tolist()
        truth = [None if np.isnan(one) else float(one) for one in past[:, index]] + [None] * steps
        first = len(read.values) - len(past)
        shown = Forecast(name, first, truth, [None] * len(truth), low, middle, high, every)
        write_drawing(file, shown.figure(), "forecast", f"Forecast of {name}", f"{steps} steps, 80 %")
        said.append(f"{file}: drawing of {name}")
    return said


def _table(drawn: "Array", names: Sequence[str], quantiles: Sequence[float] | None) -> dict[str, list[float]]:
    """Columns of samples [samples, steps, P] themselves, or of their means and quantiles."""
    import numpy as np

    table: dict[str, list[float]] = {}
    for index, name in enumerate(names):
        if quantiles is None:
            table |= {f"{name} sample {n}": sample[:, index].tolist() for n, sample in enumerate(drawn, start=1)}
            continue
        table[f"{name} mean"] = drawn[:, :, index].mean(axis=0).tolist()
        for one in quantiles:
            table[f"{name} q{one:.15g}"] = np.quantile(drawn[:, :, index], one, axis=0).tolist()
    return table


def _csv(table: dict[str, list[float]], dates: list[str] | None, deviation: float) -> str:
    """A row per step, numbered from 1 and dated, under a header; digits to a ten-thousandth of the least deviation."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    digits = min(12, max(0, 4 - math.floor(math.log10(deviation))))
    writer.writerow(["step", *([] if dates is None else ["date"]), *table])
    for step, row in enumerate(zip(*table.values(), strict=True), start=1):
        cells = [f"{one:.{digits}f}" for one in row]
        writer.writerow([step, *([] if dates is None else [dates[step - 1]]), *cells])
    return file.getvalue()
