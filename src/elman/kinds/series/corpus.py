"""A series of real values with three splits, and the columns that a model reads."""

import dataclasses
import hashlib
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import torch
from torch import Tensor

from elman.data.batches import Batch
from elman.data.catalog import prepare
from elman.data.text.sources import SPLITS, Corpus
from elman.data.windows import EvaluationWindows, Span, TrainingWindows
from elman.errors import UserError
from elman.files import canonical_json, sha256_lines
from elman.kinds.series.record import SeriesOptions
from elman.kinds.series.table import SUFFIXES, Array, Table, carried, read_table


class Columns(msgspec.Struct, frozen=True):
    """What a model of series reads: columns, with the mean and standard deviation of each in the training split.

    Where the series is not standardised they are 0 and 1.
    """

    names: tuple[str, ...]
    mean: tuple[float, ...]
    deviation: tuple[float, ...]

    def __post_init__(self) -> None:
        if not 0 < len(self.names) == len(self.mean) == len(self.deviation):
            raise ValueError("names, mean and deviation have different lengths")
        if not all(map(math.isfinite, (*self.mean, *self.deviation))) or min(self.deviation) <= 0:
            raise ValueError("a mean or deviation that no series has")

    def __len__(self) -> int:
        return len(self.names)

    @property
    def digest(self) -> str:
        """SHA-256 over the names, means and deviations."""
        return sha256_lines(canonical_json(self))


@dataclasses.dataclass(frozen=True)
class Series:
    """One split: float64 [n, P] in the units of the data, NaN where a value is masked."""

    name: str
    values: Array

    @property
    def sha256(self) -> str:
        """Digest of the values."""
        return hashlib.sha256(self.values.astype("<f8").tobytes()).hexdigest()

    @property
    def counted(self) -> Array:
        """The steps that count, all of whose values are there."""
        gaps = np.isnan(self.values).any(axis=1)
        return self.values[~gaps] if gaps.any() else self.values


