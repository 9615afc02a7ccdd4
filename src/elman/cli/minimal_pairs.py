"""elman minimal-pairs, and elman compare --pairs: which sentence of a minimal pair is more probable, to which run."""

import io
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

import numpy as np
from cyclopts import Parameter

from elman.cli import progress, show
from elman.cli.accuracy_tables import COMPARED, cells_of_difference, percent, tables_of
from elman.cli.groups import Common, UnknownOptions
from elman.cli.options import AsUnk, RunFolders, file_to_write, refuse
from elman.cli.score_rows import write_tsv
from elman.cli.stimuli import LETTERS, print_compared
from elman.data.minimal_pairs import Pair, pairs_by_file, until_difference
from elman.data.stimuli import of_known_items
from elman.data.suites import read_suite
from elman.errors import counted, notice
from elman.files import write_atomic
from elman.tasks.hub import shown

if TYPE_CHECKING:
    from elman.evaluation.minimal_pairs import CodedPair, PairAccuracy
    from elman.evaluation.statistics import Floats
    from elman.tasks.text.model import TextModel
    from elman.tasks.text.suites import Judged, JudgedSuite

PairFiles = Annotated[
    tuple[str, ...],
    Parameter(
        consume_multiple=1,
        metavar="FILE",
        help="BLiMP's .jsonl, Linzen's .text with .gold, suites of SyntaxGym (.json), templates (.toml), the"
        " .agreement.tsv of generated sentences, tables (.tsv, .csv) with a header (good, bad, phenomenon, item and"
        " others) or of good TAB bad [TAB phenomenon], folders of them, or the known set blimp",
    ),
]

_PREDICTIONS = ["prediction", "items", "accuracy, %", "95 % interval", "no unknown", "accuracy, %"]


def minimal_pairs(
    runs: RunFolders,
    /,
    *,
    pairs: PairFiles,
    by: Annotated[tuple[Literal["sentence", "word"], ...], Parameter(consume_multiple=1)] = ("sentence",),
    items: Annotated[Path | None, Parameter(metavar="FILE", validator=file_to_write)] = None,
    unknown_as_unk: AsUnk = False,
    unknown: UnknownOptions = UnknownOptions(),
    common: Common = Common(),
) -> None:
    """Judge which sentence of a minimal pair is more probable.

    The share of pairs whose acceptable sentence is more probable, by phenomenon, with 95 % intervals. Of a suite of
    SyntaxGym the share of items of which each prediction holds, and the mean surprisal of each region by condition.

    Args:
        runs: runs on text, n-gram models (.arpa, .arpa.gz), or models of transformers: hf://NAME or their folders
        by: what is compared: whole sentences, or both up to the first word in which they differ; or each of them
        items: also write a table (.tsv) with a row per run and pair: log-probabilities (natural), their difference,
            whether it is judged correctly, unknown words, and the columns of the file of pairs;
            of suites a row per region, with its surprisal (bits) and which predictions hold for its item
    """
    from elman.evaluation.minimal_pairs import accuracies, by_column, by_field
    from elman.tasks.text.suites import Judged, is_suite, item_rows

    unknown.check("spread")
    left_out = unknown.left_out
    if any(map(is_suite, pairs)):
        refuse(["--by word"] if "word" in by else [], "belongs to pairs; the formulas of a suite name its regions")
        refuse(["--unknown-as-unk"] if unknown_as_unk else [], "belongs to pairs; leave it out")
        _suites(runs, pairs, items, common, left_out)
        return
    located = list(pairs_by_file(pairs))
    read = [pair for _, pair in located]
    cuts = {how: read if how == "sentence" else [until_difference(pair) for pair in read] for how in by}
    every = [
        (shown(folder), how, _judged(model, cuts[how], known_only=unknown_as_unk))
        for folder in runs
        for model in [common.open_model(folder)]
        for how in by
    ]
    kept = _kept(located, [judged.coded for _, _, judged in every], left_out)
    found: list[dict[str, Any]] = []
    tables: list[show.Table] = []
    single: list[dict[str, Any]] = []
    notes: list[str] = []
    ways: dict[str, dict[str, list[PairAccuracy]]] = {}
    for name, how, whole in every:
        cut = [cuts[how][index] for index in kept]
        judged = Judged([whole.coded[index] for index in kept], whole.log_probs[kept])
        rows = accuracies(*judged)
        parts = {"phenomena": rows, "fields": by_field(rows), "columns": by_column(cut, *judged)}
        said = {} if by == ("sentence",) else {"by": how}
        left = {} if left_out is None else {"left_out": len(read) - len(kept)}
        facts = {part: [row.facts() for row in own] for part, own in parts.items()}
        found.append({"run": name, **said, **left, **facts})
        ways[how] = parts
        if how == by[-1]:
            tables += tables_of(name, ways)
        if (strange := rows[-1].strange).strange and how == by[0]:
            notes.append(strange._replace(condition=f"{name}: unknown words in pairs").line())
        if items is not None:
            single += ({**row, **said} for row in item_rows(name, cut, judged))
    _print(found, tables, notes, single, items, common)


