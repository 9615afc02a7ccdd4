"""elman minimal-pairs, and elman compare --pairs: which sentence of a minimal pair is more probable, to which run."""

import csv
import io
import itertools
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
from cyclopts import Parameter

from elman.cli import progress, show
from elman.cli.groups import Common
from elman.cli.options import AsUnk, RunFolders, file_to_write
from elman.errors import counted, notice
from elman.files import write_atomic

if TYPE_CHECKING:
    from elman.data.minimal_pairs import Pair
    from elman.evaluation.minimal_pairs import PairAccuracy
    from elman.evaluation.paired import PairedAccuracy
    from elman.tasks.text.minimal_pairs import Judged
    from elman.tasks.text.model import TextModel

PairFiles = Annotated[
    tuple[str, ...],
    Parameter(
        consume_multiple=1,
        metavar="FILE",
        help="BLiMP's .jsonl, Linzen's .text with .gold, templates (.toml), the .agreement.tsv of generated sentences,"
        " tables (.tsv, .csv) with a header (good, bad, phenomenon, item and others) or of good TAB bad [TAB"
        " phenomenon], folders of them, or the known set blimp",
    ),
]

_HEADER = ["phenomenon", "pairs", "not distinguished", "accuracy, %", "95 % interval", "no unknown", "accuracy, %"]
_COMPARED = ["phenomenon", "pairs", "A, %", "B, %", "B - A", "95 % interval", "only A", "only B", "p", "p, Holm"]


def minimal_pairs(
    runs: RunFolders,
    /,
    *,
    pairs: PairFiles,
    by: Annotated[tuple[Literal["sentence", "word"], ...], Parameter(consume_multiple=1)] = ("sentence",),
    items: Annotated[Path | None, Parameter(metavar="FILE", validator=file_to_write)] = None,
    unknown_as_unk: AsUnk = False,
    common: Common = Common(),
) -> None:
    """Judge which sentence of a minimal pair is more probable.

    The share of pairs whose acceptable sentence is more probable, by phenomenon, with 95 % intervals.

    Args:
        runs: runs on text, n-gram models (.arpa, .arpa.gz), or models of transformers: hf://NAME or their folders
        by: what is compared: whole sentences, or both up to the first word in which they differ; or each of them
        items: also write a table (.tsv) with a row per run and pair: log-probabilities (natural), their difference,
            whether it is judged correctly, unknown words, and the columns of the file of pairs
    """
    from elman.data.minimal_pairs import read_pairs, until_difference
    from elman.evaluation.minimal_pairs import accuracies, by_column, by_field
    from elman.tasks.text.minimal_pairs import item_rows

    read = read_pairs(pairs)
    found: list[dict[str, Any]] = []
    tables: list[show.Table] = []
    single: list[dict[str, Any]] = []
    for folder, how in itertools.product(runs, by):
        cut = read if how == "sentence" else [until_difference(pair) for pair in read]
        judged = _judged(common.open_model(folder), cut, known_only=unknown_as_unk)
        rows = accuracies(*judged)
        parts = {"phenomena": rows, "fields": by_field(rows), "columns": by_column(cut, *judged)}
        said = {} if by == ("sentence",) else {"by": how}
        found.append(
            {"run": str(folder), **said, **{name: [row.facts() for row in own] for name, own in parts.items()}}
        )
        title = f"{folder}: minimal pairs" + ("" if how == "sentence" else " until their first difference")
        for name, own in (("fields", " by field"), ("phenomena", ""), ("columns", " by other columns")):
            if parts[name]:
                tables.append((title + own, _HEADER, [_cells(row) for row in parts[name]]))
        if items is not None:
            single += ({**row, **said} for row in item_rows(str(folder), cut, judged))
    if items is not None:
        write_atomic(items, _tsv(single))
    notes = [] if items is None else [f"items: {items}"]
    show.print_result(common.as_json, found[0] if len(found) == 1 else found, *tables, notes=notes)


def compare_on_pairs(runs: "Sequence[TextModel]", names: tuple[str, ...], *, as_json: bool) -> None:
    """Print McNemar's test of two runs on the minimal pairs of files."""
    from elman.data.minimal_pairs import read_pairs
    from elman.evaluation.paired import compare_accuracies

    read = read_pairs(names)
    first, second = (_judged(run, read).log_probs for run in runs)
    rows = compare_accuracies(read, first, second)
    whole, a, b = rows[-1], runs[0].path, runs[1].path
    facts = {"a": str(a), "b": str(b), "pairs": list(names), "phenomena": msgspec.to_builtins(rows)}
    shown = rows if len(rows) > 2 else rows[-1:]
    clear = whole.p_mid < 0.05
    which = "no clear difference" if not clear else "B is better" if whole.only_b > whole.only_a else "A is better"
    notes = [
        "p: McNemar's test, mid-p, two-sided; Holm: adjusted for the number of phenomena. Exact p of all pairs:"
        f" {whole.p_exact:.2g}"
    ]
    if left := whole.pairs - whole.judged:
        notes.append(
            f"left out for both runs: {left:,} of {whole.pairs:,} pairs, whose sentences a run reads as the same"
            f" (A {whole.unjudged_a:,}, B {whole.unjudged_b:,})"
        )
    title = f"A = {a}, B = {b}, minimal pairs: {which}"
    show.print_result(as_json, facts, (title, _COMPARED, [_compared(row) for row in shown]), notes=notes)


def _judged(run: "TextModel", pairs: "list[Pair]", *, known_only: bool = False) -> "Judged":
    from elman.tasks.text.minimal_pairs import judge

    with progress.counting(f"scoring pairs by {run.path}") as advance:
        judged = judge(run, pairs, known_only=known_only, advance=advance)
    both = zip(pairs, judged.coded, strict=True)
    equal = [pair for pair, coded in both if coded.same and (pair.good == pair.bad or not coded.unknown)]
    if equal:
        one = equal[0]
        notice(
            f"{run.path} reads both sentences of {counted(len(equal), 'pair')} as the same, and not for unknown words"
            f" (such as item {one.item} of {one.phenomenon}: {one.good!r}, {one.bad!r}); none of them is judged"
        )
    return judged


def _tsv(rows: Iterable[dict[str, Any]]) -> str:
    """A table of rows, of which some may lack columns."""
    rows = list(rows)
    columns = list(dict.fromkeys(key for row in rows for key in row))
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, columns, delimiter="\t", lineterminator="\n", restval="")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def _named(row: "PairAccuracy | PairedAccuracy") -> str:
    return f"{row.field}: {row.phenomenon}" if row.field else row.phenomenon


def _cells(row: "PairAccuracy") -> list[str]:
    low, high = row.accuracy.interval
    return [
        _named(row),
        f"{row.pairs:,}",
        f"{row.same:,}",
        _percent(row.accuracy.share),
        f"{_percent(low)} to {_percent(high)}",
        f"{row.known.count:,}",
        _percent(row.known.share),
    ]


def _compared(row: "PairedAccuracy") -> list[str]:
    interval = f"{_percent(row.low, '+')} to {_percent(row.high, '+')}" if row.judged else _percent(None)
    return [
        _named(row),
        f"{row.judged:,}",
        _percent(row.a),
        _percent(row.b),
        _percent(row.difference, "+"),
        interval,
        f"{row.only_a:,}",
        f"{row.only_b:,}",
        f"{row.p_mid:.2g}",
        "" if row.p_holm is None else f"{row.p_holm:.2g}",
    ]


def _percent(share: float | None, sign: str = "") -> str:
    return "\N{EN DASH}" if share is None or share != share else f"{100 * share:{sign}.1f}"
