"""The choice and the fit of the linear part of a model of series.

Whether differences are taken, the lags (1 to an order, and around multiples of seasons), the penalty, and whether a
column reads the others are those with the least squared error, as a geometric mean over columns of the errors of seven
of eight parts of the training split, each predicted from what precedes it.
"""

import itertools
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from elman.kinds.series.linear import BLOCK, Linear, Places, features, places
from elman.kinds.series.table import Array, carried

ORDERS, PENALTIES = (0, 1, 2, 4, 8, 16, 32), (1e-8, 1e-4, 1e-2, 0.1, 1.0, 1e4)
BLOCKS = 8
"""Parts of the training split, of which each but the first is predicted from those before.

By 520 series of 50 to 400 rows: errors of the rows that follow are 6 % lower than with the last three of six parts
(standard error 1.7).
"""
MOST_ROWS, MOST_FEATURES, MOST_JOINT = 20_000, 160, 8
CLOSE = 0.002  # logarithms of squared errors nearer than this count as equal: then the fewest coefficients are taken


def seasons_of(values: Array, usual: Sequence[int] = ()) -> list[int]:
    """Lengths of seasons that may be in a series [n, P]: the `usual` ones, and two at peaks of the autocorrelation.

    The series is taken as differences and without its line. A peak is the first lag above 2 whose correlation is 9
    tenths or more of the greatest and above both neighbours, where that is above .1 and twice its error. Two
    seasons at least have to be within half of the series.
    """
    most, found = len(values) // 4, list(usual)
    time = np.linspace(-1, 1, len(values))[:, None]
    level = carried(values)
    level = np.where(np.isnan(level), np.nanmean(values, axis=0), level)
    for one in (np.diff(level, axis=0), level - level.mean(0) - time * (level * time).mean(0) / (time**2).mean()):
        size = 2 * len(one)
        power = np.abs(np.fft.rfft(one - one.mean(0), size, axis=0)) ** 2
        each = np.fft.irfft(power, size, axis=0)[: most + 2]
        acf = np.nanmean(np.divide(each, each[:1], out=np.zeros_like(each), where=each[:1] > 0), axis=1)
        inner = acf[1:-1]
        peaks = np.flatnonzero((inner > acf[:-2]) & (inner >= acf[2:]) & (inner > max(0.1, 2 / len(one) ** 0.5))) + 1
        peaks = peaks[peaks > 2]
        if len(peaks):
            found.append(int(peaks[acf[peaks] >= 0.9 * acf[peaks].max()][0]))
    return [one for one in dict.fromkeys(found) if 1 < one <= most][:4]


class _Squares(NamedTuple):
    """Sums of products of features and targets, [F + G, F + G], and how many rows."""

    sums: Array
    rows: int

    def __add__(self, other: "_Squares") -> "_Squares":  # type: ignore[override]
        return _Squares(self.sums + other.sums, self.rows + other.rows)

    def solve(self, chosen: Places, targets: int, penalty: float) -> Array:
        """W [F, G] of ridge regression on the chosen features."""
        squares = self.sums[np.ix_(chosen, chosen)] + penalty * self.rows * np.eye(len(chosen))
        return np.linalg.solve(squares, self.sums[chosen, -targets:]).astype(np.float64)

    def errors(self, chosen: Places, weights: Array) -> Array:
        """Mean squared errors [G] of weights."""
        targets = weights.shape[1]
        both = self.sums[chosen, -targets:]
        explained = 2 * (weights * both).sum(0) - (weights * (self.sums[np.ix_(chosen, chosen)] @ weights)).sum(0)
        squares: Array = np.diag(self.sums)[-targets:]
        return np.maximum(squares - explained, 1e-12 * squares) / self.rows