def _print(
    found: list[dict[str, Any]],
    tables: list[show.Table],
    notes: list[str],
    single: list[dict[str, Any]],
    items: Path | None,
    common: Common,
) -> None:
    """Write the rows of items, of which some may lack columns, if that is asked for, and print what was found."""
    if items is not None:
        columns, text = dict.fromkeys((key for row in single for key in row), ""), io.StringIO()
        write_tsv(({**columns, **row} for row in single), out=text)
        write_atomic(items, text.getvalue())
        notes.append(f"items: {items}")
    show.print_result(common.as_json, found[0] if len(found) == 1 else found, *tables, notes=notes)


def _kept(pairs: Sequence[tuple[Path, Pair]], coded: "Sequence[Sequence[CodedPair]]", exclude: str | None) -> list[int]:
    """The numbers of the pairs that are judged, under several models; raises UserError where none is left."""
    if exclude is None:
        return list(range(len(pairs)))
    lacking = [[word for one in ways for word in one.unknown] for ways in zip(*coded, strict=True)]
    items = enumerate(pairs) if exclude == "exclude" else [(file, pair.item) for file, pair in pairs]
    kept = of_known_items(list(items), lacking)
    show.say_excluded(exclude, len(pairs) - len(kept), len(pairs), "pair")
    return kept


def _suites(
    runs: tuple[Path, ...],
    names: tuple[str, ...],
    items: Path | None,
    common: Common,
    exclude: str | None,
) -> None:
    """Print the accuracy of the predictions of suites, and the surprisals of their regions by condition."""
    found: list[dict[str, Any]] = []
    tables: list[show.Table] = []
    single: list[dict[str, Any]] = []
    notes: list[str] = []
    judged = _judged_suites([common.open_model(folder) for folder in runs], names)
    for row in judged:
        kept = _kept_items(row, exclude)
        for folder, one in zip(runs, row, strict=True):
            name = shown(folder)
            facts = one.facts(kept)
            found.append({"run": name, **facts})
            cells = [
                [
                    f"{each['prediction']}: {each['formula']}" if each["prediction"] != "all" else each["formula"],
                    f"{each['items']:,}",
                    percent(each["accuracy"]),
                    f"{percent(each['low'])} to {percent(each['high'])}",
                    f"{each['without_unknown_words']:,}",
                    percent(each["accuracy_without_unknown_words"]),
                ]
                for each in facts["predictions"]
            ]
            tables.append((f"{name}: {one.suite.name}", _PREDICTIONS, cells))
            bits = {(each["region"], each["condition"]): each["surprisal"] for each in facts["regions"]}
            regions = [
                [
                    f"{number} {one.suite.names.get(number, '')}".strip(),
                    *(
                        "\N{EN DASH}" if (bit := bits.get((number, condition))) is None else f"{bit:.2f}"
                        for condition in one.suite.conditions
                    ),
                ]
                for number in sorted({number for number, _ in bits})
            ]
            tables.append(("mean surprisal of the regions, bits", ["region", *one.suite.conditions], regions))
            strange = [each for each in one.unknown(kept) if each.strange]
            notes += [f"{name}: {one.suite.name}, {each.line()}" for each in strange]
            single += one.rows(name, kept) if items is not None else ()
    _print(found, tables, notes, single, items, common)


