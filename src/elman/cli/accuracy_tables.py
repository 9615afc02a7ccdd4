"""Accuracies on minimal pairs as tables for people: of a model, judged in one way or two, and of two models."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from elman.cli.show import Table
    from elman.evaluation.minimal_pairs import PairAccuracy
    from elman.evaluation.paired import PairedAccuracy

_HEADER = ["phenomenon", "pairs", "not distinguished", "accuracy, %", "95 % interval", "no unknown", "accuracy, %"]
_WAYS = {
    "sentence": ["sentence, %", *_HEADER[4:]],
    "word": ["first difference, %", *_HEADER[4:]],
}
_PARTS = {"fields": " by field", "phenomena": "", "columns": " by other columns"}
COMPARED = ["phenomenon", "pairs", "A, %", "B, %", "B - A", "95 % interval", "only A", "only B", "p", "p, Holm"]


def tables_of(name: str, judged: "Mapping[str, Mapping[str, Sequence[PairAccuracy]]]") -> "list[Table]":
    """The tables of a model, by the ways (sentence, word) in which pairs were judged the accuracies of each part."""
    ways = list(judged)
    title = f"{name}: minimal pairs" + (" until their first difference" if ways == ["word"] else "")
    header = _HEADER if len(ways) == 1 else [*_HEADER[:3], *(head for way in ways for head in _WAYS[way])]
    found = list["Table"]()
    for part, of in _PARTS.items():
        first, *others = ([_cells(row) for row in parts[part]] for parts in judged.values())
        rows = [[*row, *(cell for other in others for cell in other[at][3:])] for at, row in enumerate(first)]
        if rows:
            found.append((title + of, *((header, rows) if len(ways) == 1 else _without_idle(header, rows))))
    return found


def _without_idle(header: list[str], rows: list[list[str]]) -> tuple[list[str], list[list[str]]]:
    """Minimal pairs judged in two ways, without columns of unknown words and equal pairs where there are none."""
    unknown = [at for at, name in enumerate(header) if name == "no unknown"]
    idle = {2} if all(row[2] == "0" for row in rows) else set[int]()
    if all(row[at] == row[1] for row in rows for at in unknown):
        idle |= {one for at in unknown for one in (at, at + 1)}
    cut = [[cell for at, cell in enumerate(row) if at not in idle] for row in (header, *rows)]
    return cut[0], cut[1:]


def _named(row: "PairAccuracy | PairedAccuracy") -> str:
    return f"{row.field}: {row.phenomenon}" if row.field else row.phenomenon


def _cells(row: "PairAccuracy") -> list[str]:
    low, high = row.accuracy.interval
    return [
        _named(row),
        f"{row.pairs:,}",
        f"{row.same:,}",
        percent(row.accuracy.share),
        f"{percent(low)} to {percent(high)}",
        f"{row.known.count:,}",
        percent(row.known.share),
    ]


def cells_of_difference(row: "PairedAccuracy") -> list[str]:
    interval = f"{percent(row.low, '+')} to {percent(row.high, '+')}" if row.judged else percent(None)
    return [
        _named(row),
        f"{row.judged:,}",
        percent(row.a),
        percent(row.b),
        percent(row.difference, "+"),
        interval,
        f"{row.only_a:,}",
        f"{row.only_b:,}",
        f"{row.p_mid:.2g}",
        "" if row.p_holm is None else f"{row.p_holm:.2g}",
    ]


def percent(share: float | None, sign: str = "") -> str:
    return "\N{EN DASH}" if share is None or share != share else f"{100 * share:{sign}.1f}"
