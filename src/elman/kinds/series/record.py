"""Series as data: one or more real values per step."""

from typing import Annotated, Literal, TypeAlias

from msgspec import Meta

from elman.config.data import Data
from elman.config.record import Count, Positive, Rate, Record, Reporting

Missing: TypeAlias = Literal["interpolate", "previous", "drop", "mask"]


class SeriesOptions(Record, frozen=True, kw_only=True):
    """How a table becomes a series.

    `columns`: names or numbers (the first is 0) of the columns that are read, in this order; None: all numeric ones.
    The fractions divide a single file, whose end is the test split, preceded by the validation split. `standardise`:
    subtract the mean of the training split from each column and divide by its standard deviation. `missing`: what
    becomes of cells without a value, before a file is cut: `interpolate` puts them on the line between their neighbours
    (before the first and after the last as these), `previous` takes the value before, `drop` leaves their rows out,
    `mask` reads the value before and counts their rows neither in the loss nor in figures; None: they are refused.
    `covariates`: names of columns that are known ahead, such as holidays, and read but not predicted. `linear`: the
    network models what a linear autoregression leaves (`elman.kinds.series.linear`).
    """

    columns: Annotated[tuple[str | int, ...], Meta(min_length=1)] | None = None
    valid_fraction: Rate = 0.1
    test_fraction: Rate = 0.1
    standardise: bool = True
    missing: Missing | None = None
    covariates: tuple[str, ...] = ()
    linear: bool = False

    def __post_init__(self) -> None:
        if self.valid_fraction + self.test_fraction >= 1:
            raise ValueError(
                f"valid_fraction = {self.valid_fraction:g} and test_fraction = {self.test_fraction:g} leave nothing to"
                " train on; their sum must be below 1"
            )
        for column in self.columns or ():
            if isinstance(column, int) and column < 0:
                raise ValueError(f"columns: {column}; the first column is 0")
        if self.covariates and not self.linear:
            raise ValueError("covariates are read by the linear part; set linear = true")

    @property
    def all_columns(self) -> tuple[str | int, ...] | None:
        """The columns to read from a file, covariates last; None: all."""
        return None if self.columns is None else (*self.columns, *self.covariates)


class SeriesEvaluation(Record, frozen=True, kw_only=True):
    """How the validation split is read while training.

    `streams` columns are read side by side; the parts after the first begin without their past, except for `warm_up`
    steps that each column reads, uncounted, before its part. The figures do not depend on the `length` of windows.
    """

    streams: Positive = 1
    warm_up: Count = 0
    length: Positive = 100


class SeriesData(SeriesOptions, Data, frozen=True, kw_only=True, tag_field="kind", tag="series"):
    """A series of one or more real values per step; `corpus`: known, a file or a folder, unless --data is set."""

    encoders = ("values",)
    command = "forecast"
    proposal = "elman.kinds.series.proposal"
    needs = "a table of numbers (.csv, .tsv, .npy, .npz)"
    task = "elman.kinds.series.task:SeriesTask"
    reporting = Reporting(
        "NLL",
        "nll",
        "step",
        "NLL is the mean negative log-density per time step in the units of the data, in nats; it may be negative."
        " NRMSE is the root mean squared error of the one-step mean over the standard deviation of the split.",
        ("nrmse", "NRMSE"),
        (),
        (
            ("nll", "nats/step", ".4f"),
            ("nrmse", "NRMSE", ".4f"),
            ("mase", "MASE", ".4f"),
            ("coverage_80", "in 80 %", ".3f"),
            ("tokens", "steps", ","),
        ),
    )

    corpus: str | None = None
    digest: str | None = None
    evaluation: SeriesEvaluation = SeriesEvaluation()