def fit(values: Array, known: Array, usual: Sequence[int] = ()) -> Linear:
    """The linear part for a training split [n, P] with covariates [n, C], as the text of this module says.

    `usual`: lengths of seasons by the calendar. A prediction that runs away when it is continued by itself is fitted
    again with greater penalties.
    """
    number, seasons = values.shape[1], seasons_of(values, usual)
    known = np.where(np.isnan(known), np.nanmean(known, axis=0), known) if known.size else known
    found = min(_candidates(values, known, seasons), key=lambda one: one[:2])[2]
    naive = {one: np.nanmean(np.abs(values[one:] - values[:-one]), axis=0) for one in (1, *seasons)}
    season = min(naive, key=lambda one: float(np.log(naive[one] + 1e-300).mean()))
    season = season if season > 1 else found.season or 1
    for penalty in (one for one in PENALTIES if one >= found.penalty):
        found = msgspec.structs.replace(found, penalty=penalty)
        for _ in range(2 if np.isnan(values).any() else 1):  # the second time with gaps as predicted
            found = _fitted(found, values, known)
        if _is_steady(found, found.predict(values, known)[0], known):
            break
    left, read = (
        part[found.reach :] if len(values) > 2 * found.reach else part for part in _seen(found, values, known)
    )
    counted = ~np.isnan(left).any(axis=1)
    read = read[counted]
    deviation = np.maximum(read.std(axis=0), 1e-12 + 1e-6 * np.tile(np.nanstd(values, axis=0).max(), read.shape[1]))
    deviation[:number] = np.maximum(
        np.sqrt(np.square(left[counted]).mean(axis=0)), deviation[number : 2 * number] * 1e-6
    )
    mean = np.where(np.arange(read.shape[1]) < number, 0.0, read.mean(axis=0))
    bounds = {name: tuple(one.tolist()) for name, one in (("low", read.min(axis=0)), ("high", read.max(axis=0)))}
    return msgspec.structs.replace(
        found,
        season=season if season > 1 else None,
        scale=tuple(np.maximum(naive[season], 1e-300).tolist()),
        read_mean=tuple(mean.tolist()),
        read_deviation=tuple(deviation.tolist()),
        share=(1.0,) * number,
        **bounds,
    )


def _seen(found: Linear, values: Array, known: Array) -> tuple[Array, Array]:
    """Residuals [n - 1, P], NaN where missing, and what is read to predict them."""
    filled, means = found.predict(values, known)
    left = filled - means
    return np.where(np.isnan(values), np.nan, left)[1:], found.read(left[:-1], filled[:-1], means[1:], known[1:])


def _is_steady(found: Linear, values: Array, known: Array) -> bool:
    """Whether the linear part, continued by itself from the end, stays within four times the range of the series."""
    low, high = values.min(axis=0), values.max(axis=0)
    reach, past = found.reach, values[None, -found.reach - 1 :]
    for _ in range(min(len(values), max(100, 2 * reach))):
        past = np.concatenate([past[:, -reach:], found.ahead(past, known[None, -2:])[:, None]], axis=1)
    return bool((np.abs(past[0] - (low + high) / 2) <= 2 * (high - low)).all())


