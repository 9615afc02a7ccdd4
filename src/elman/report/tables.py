"""The tables of a report: results with baselines and published numbers, several runs, numbers as text."""

import dataclasses
import math
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from elman.evaluation.result import Result
from elman.evaluation.spread import Spread
from elman.report.comparison import Group, against, published
from elman.report.folder import RunFolder

MISSING, NO_BREAK = "\N{EN DASH}", "\N{NO-BREAK SPACE}"


@dataclasses.dataclass(frozen=True)
class ResultRow:
    """Losses on the scale of the run, bits and second figure of test, else valid; `kind` is the style of the row."""

    name: str
    kind: str
    valid: float | None = None
    test: float | None = None
    bits_per_token: float | None = None
    figure: float | None = None
    parameters: int | None = None


def result_rows(run: RunFolder) -> list[ResultRow]:
    """Baselines (the worst first), the network, and the published figures of the recipe."""
    baselines: dict[str, list[Result]] = {}
    for result in run.baselines:
        if result.name:
            baselines.setdefault(result.name, []).append(result)
    rows = [_evaluated(run, name, "baseline", results) for name, results in baselines.items()]
    rows.sort(key=lambda row: -(row.test or row.valid or math.inf))
    ways = dict.fromkeys((result.method, result.model) for result in run.results)
    for method, model in ways:
        results = [result for result in run.results if (result.method, result.model) == (method, model)]
        others = [one for one in (method, f"{model or 'best'} model") if one not in (None, "static", "best model")]
        rows.append(_evaluated(run, ", ".join(["this network", *others]), "network", results, run.parameters))
    if not ways and run.metrics.best is not None:
        name = "this network, while training"
        rows.append(ResultRow(name, "network", valid=run.valid_loss, parameters=run.parameters))
    if expected := run.recipe.expected:
        valid, test = published(run, "valid"), published(run, "test")
        rows.append(
            ResultRow(f"published: {expected.source}", "published", valid, test, parameters=expected.parameters)
        )
    return rows


def ranking(groups: Sequence[Group]) -> str:
    """The best group, on test text if all were evaluated on it, and its margin."""
    scale = groups[0].scale
    split = "test" if all(group.test for group in groups) else "validation"
    spreads = [(group.test if split == "test" else group.valid, group) for group in groups]
    known = sorted(((value, group) for value, group in spreads if value), key=lambda pair: pair[0].mean)
    if not known:
        return "No losses yet: the runs have not been validated."
    best, group = known[0]
    deviation = "" if best.deviation is None else f" ± {loss(best.deviation)}"
    runs = f"{best.count} of {len(group.runs)}" if best.count < len(group.runs) else str(best.count)
    times = f" over {runs} runs" if len(group.runs) > 1 else ""
    lowest = f"{group.name}: {split} {scale.name} {loss(best.mean)}{deviation}{times}"
    if len(known) == 1:
        return f"{lowest}."
    second, other = known[1]
    return f"Lowest is {lowest}, {against(best.mean, second.mean, scale)} the next, {other.name}."


def widest(rows: Sequence[ResultRow]) -> float:
    """The loss of a full bar, the largest finite one; 0 where one is below 0, as a density's may be: no bars then."""
    losses = [loss for row in rows if math.isfinite(loss := row.test or row.valid or 0.0)]
    return max(losses, default=0.0) if min(losses, default=0.0) >= 0 else 0.0


def _evaluated(
    run: RunFolder, name: str, kind: str, results: Sequence[Result], parameters: int | None = None
) -> ResultRow:
    by_split = {result.split: result for result in results}
    valid, test = by_split.get("valid"), by_split.get("test")
    shown = test or valid
    return ResultRow(
        name,
        kind,
        valid=run.reported(valid.nll) if valid else None,
        test=run.reported(test.nll) if test else None,
        bits_per_token=shown.bits_per_token if shown else None,
        figure=getattr(shown, run.scale.figure[0]) if shown and run.scale.figure else None,
        parameters=parameters,
    )


def number(value: float | None, digits: int = 0) -> str:
    """A number with separators, or a dash.

    Example:
        >>> number(21500620), number(73.045, 2), number(1e304, 2), number(None), number(float("nan"))
        ('21,500,620', '73.05', '1e+304', '–', '–')
    """
    if value is None or math.isnan(value):
        return MISSING
    return f"{value:,.{digits}f}" if abs(value) < 1e15 else f"{value:.3g}"


def loss(value: float | None) -> str:
    """A loss with two decimals, or two digits where it is below a tenth.

    Example:
        >>> loss(73.045), loss(0.0123), loss(-0.00002), loss(0.0), loss(None)
        ('73.05', '0.012', '-2e-05', '0.00', '–')
    """
    small = value is not None and 0 < abs(value) < 0.0995
    return f"{value:.2g}" if small else number(value, 2)


def brief(value: float | None) -> str:
    """A large number in a few characters.

    Example:
        >>> brief(21500620), brief(3647905), brief(999999999), brief(9000), brief(None)
        ('21.5 M', '3.65 M', '1 G', '9,000', '–')
    """
    if value is None or value < 1e5:
        return number(value)
    scaled, unit = (value / 1e9, "G") if value >= 9.995e8 else (value / 1e6, "M")
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


def mean_and_deviation(value: Spread | None, runs: int, shown: Callable[[float], str] = loss) -> str:
    """A mean and its standard deviation, and of how many runs where some have none that is finite, or a dash."""
    if value is None:
        return MISSING
    deviation = "" if value.deviation is None else f" ± {shown(value.deviation)}"
    return f"{shown(value.mean)}{deviation}" + ("" if value.count == runs else f" ({value.count} of {runs})")


def trim_zeros(text: str) -> str:
    """A decimal number without the zeros at its end."""
    return text.rstrip("0").rstrip(".") if "." in text else text


def tied(text: str) -> str:
    """Text in which no line break separates per cent and ± signs from their numbers."""
    return text.replace(" %", f"{NO_BREAK}%").replace(" ± ", f"{NO_BREAK}±{NO_BREAK}")


def moment(text: object) -> str:
    """An ISO time in words; anything else unchanged."""
    try:
        when = datetime.fromisoformat(str(text)).astimezone(UTC)
    except ValueError:
        return str(text)
    return f"{when.day} {when:%B %Y, %H:%M} UTC"