@dataclasses.dataclass(frozen=True)
class SeriesCorpus(Corpus[SeriesOptions, Series]):
    """A series as a model reads it; `cut`: its splits were cut from one file in order of time."""

    names: tuple[str, ...]
    cut: bool

    @property
    def symbols(self) -> Columns:
        """The columns with their statistics in the training split.

        Raises UserError where a column that is to be standardised is constant, or has no variance in float64.
        """
        values = self.split("train").counted
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
        return Columns(self.names, tuple(mean.tolist()), tuple(deviation.tolist()))

    @property
    def digest(self) -> str:
        """SHA-256 over the options, the names and the values, which a rule for missing ones has changed."""
        splits = (f"{name} {split.sha256}" for name, split in self.splits.items())
        options = msgspec.structs.asdict(self.options)
        del options["missing"]
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
    time; or a folder with train, valid and test of them, such as train.csv.
    """
    path = prepare.locate_data(source, "series", "series.csv")
    if path.is_dir():
        tables: dict[str, Table] = {}
        for split in SPLITS:
            tables[split] = read_table(_find(path, split), options.columns, options.missing, known)
            known = known or tables[split].names
        for split, table in tables.items():
            if table.names != tables["train"].names:
                raise UserError(
                    f"{path}: the columns of {split} are {', '.join(table.names)}, those of train"
                    f" {', '.join(tables['train'].names)}; make them agree, or name them in data.columns"
                )
        names, parts = tables["train"].names, {split: table.values for split, table in tables.items()}
    elif path.is_file():
        names, parts = _cut(read_table(path, options.columns, options.missing, known), options, path)
    else:
        raise UserError(
            f"{source}: no such file or folder, and no known corpus has this name; give a CSV, TSV, .npy or .npz file,"
            " a folder with train, valid and test of them, or a name that `elman data list` shows"
        )
    splits = {split: Series(split, values) for split, values in parts.items()}
    if empty := next((name for name, split in splits.items() if len(split.values) and not len(split.counted)), None):
        raise UserError(
            f"{source}: every row of the {empty} split has a missing value; use --missing interpolate, previous or drop"
        )
    name = str(source) if isinstance(source, str) and prepare.is_known(source) else path.resolve().stem
    return SeriesCorpus(name, str(source), options, splits, names, path.is_file())


def _find(folder: Path, split: str) -> Path:
    found = [folder / f"{split}{suffix}" for suffix in SUFFIXES if (folder / f"{split}{suffix}").is_file()]
    if len(found) != 1:
        there = f"{len(found)} files ({', '.join(path.name for path in found)})" if found else "no file"
        raise UserError(f"{folder}: {there} for the {split} split; give one of {split}{f', {split}'.join(SUFFIXES)}")
    return found[0]


def _cut(table: Table, options: SeriesOptions, path: Path) -> tuple[tuple[str, ...], dict[str, Array]]:
    size = len(table.values)
    train = round(size * (1 - options.valid_fraction - options.test_fraction))
    valid = round(size * (1 - options.test_fraction))
    parts = dict(zip(SPLITS, np.split(table.values, [train, valid]), strict=True))
    shares = {"train": 1.0, "valid": options.valid_fraction, "test": options.test_fraction}
    parts = {split: part for split, part in parts.items() if shares[split]}
    for split, part in parts.items():
        if len(part) < 2:
            raise UserError(
                f"{path}: {size} rows, too few: the {split} split would have {len(part)}; give at least"
                f" 2 rows per split, or change data.valid_fraction and data.test_fraction"
            )
    return table.names, parts


def _read(values: Array, first: Array) -> tuple[Tensor, Tensor | None]:
    """What is read, float64 [n + 1, P], with the value before in the place of a missing one; and the steps with gaps.

    The steps are bool [n + 1], None where there is none.
    """
    table = np.concatenate([first[None], values])
    gaps = np.isnan(table).any(axis=1)
    if not gaps.any():
        return torch.from_numpy(table), None
    return torch.from_numpy(carried(table)), torch.from_numpy(gaps)


class SeriesTrainingWindows(TrainingWindows):
    """A series cut into B columns that are read side by side, as a text is; the remainder is dropped.

    The first step of `values`, float64 [n, P], is predicted from `first` [P], the others from the step before. The
    stream is 0 to n, where 0 stands for `first` and t for the t-th step; `rules` are those of `TrainingWindows`.
    """

    def __init__(self, values: Array, first: Array, batch_size: int, length: int, **rules: Any) -> None:
        super().__init__(np.arange(len(values) + 1), batch_size, length, **rules)
        self.table, self.gaps = _read(values, first)

    def batch(self, span: Span) -> Batch:
        """The window of a span: values before and at each step, float64 [T, B, P]."""
        batch = super().batch(span)
        mask = None if self.gaps is None else ~self.gaps[batch.targets]
        return batch._replace(inputs=self.table[batch.inputs], targets=self.table[batch.targets], mask=mask)


class SeriesWindows(EvaluationWindows):
    """A series, float64 [n, P], read so that every step is a target exactly once; `first` [P] is read before.

    `streams`, `length` and `warm_up` are as for `EvaluationWindows`.
    """

    def __init__(self, values: Array, first: Array, *, streams: int = 1, length: int = 100, warm_up: int = 0) -> None:
        super().__init__(np.arange(1, len(values) + 1), 0, streams=streams, length=length, warm_up=warm_up)
        self.table, self.gaps = _read(values, first)

    def __iter__(self) -> Iterator[tuple[Batch, Tensor]]:
        """Windows, each with the position in the series of every target, [T, B] (-1: not counted)."""
        for batch, where in super().__iter__():
            if self.gaps is not None:
                where = where.masked_fill(self.gaps[batch.targets], -1)
                batch = batch._replace(mask=where >= 0)
            yield batch._replace(inputs=self.table[batch.inputs], targets=self.table[batch.targets]), where
