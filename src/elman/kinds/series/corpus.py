"""A series of real values with three splits, and the columns that a model reads."""

import dataclasses
import functools
import hashlib
import itertools
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import torch
from torch import Tensor

from elman.data.batches import Batch
from elman.data.catalog.known import is_known, locate
from elman.data.text.sources import ALIASES, SPLITS, Corpus
from elman.data.windows import EvaluationWindows, Span, TrainingWindows
from elman.errors import UserError, counted, notice
from elman.files import canonical_json, sha256_lines
from elman.kinds.series.dates import Dates, usual_seasons
from elman.kinds.series.fitting import fit
from elman.kinds.series.linear import Linear, Residuals
from elman.kinds.series.record import SeriesOptions
from elman.kinds.series.table import SUFFIXES, Array, Table, carried, read_table


class Columns(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a model of series reads: columns, with the mean and standard deviation of each in the training split.

    Where the series is not standardised they are 0 and 1. `linear`: the linear part, whose rest the model predicts.
    """

    names: tuple[str, ...]
    mean: tuple[float, ...]
    deviation: tuple[float, ...]
    linear: Linear | None = None

    def __post_init__(self) -> None:
        if not 0 < len(self.names) == len(self.mean) == len(self.deviation):
            raise ValueError("names, mean and deviation have different lengths")
        if not all(map(math.isfinite, (*self.mean, *self.deviation))) or min(self.deviation) <= 0:
            raise ValueError("a mean or deviation that no series has")

    def __len__(self) -> int:
        return len(self.names)

    def rest(self, split: "Series", skipped: int = 0) -> Residuals | None:
        """What a network reads and predicts of a split where there is a linear part; `skipped` steps do not count."""
        if self.linear is None:
            return None
        return self.linear.residuals(split.values, split.known, split.before, np.array(self.mean), skipped)

    @property
    def digest(self) -> str:
        plain = canonical_json(msgspec.structs.replace(self, linear=None))
        one = self.linear
        return sha256_lines(plain, *([canonical_json([one.difference, one.lags, one.groups])] if one else []))


@dataclasses.dataclass(frozen=True)
class Series:
    """One split: float64 [n, P] in the units of the data, NaN where a value is masked.

    `known`: covariates [n, C]; `before`: all columns of the splits before, [m, P + C]; `dates` [n], if it has some.
    """

    name: str
    values: Array
    known: Array
    before: Array
    dates: Dates | None = None

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.values.astype("<f8").tobytes()).hexdigest()

    def part(self, begin: int, end: int | None) -> "Series":
        both = np.concatenate([self.values, self.known], axis=1)[:begin]
        before = np.concatenate([self.before, both]) if len(self.before) else both
        dates = None if self.dates is None else self.dates[begin:end]
        return Series(self.name, self.values[begin:end], self.known[begin:end], before, dates)

    @property
    def counted(self) -> Array:
        """The steps that count, all of whose values are there."""
        gaps = np.isnan(self.values).any(axis=1)
        return self.values[~gaps] if gaps.any() else self.values


@dataclasses.dataclass(frozen=True, eq=False)
class SeriesCorpus(Corpus[SeriesOptions, Series]):
    """A series as a model reads it; `cut`: its splits were cut from one file in order of time."""

    names: tuple[str, ...]
    cut: bool

    @functools.cached_property
    def symbols(self) -> Columns:
        """The columns with their statistics in the training split, and the linear part that is fitted to it.

        Raises UserError where a column that is to be standardised is constant, or has no variance in float64.
        """
        train = self.split("train")
        values, linear = train.counted, None
        if not self.options.standardise:
            return Columns(self.names, (0.0,) * len(self.names), (1.0,) * len(self.names))
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            ranges, mean, deviation = np.ptp(values, axis=0), values.mean(axis=0), values.std(axis=0)
        for name, one, value, spread in zip(self.names, ranges, values[0], deviation, strict=True):
            if one == 0:
                raise UserError(
                    f"{self.source}, column {name}: constant ({value:g}) in the training split; leave it out of"
                    " data.columns, or set data.standardise = false"
                )
            if not 0 < spread < np.inf:
                raise UserError(
                    f"{self.source}, column {name}: values such as {value:g}, of which no variance can be computed;"
                    " give it in other units"
                )
        if self.options.linear:
            linear = fit(train.values, train.known, () if train.dates is None else usual_seasons(train.dates))
        return Columns(self.names, tuple(mean.tolist()), tuple(deviation.tolist()), linear)

    @property
    def digest(self) -> str:
        splits = (f"{name} {split.sha256}" for name, split in self.splits.items())
        options = msgspec.structs.asdict(self.options)
        del options["missing"]
        for later in ("covariates", "linear"):  # recorded digests are without them
            options = {key: value for key, value in options.items() if key != later or value}
        return sha256_lines(canonical_json(options), *self.names, *splits)

    def facts(self) -> dict[str, Any]:
        """For `describe`; the tokens of a split are its steps."""
        return {
            "inputs": msgspec.to_builtins(self.symbols),
            "splits": {
                name: {"tokens": len(split.counted), "sha256": split.sha256} for name, split in self.splits.items()
            },
        }


def open_series(source: str | Path, options: SeriesOptions, known: Sequence[str] | None = None) -> SeriesCorpus:
    """Read a series, for a model of columns that are `known`; raises UserError where the source cannot be used.

    It is the name of a known series (`elman data list`); a table (`elman.kinds.series.table`), which is cut in order of
    time; or a folder with train, valid and test of them, such as train.csv, of which valid or test may be held out of
    train.
    """
    path, columns = locate(source, "series"), options.all_columns
    cut = False
    if path.is_dir():
        tables: dict[str, Table] = {}
        lacking = [split for split in SPLITS if not _files(path, split)]
        held_out = lacking[0] if len(lacking) == 1 and _shares(options)[lacking[0]] and lacking != ["train"] else None
        for split in SPLITS:
            if split == held_out:
                continue
            tables[split] = read_table(_find(path, split), columns, options.missing, known)
            known = known or tables[split].names
        if held_out is not None:
            tables = _with_third(tables, held_out, options, path)
        for split, table in tables.items():
            if table.names != tables["train"].names:
                raise UserError(
                    f"{path}: the columns of {split} are {', '.join(table.names)}, and train has"
                    f" {', '.join(tables['train'].names)}; make them agree, or name them in data.columns"
                )
        names, parts = tables["train"].names, tables
    elif path.is_file():
        table = read_table(path, columns, options.missing, known)
        names, cut = table.names, table.splits is None
        parts = _cut(table, options, path) if cut else _by_column(table, options, path)
    else:
        raise UserError(
            f"{source}: no such file or folder, and no known corpus has this name; give a CSV, TSV, .npy or .npz file,"
            " a folder with train, valid and test of them, or a name that `elman data list` shows"
        )
    splits, before = dict[str, Series](), np.empty((0, len(names)))
    if lacking := [one for one in options.covariates if one not in names]:
        raise UserError(f"{path}: data.covariates: no column {lacking[0]!r}; the columns are {', '.join(names)}")
    for split, table in parts.items():
        splits[split] = one = series_of(split, table, options.covariates, before)
        before = np.concatenate([before, np.concatenate([one.values, one.known], axis=1)])
    names = tuple(one for one in names if one not in options.covariates)
    if not names:
        raise UserError(f"{path}: data.covariates: no column is left to be predicted")
    if empty := next((name for name, split in splits.items() if len(split.values) and not len(split.counted)), None):
        raise UserError(
            f"{source}: every row of the {empty} split has a missing value; use --missing interpolate, previous or drop"
        )
    name = str(source) if isinstance(source, str) and is_known(source) else path.resolve().stem
    return SeriesCorpus(name, str(source), options, splits, names, cut)


def series_of(name: str, table: Table, covariates: Sequence[str] = (), before: Array | None = None) -> Series:
    """A table as a series, with the `covariates`, which are known ahead, apart from the values."""
    chosen = [index for index, one in enumerate(table.names) if one not in covariates]
    others = [index for one in covariates for index, other in enumerate(table.names) if one == other]
    values, known = (np.ascontiguousarray(table.values[:, one]) for one in (chosen, others))
    before = np.empty((0, len(table.names))) if before is None else before
    return Series(name, values, known, before, table.dates)


def _files(folder: Path, split: str) -> list[Path]:
    """The files of a split, by the first of its names that has one."""
    named = ([folder / f"{name}{suffix}" for suffix in SUFFIXES] for name in ALIASES[split])
    return next(filter(None, ([path for path in paths if path.is_file()] for paths in named)), [])


def _find(folder: Path, split: str) -> Path:
    found = _files(folder, split)
    if len(found) != 1:
        there = f"{len(found)} files ({', '.join(path.name for path in found)})" if found else "no file"
        raise UserError(f"{folder}: {there} for the {split} split; give one of {split}{f', {split}'.join(SUFFIXES)}")
    return found[0]


def _shares(options: SeriesOptions) -> dict[str, float]:
    return {"train": 1.0, "valid": options.valid_fraction, "test": options.test_fraction}


def _with_third(tables: dict[str, Table], lacking: str, options: SeriesOptions, path: Path) -> dict[str, Table]:
    """The splits of a folder, one of which is the last share of the training one, which a notice reports."""
    train = tables["train"]
    edge = min(len(train.values) - 2, round(len(train.values) * (1 - _shares(options)[lacking])))
    if edge < 2:
        raise UserError(f"{path}: no {lacking} split, and too few training rows to hold one out; give more, or a split")
    notice(f"{path}: no {lacking} split: the last {len(train.values) - edge:,} training rows are held out for it")
    found = tables | {"train": train.part(0, edge), lacking: train.part(edge, len(train.values))}
    return {split: found[split] for split in SPLITS if split in found}


def _by_column(table: Table, options: SeriesOptions, path: Path) -> dict[str, Table]:
    """The splits that a column of a table names, one of which may be lacking; raises UserError where they are mixed."""
    found, begin = dict[str, Table](), 0
    for split, rows in itertools.groupby(table.splits or ()):
        end = begin + len(list(rows))
        if found and SPLITS.index(split) <= max(map(SPLITS.index, found)):
            raise UserError(
                f"{path}: a column divides the rows into splits, but not in order of time, train first, valid, test:"
                f" row {begin + 1} is of {split}; sort the rows, or remove the column"
            )
        found[split] = table.part(begin, end)
        begin = end
    sizes = ", ".join(f"{split} {len(part.values):,}" for split, part in found.items())
    notice(f"{path}: a column divides the rows: {sizes}")
    lacking = next((split for split, share in _shares(options).items() if share and split not in found), None)
    return found if lacking is None else _with_third(found, lacking, options, path)


def _cut(table: Table, options: SeriesOptions, path: Path) -> dict[str, Table]:
    size = len(table.values)
    train = round(size * (1 - options.valid_fraction - options.test_fraction))
    valid = round(size * (1 - options.test_fraction))
    ends = {"train": (0, train), "valid": (train, valid), "test": (valid, size)}
    parts = {split: table.part(begin, end) for split, (begin, end) in ends.items() if _shares(options)[split]}
    for split, part in parts.items():
        if len(part.values) < 2:
            raise UserError(
                f"{path}: {counted(size, 'row')}, too few: the {split} split would have {len(part.values)}; give at"
                f" least 2 rows per split, or change data.valid_fraction and data.test_fraction"
            )
    return parts


def _read(values: Array, first: Array, rest: Residuals | None) -> tuple[Tensor, Tensor, Tensor | None]:
    """What is read and predicted, float64 [n + 1, P] each, and the steps with gaps, bool [n + 1]; None: there is none.

    The value before is read in the place of a missing one; a linear part leaves the `rest`.
    """
    if rest is not None:
        inputs, targets, missing = map(torch.from_numpy, rest)
        return inputs, targets, missing
    table = np.concatenate([first[None], values])
    gaps = np.isnan(table).any(axis=1)
    if not gaps.any():
        return torch.from_numpy(table), torch.from_numpy(table), None
    read = torch.from_numpy(carried(table))
    return read, read, torch.from_numpy(gaps)


class SeriesTrainingWindows(TrainingWindows):
    """A series cut into B columns that are read side by side, as a text is; the remainder is dropped.

    The first step of `values`, float64 [n, P], is predicted from `first` [P], the others from the step before. The
    stream is 0 to n, where 0 stands for `first` and t for the t-th step; `rules` are as for `TrainingWindows`. `rest`:
    what is read and predicted in place of the values, where there is a linear part.
    """

    def __init__(
        self, values: Array, first: Array, batch_size: int, length: int, rest: Residuals | None = None, **rules: Any
    ) -> None:
        self.given, self.table, self.gaps = _read(values, first, rest)
        super().__init__(np.arange(len(self.table)), batch_size, length, **rules)

    def batch(self, span: Span) -> Batch:
        """The window of a span: values before and at each step, float64 [T, B, P]."""
        batch = super().batch(span)
        mask = None if self.gaps is None else ~self.gaps[batch.targets]
        return batch._replace(inputs=self.given[batch.inputs], targets=self.table[batch.targets], mask=mask)


class SeriesWindows(EvaluationWindows):
    """A series, float64 [n, P], read so that every step is a target exactly once; `first` [P] is read before.

    `rules` are as for `EvaluationWindows`, `rest` as for `SeriesTrainingWindows`.
    """

    def __init__(self, values: Array, first: Array, rest: Residuals | None = None, **rules: Any) -> None:
        self.given, self.table, self.gaps = _read(values, first, rest)
        super().__init__(np.arange(1, len(self.table)), 0, **rules)

    def __iter__(self) -> Iterator[tuple[Batch, Tensor]]:
        """Windows, each with the position in the series of every target, [T, B] (-1: not counted)."""
        for batch, where in super().__iter__():
            if self.gaps is not None:
                where = where.masked_fill(self.gaps[batch.targets], -1)
                batch = batch._replace(mask=where >= 0)
            yield batch._replace(inputs=self.given[batch.inputs], targets=self.table[batch.targets]), where
