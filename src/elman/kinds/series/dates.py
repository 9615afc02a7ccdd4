"""Dates of a series: read from cells, continued by their frequency, and the seasons that go with it."""

import contextlib
import re
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from elman.data.numbers import is_date
from elman.errors import counted

Dates: TypeAlias = npt.NDArray[np.datetime64]  # rising times [n] in seconds, without zones
DAY = 86_400
_UNITS = ((DAY, "day"), (3600, "hour"), (60, "minute"), (1, "second"))
_ISO = re.compile(
    r"(?P<y>\d{4})(?:[-/._]?(?P<m>\d{2}|(?<=[-/._])\d)(?:[-/._]?(?P<d>\d{2}|(?<=[-/._])\d))?)?(?P<rest>[T ,].*)?"
)
_QUARTER = re.compile(r"(?:(?P<y>\d{4})[ -]?Q(?P<q>[1-4])|Q(?P<r>[1-4])[ /-](?P<z>\d{4}))(?P<rest>)", re.IGNORECASE)
_BY_DAY = re.compile(r"(?P<a>\d{1,2})[-/.](?P<b>\d{1,2})[-/.](?P<y>\d{4}|\d{2})(?P<rest>[T ,].*)?")
_TIME = re.compile(r"[T ,]*(\d{1,2}):(\d{2})(?::(\d{2})(?:[.,]\d+)?)?(?: ?([AP]M))?.*", re.IGNORECASE)


def read_dates(cells: Sequence[str], name: str = "") -> tuple[Dates | None, list[str]]:
    """The dates of a column, where each cell has one and they rise; and notes on what is doubtful of them.

    Of `1/2/2020` the first number is the day where it stands before points, and the month otherwise, unless only the
    other reading has dates, or rises, or has more even steps. Dates with names of months, weeks and times alone are
    not read.

    >>> read_dates(["31.01.2020", "1.2.2020 18:00"])[0].astype(str).tolist()
    ['2020-01-31T00:00:00', '2020-02-01T18:00:00']
    >>> read_dates(["2020-01-31", "2020-01-30"], "day")[1]
    ['the dates do not rise (column day: 2020-01-30 after 2020-01-31): rows are read as they stand; sort them by time']
    """
    readings = _readings(cells)
    rising = [dates for dates in readings if (np.diff(dates) > np.timedelta64(0)).all()]
    if not readings or len(cells) < 2:
        strange = [cell.strip() for cell in cells if not is_date(cell)]
        few = 0 < 10 * len(strange) <= len(cells)
        return None, [f"column {name} has dates, but not in every row: not in {strange[0]!r}"] if few else []
    if not rising:
        at = int(np.argmax(np.diff(readings[0]) <= np.timedelta64(0)))
        found = f"the dates do not rise (column {name}: {cells[at + 1].strip()} after {cells[at].strip()})"
        again = readings[0][at] == readings[0][at + 1]
        cure = "if they are several series, give each a file" if again else "sort them by time"
        return None, [f"{found}: rows are read as they stand; {cure}"]
    dates = min(rising, key=_uneven)
    doubt = []
    if len(readings) > 1:
        at = int(np.argmax(readings[0] != readings[1]))
        which = dates[at].astype("datetime64[D]")
        doubt = [f"column {name}: {cells[at].strip()} is read as {which}; where it is another day, write YYYY-MM-DD"]
    return dates, [*doubt, *unevenness(dates)]


def _readings(cells: Sequence[str]) -> list[Dates]:
    """What dates in cells may be, the more usual first, with the day or the month in front; none if a cell is none."""
    by_day = next((cell for cell in map(str.strip, cells) if _BY_DAY.match(cell)), "")
    found = list[Dates]()
    for day_first in ("." in by_day[:3], "." not in by_day[:3])[: 1 + bool(by_day)]:
        with contextlib.suppress(ValueError):
            found.append(np.array([_date(cell.strip(), day_first) for cell in cells], "datetime64[s]"))
    years = all(len(cell.strip()) == 4 for cell in cells)
    found = [dates for dates in found if not years or all(1500 < int(cell) < 2300 for cell in cells)]
    return found[:1] if len(found) > 1 and (found[0] == found[1]).all() else found


