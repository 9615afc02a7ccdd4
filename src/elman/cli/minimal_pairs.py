"""elman minimal-pairs: which sentence of a minimal pair is more probable."""

from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from elman.cli import progress, show
from elman.cli.options import AsUnk, Common, RunFolders

if TYPE_CHECKING:
    from elman.data.minimal_pairs import Pair
    from elman.evaluation.minimal_pairs import PairAccuracy
    from elman.tasks.text.run import TextRun

_HEADER = ["phenomenon", "pairs", "only unknown differ", "accuracy, %", "95 % interval", "no unknown", "accuracy, %"]


def minimal_pairs(
    runs: RunFolders,
    /,
    *,
    pairs: Annotated[tuple[str, ...], Parameter(consume_multiple=1, metavar="FILE")],
    unknown_as_unk: AsUnk = False,
    common: Common = Common(),
) -> None:
    """Judge which sentence of a minimal pair is more probable.

    The share of pairs whose acceptable sentence is more probable, by phenomenon, with 95 % intervals.

    Args:
        pairs: BLiMP's .jsonl, Linzen's .text with .gold, .tsv of good TAB bad [TAB phenomenon], folders of them, or
            the known set blimp
    """
    from elman.data.minimal_pairs import read_pairs
    from elman.evaluation.minimal_pairs import by_field

    read = read_pairs(pairs)
    found: list[dict[str, Any]] = []
    tables: list[show.Table] = []
    for folder in runs:
        rows = _judge(common.open_text(folder), read, unknown_as_unk)
        fields = by_field(rows)
        facts = {"phenomena": [row.facts() for row in rows], "fields": [row.facts() for row in fields]}
        found.append({"run": str(folder), **facts})
        if fields:
            tables.append((f"{folder}: minimal pairs by field", _HEADER, [_cells(row) for row in fields]))
        tables.append((f"{folder}: minimal pairs", _HEADER, [_cells(row) for row in rows]))
    show.print_result(common.as_json, found[0] if len(found) == 1 else found, *tables)


def _judge(run: "TextRun", pairs: "list[Pair]", unknown_as_unk: bool) -> "list[PairAccuracy]":
    from elman.data.text.sentences import Lexicon
    from elman.evaluation.minimal_pairs import code, judge_pairs, sentence_log_probs

    lexicon = Lexicon(run.vocabulary) if run.reads_spelling and not unknown_as_unk else None
    coded = code(pairs, run.vocabulary, run.tokeniser, lexicon)
    model = run.model if lexicon is None else run.model.knowing(lexicon.words)
    with progress.counting(f"scoring pairs by {run.path}") as advance:
        return judge_pairs(coded, lambda ids, read: sentence_log_probs(model, ids, run.first, advance, read))


def _cells(row: "PairAccuracy") -> list[str]:
    low, high = row.accuracy.interval
    return [
        f"{row.field}: {row.phenomenon}" if row.field else row.phenomenon,
        f"{row.pairs:,}",
        f"{row.same:,}",
        _percent(row.accuracy.share),
        f"{_percent(low)} to {_percent(high)}",
        f"{row.known.count:,}",
        _percent(row.known.share),
    ]


def _percent(share: float) -> str:
    return "\N{EN DASH}" if share != share else f"{100 * share:.1f}"