def _candidates(values: Array, known: Array, seasons: Sequence[int]) -> Iterator[tuple[int, int, Linear]]:
    """Linear parts without weights, each with its error in steps of CLOSE, and its number of coefficients."""
    size, number = values.shape
    sets = list(dict.fromkeys([(), *((one,) for one in seasons), tuple(seasons)]))
    reach, lags = max(2, size // 4), dict[tuple[int, tuple[int, ...]], tuple[int, ...]]()
    for order, some in itertools.product([one for one in ORDERS if one < reach], sets):
        near = {times * one + step for one in some for times in (1, 2, 3) for step in (-1, 0, 1)}
        lags[order, some] = tuple(sorted({*range(1, order + 1), *(one for one in near if 0 < one <= reach)}))
    season = {found: some[0] if some else None for (_, some), found in reversed(lags.items())}
    every = tuple(sorted(set().union(*season)))
    joint: list[tuple[tuple[int, ...], ...]] = [tuple((one,) for one in range(number))]
    joint += [(tuple(range(number)),)] if 1 < number <= MOST_JOINT else []
    for difference, groups in itertools.product((False, True), joint):
        found = _begun(values, known, difference, groups, every)
        tests = [_tests(list(_sums(found, values, known, group, BLOCKS))) for group in groups]
        for some in season:
            width = len(groups[0])
            if 1 + len(some) * width > min(MOST_FEATURES, max(3, size // 3)):
                continue
            places = [1 + every.index(one) * width + column for one in some for column in range(width)]
            end = 1 + len(every) * width
            chosen = np.array([0, *places, *range(end, end + 2 * known.shape[1])])
            for penalty in PENALTIES:
                error = np.mean(
                    [_error(one, chosen, len(group), penalty) for one, group in zip(tests, groups, strict=True)]
                )
                error += 2 * np.mean(np.log(found.deviation[:number]))
                yield (
                    round(error / CLOSE),
                    len(chosen),
                    msgspec.structs.replace(found, lags=some, season=season[some], penalty=penalty),
                )


def _tests(blocks: Sequence[_Squares]) -> list[tuple[_Squares, _Squares]]:
    """The sums of what precedes each block after the first, and its own."""
    return list(zip(itertools.accumulate(blocks[:-1]), blocks[1:], strict=True))


def _error(tests: Sequence[tuple[_Squares, _Squares]], chosen: Places, targets: int, penalty: float) -> float:
    """The mean logarithm of the squared errors of blocks, each predicted from those before it; 0 without any."""
    errors = [one.errors(chosen, before.solve(chosen, targets, penalty)) for before, one in tests]
    errors = errors or [np.ones(targets)]
    return float(np.log(np.mean(errors, axis=0) + 1e-300).mean())


def _begun(
    values: Array, known: Array, difference: bool, groups: tuple[tuple[int, ...], ...], lags: tuple[int, ...]
) -> Linear:
    changes = np.diff(values, axis=0) if difference else values
    both = [np.nanmean(changes, axis=0), known.mean(axis=0)], [np.nanstd(changes, axis=0), known.std(axis=0)]
    mean, deviation = (np.concatenate(one) for one in both)
    deviation = np.where(deviation > 0, deviation, 1.0)
    return Linear(difference, None, lags, 0.0, groups, (), tuple(mean.tolist()), tuple(deviation.tolist()))


def _sums(found: Linear, values: Array, known: Array, group: tuple[int, ...], parts: int) -> Iterator[_Squares]:
    """Sums over consecutive parts of the rows whose values are there and whose lags are in the series."""
    number, columns = values.shape[1], list(group)
    read = found.predict(values, known)[0] if found.weights else carried(values)
    read = np.where(np.isnan(read), np.nanmean(values, axis=0), read)
    changes = np.diff(read, axis=0, prepend=read[:1]) if found.difference else read
    scaled = ((changes - found.mean[:number]) / found.deviation[:number])[:, columns]
    covariates = (known - found.mean[number:]) / found.deviation[number:]
    rows = np.flatnonzero(~np.isnan(values[:, columns]).any(axis=1))
    rows = rows[rows >= min(max(found.lags, default=0) + 1, len(values) // 3)]
    rows = rows[-MOST_ROWS:] if parts > 1 else rows
    for part in np.array_split(rows, max(1, min(parts, len(rows)))):
        total = 0.0
        for some in np.array_split(part, 1 + len(part) // BLOCK):
            read_there = features(scaled[places(some, found.lags)], covariates[places(some, (1, 0))])
            both = np.concatenate([read_there, scaled[some]], axis=1)
            total = total + both.T @ both
        yield _Squares(np.asarray(total), max(1, len(part)))


def _fitted(found: Linear, values: Array, known: Array) -> Linear:
    weights = []
    for group in found.groups:
        (sums,) = _sums(found, values, known, group, 1)
        solved = sums.solve(np.arange(len(sums.sums) - len(group)), len(group), found.penalty)
        weights.append(tuple(map(tuple, solved.tolist())))
    return msgspec.structs.replace(found, weights=tuple(weights))