def _date(cell: str, day_first: bool) -> str:
    """A date as ISO 8601 writes it; raises ValueError where there is none, or in an unknown form."""
    if found := _QUARTER.fullmatch(cell):
        year, month, day = found["y"] or found["z"], 3 * int(found["q"] or found["r"]) - 2, 1
    elif found := _ISO.fullmatch(cell):
        year, month, day = found["y"], int(found["m"] or 1), int(found["d"] or 1)
    elif is_date(cell) and (found := _BY_DAY.fullmatch(cell)):
        day, month = (int(found[name]) for name in ("ab" if day_first else "ba"))
        year = found["y"] if len(found["y"]) == 4 else f"{19 + (int(found['y']) < 70)}{found['y']}"
    else:
        raise ValueError(cell)
    time = ""
    if found["rest"]:
        hour, minute, second, half = ((match := _TIME.fullmatch(found["rest"])) and match.groups()) or (None,) * 4
        if hour is None:
            raise ValueError(cell)
        hours = int(hour) % 12 + 12 * (half.upper() == "PM") if half else int(hour)
        time = f"T{hours:02}:{minute}:{second or '00'}"
    return f"{year}-{month:02}-{day:02}{time}"


def frequency(dates: Dates) -> tuple[str, int]:
    """The most frequent step between dates: "months", "business days" or "seconds", and how many of them.

    >>> frequency(np.array(["2020-01-31", "2020-02-29", "2020-03-31"], "datetime64[s]"))
    ('months', 1)
    """
    days, months = dates.astype("datetime64[D]"), dates.astype("datetime64[M]")
    of_month = (days - months.astype("datetime64[D]")).astype(int)
    ends = (days + 1 == (months + 1).astype("datetime64[D]")).all()
    apart = np.diff(months).astype(int)
    if (len(set(of_month.tolist())) == 1 or ends) and apart.min() > 0:
        return "months", int(np.median(apart))
    steps = np.diff(dates).astype(int)
    if len(dates) > 5 and np.is_busday(days).all() and (np.median(steps) == DAY) and (steps % DAY == 0).all():
        return "business days", 1
    values, counts = np.unique(steps, return_counts=True)
    return "seconds", int(values[counts.argmax()])


def unevenness(dates: Dates) -> list[str]:
    """A note on the steps between dates that are not the most frequent one; none on business days.

    >>> unevenness(np.array(["2020-01-01", "2020-01-02", "2020-01-03", "2020-02-03"], "datetime64[s]"))
    ['1 of 3 steps between the dates is not 1 day; every row is read as one step']
    """
    (unit, size), uneven = frequency(dates), _uneven(dates)
    if unit == "seconds":
        size, unit = next((size // one, name) for one, name in _UNITS if size % one == 0)
    apart = counted(size, unit.removesuffix("s"))
    what = f"{uneven:,} of {counted(len(dates) - 1, 'step')} between the dates {'is' if uneven == 1 else 'are'}"
    return [f"{what} not {apart}; every row is read as one step"] if uneven else []


def _uneven(dates: Dates) -> int:
    """How many steps between dates are not the most frequent one."""
    unit, size = frequency(dates)
    steps = np.diff(dates.astype("datetime64[M]") if unit == "months" else dates).astype(int)
    return 0 if unit == "business days" else int((steps != size).sum())


def following(dates: Dates, steps: int) -> Dates:
    """The dates [steps] that continue some by their frequency; the last day of a month stays the last.

    >>> following(np.array(["2020-01-31", "2020-02-29", "2020-03-31"], "datetime64[s]"), 1).astype("M8[D]").tolist()
    [datetime.date(2020, 4, 30)]
    """
    unit, size = frequency(dates)
    ahead, last = size * np.arange(1, steps + 1), dates[-1]
    if unit == "seconds":
        return last + ahead.astype("timedelta64[s]")
    day = last.astype("datetime64[D]")
    if unit == "business days":
        return np.busday_offset(day, ahead).astype("datetime64[s]") + (last - day)
    month = last.astype("datetime64[M]")
    within = (dates.astype("datetime64[D]") - dates.astype("datetime64[M]").astype("datetime64[D]")).max()
    months = month + ahead.astype("timedelta64[M]")
    longest = (months + 1).astype("datetime64[D]") - 1
    return np.minimum(months.astype("datetime64[D]") + within, longest).astype("datetime64[s]") + (last - day)


def usual_seasons(dates: Dates) -> list[int]:
    """Steps in a day, a week and a year, where the frequency of dates divides them."""
    unit, size = frequency(dates)
    if unit == "months":
        return [12 // size] if size < 12 and 12 % size == 0 else []
    if unit == "business days":
        return [5]
    if size == 7 * DAY:
        return [52]
    return [one * DAY // size for one in (1, 7) if size < one * DAY and one * DAY % size == 0]


def written(dates: Dates) -> list[str]:
    """Dates in ISO 8601, without the time of the day where it is midnight in all.

    >>> written(np.array(["2020-01-31", "2020-02-01"], "datetime64[s]"))
    ['2020-01-31', '2020-02-01']
    """
    whole = (dates == dates.astype("datetime64[D]")).all()
    return [
        str(one).replace("T", " ").removesuffix(":00") for one in (dates.astype("datetime64[D]") if whole else dates)
    ]
