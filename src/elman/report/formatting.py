"""Numbers, times and shares as a person reads them; a dash where there is none."""

import math
from datetime import UTC, datetime

from elman.report.comparison import Spread

MISSING, NO_BREAK = "\N{EN DASH}", "\N{NO-BREAK SPACE}"


def number(value: float | None, digits: int = 0) -> str:
    """A number with separators, or a dash.

    Example:
        >>> number(21500620), number(73.045, 2), number(None), number(float("nan"))
        ('21,500,620', '73.05', '–', '–')

    """
    return MISSING if value is None or math.isnan(value) else f"{value:,.{digits}f}"


def brief(value: float | None) -> str:
    """A large number in a few characters.

    Example:
        >>> brief(21500620), brief(3647905), brief(9000), brief(None)
        ('21.5 M', '3.65 M', '9,000', '–')

    """
    if value is None or value < 1e5:
        return number(value)
    scaled, unit = (value / 1e9, "G") if value >= 1e9 else (value / 1e6, "M")
    return f"{scaled:.3g} {unit}"


def duration(seconds: float | None) -> str:
    """A time in its two largest units.

    Example:
        >>> duration(0.42), duration(38.2), duration(754), duration(7980), duration(200000)
        ('0.4 s', '38 s', '12 min 34 s', '2 h 13 min', '2 d 7 h')

    """
    if seconds is None or math.isnan(seconds):
        return MISSING
    whole = round(seconds)
    for unit, size, smaller, part in (("d", 86400, "h", 3600), ("h", 3600, "min", 60), ("min", 60, "s", 1)):
        if whole >= size:
            return f"{whole // size} {unit} {whole % size // part} {smaller}"
    return f"{whole} s" if seconds >= 10 else f"{seconds:.1f} s"


def share(part: int | None, whole: int) -> str:
    """A part of a whole in per cent.

    Example:
        >>> share(4794, 82430), share(None, 5)
        ('5.8 %', '–')

    """
    return MISSING if part is None or not whole else f"{100 * part / whole:.1f} %"


def spread(value: Spread | None) -> str:
    """A mean and its standard deviation, or a dash."""
    if value is None:
        return MISSING
    return f"{value.mean:,.2f}" if value.deviation is None else f"{value.mean:,.2f} ± {value.deviation:.2f}"


def trim_zeros(text: str) -> str:
    """A decimal number without the zeros at its end."""
    return text.rstrip("0").rstrip(".") if "." in text else text


def tied(text: str) -> str:
    """Per cent and ± signs that no line break parts from their numbers."""
    return text.replace(" %", f"{NO_BREAK}%").replace(" ± ", f"{NO_BREAK}±{NO_BREAK}")


def moment(text: object) -> str:
    """An ISO time as a person writes it; anything else as it is."""
    try:
        when = datetime.fromisoformat(str(text)).astimezone(UTC)
    except ValueError:
        return str(text)
    return f"{when.day} {when:%B %Y, %H:%M} UTC"