def _judged_suites(models: "Sequence[TextModel]", names: tuple[str, ...]) -> "list[list[JudgedSuite]]":
    """Suites under models, [suites][models]."""
    from elman.tasks.text.suites import judge_suite, suites_of

    found = []
    for suite in [read_suite(path) for path in suites_of(names)]:
        row = []
        for model in models:
            with progress.counting(f"scoring {suite.name} by {model.path}") as advance:
                row.append(judge_suite(model, suite, advance))
        found.append(row)
    return found


def _kept_items(judged: "Sequence[JudgedSuite]", exclude: str | None) -> np.ndarray:
    """Which items of a suite are judged, under several models, [items]."""
    kept: np.ndarray = np.all([one.known for one in judged], axis=0)
    if exclude is None:
        return np.ones_like(kept)
    show.say_excluded(exclude, int((~kept).sum()), len(kept), "item")
    return kept


def compare_on_pairs(
    runs: "Sequence[TextModel]", names: tuple[str, ...], exclude: str | None = None, *, as_json: bool
) -> None:
    """Print McNemar's tests of runs on the minimal pairs of files, or on the predictions of suites, each with each."""
    from elman.evaluation.paired import adjusted, compare_accuracies
    from elman.tasks.text.suites import is_suite

    way = _suites_as_pairs if any(map(is_suite, names)) else _kept_pairs
    read, left_out, scores = way(runs, names, exclude)
    pairs = list(combinations(range(len(runs)), 2))
    compared = adjusted((compare_accuracies(read, scores[a], scores[b]) for a, b in pairs), "p_mid")
    verdicts, notes = list[str](), list[str]()
    for (a, b), rows in zip(pairs, compared, strict=True):
        whole, first, second = rows[-1], LETTERS[a], LETTERS[b]
        better = second if whole.only_b > whole.only_a else first
        verdicts.append(f"{better} is better" if whole.p_mid < 0.05 else "no clear difference")
        of = "" if len(pairs) == 1 else f" {first} and {second}"
        notes.append(f"Exact p of all pairs{of}: {whole.p_exact:.2g}")
        if same := whole.pairs - whole.judged:
            notes.append(
                f"left out for {of.strip() or 'both runs'}: {same:,} of {whole.pairs:,} pairs, whose sentences a run"
                f" reads as the same ({first} {whole.unjudged_a:,}, {second} {whole.unjudged_b:,})"
            )
    many = " of all comparisons" if len(pairs) > 1 else ""
    notes[0] = f"p: McNemar's test, mid-p, two-sided; Holm: adjusted for the number of phenomena{many}. {notes[0]}"
    facts = {"pairs": list(names), **({} if exclude is None else {"left_out": left_out})}
    cells = [[cells_of_difference(row) for row in (rows if len(rows) > 2 else rows[-1:])] for rows in compared]
    print_compared(
        runs,
        "minimal pairs",
        COMPARED,
        facts,
        "phenomena",
        compared,
        cells,
        verdicts,
        notes,
        as_json=as_json,
    )


Compared: TypeAlias = "tuple[list[Pair], int, list[Floats]]"
"""Pairs, how many are left out, and their log-probabilities [n, 2] under each model."""


def _kept_pairs(runs: "Sequence[TextModel]", names: tuple[str, ...], exclude: str | None) -> Compared:
    located = list(pairs_by_file(names))
    read = [pair for _, pair in located]
    judged = [_judged(run, read) for run in runs]
    kept = _kept(located, [one.coded for one in judged], exclude)
    return [read[index] for index in kept], len(read) - len(kept), [one.log_probs[kept] for one in judged]


def _suites_as_pairs(runs: "Sequence[TextModel]", names: tuple[str, ...], exclude: str | None) -> Compared:
    """Each prediction of each item as a pair."""
    pairs, left_out, parts = list["Pair"](), 0, list["list[Floats]"]()
    for row in _judged_suites(runs, names):
        kept = _kept_items(row, exclude)
        left_out += int((~kept).sum())
        own = [one.as_pairs() for one in row]
        places = [index for index in range(len(own[0][0])) if kept[index % len(kept)]]
        pairs += [own[0][0][index] for index in places]
        parts.append([scores[places] for _, scores in own])
    return pairs, left_out, [np.concatenate(each) for each in zip(*parts, strict=True)]


def _judged(run: "TextModel", pairs: list[Pair], *, known_only: bool = False) -> "Judged":
    from elman.tasks.text.suites import judge

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
