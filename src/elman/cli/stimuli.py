"""Runs on the sentences of a table, by item and condition: comparisons of runs, and the items of `score`."""

import re
from collections.abc import Collection, Sequence
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from elman.cli import progress, show, texts
from elman.data.minimal_pairs import NAMES
from elman.data.stimuli import Stimulus, of_known_items, read_table, unknown_by
from elman.data.tables import in_one_form
from elman.errors import UserError, counted, notice

if TYPE_CHECKING:
    from elman.evaluation.paired import PairedItems
    from elman.evaluation.scoring import Treatment
    from elman.tasks.text.comparison import Words
    from elman.tasks.text.model import TextModel

_HEADER = ["condition", "items", "sentences", "bits, A", "bits, B", "A - B", "95 % interval", "p", "p, Holm"]

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"  # the names of runs that are compared


def compare_on_stimuli(
    runs: "Sequence[TextModel]",
    stimuli: Path,
    column: str,
    treatment: "Treatment",
    types: int | None,
    *,
    whole: bool,
    as_json: bool,
) -> None:
    """Print paired tests of runs on the surprisal of the sentences in a column of a table, each run with each.

    Where `whole`, items are left out of which a sentence has an unknown word.
    """
    from elman.evaluation.paired import adjusted, compare_items
    from elman.tasks.text.comparison import read_sentences, shared

    table = read_table(texts.read_text(str(stimuli)), str(stimuli), column)
    sentences = [one.text for one in table]
    ends = all(run.options.eos != "none" for run in runs)
    if not ends and any(run.options.eos != "none" for run in runs):
        notice(
            f"only some of {', '.join(LETTERS[: len(runs)])} predict the end of a sentence, so that it is not compared"
        )
    found = [read_sentences(run, sentences, advance, ends=ends) for run, advance in progress.scoring(runs)]
    read_alike = alike = _read_alike(found, sentences)
    strange = np.sum([one.unknown for one in found], axis=0)
    if whole:
        lacking = [["unknown"] * int(strange[row]) for row in alike]
        alike = [alike[index] for index in kept_items([table[row] for row in alike], lacking)]
    both = shared([one.at(alike) for one in found], treatment, types)
    rows = [index for index, ok in zip(alike, both.kept, strict=True) if ok]

    by_item, by_condition = item_column(table[0]), condition_column(table[0])
    items = [str(row) if by_item is None else table[row].carried[by_item] for row in rows]
    conditions = ["all" if by_condition is None else table[row].carried[by_condition] for row in rows]
    if len(set(items)) < 2:
        raise UserError(
            f"{stimuli}: {len(set(items))} items can be compared, and a paired test needs 2 or more; of"
            f" {len(sentences):,} sentences {both.left_out:,} have words unknown to a run, which --unknown spread keeps"
        )
    pairs = list(combinations(range(len(runs)), 2))
    scores = both.log_probs
    if never := int(np.isinf(scores).any(axis=0).sum()):
        place = f"{stimuli}: of {counted(len(rows), 'sentence')} {never:,} have the probability 0 under a run"
        raise UserError(f"{place}, so that no difference has a mean; leave them out")
    compared = adjusted((compare_items(scores[a], scores[b], items, conditions) for a, b in pairs), "p_value")
    some = int((strange[alike] > 0).sum())
    have = f"{some:,} of {counted(len(alike), 'sentence')} have some"
    how = {
        "score": f"{have}, scored as <unk>, which is the same event for all",
        "exclude": f"{both.left_out:,} sentences with words unknown to a run are left out for all",
        "spread": f"{have}, and the probability of <unk> is shared by the unknown types",
    }
    if len(runs) == 2:
        how = {name: text.replace("for all", "for both") for name, text in how.items()}
    notes = [
        "Items: every sentence is one, since no column is called item."
        if by_item is None
        else f"Items: from the column {by_item}; the sentences of one are averaged.",
        "Surprisal of a sentence in bits; paired t test by item, two-sided; Holm: adjusted for the conditions"
        f"{' of all comparisons' if len(pairs) > 1 else ''}.",
        f"Unknown words: {how[treatment]}.",
    ]
    facts = {
        "stimuli": str(stimuli),
        "sentences": len(sentences),
        "read_differently": len(sentences) - len(read_alike),
        "unknown": treatment,
        "left_out": both.left_out,
        **({"excluded": len(read_alike) - len(alike)} if whole else {}),
        "item_column": by_item,
        "condition_column": by_condition,
    }
    lines = [one if len(one) > 2 else one[-1:] for one in compared]
    print_compared(
        runs,
        f"{stimuli}",
        _HEADER,
        facts,
        "conditions",
        compared,
        [list(map(_cells, one)) for one in lines],
        [show.better(one[-1].low, one[-1].high) for one in compared],
        notes,
        as_json=as_json,
    )


def print_compared(
    runs: "Sequence[TextModel]",
    what: str,
    header: list[str],
    facts: dict[str, Any],
    part: str,
    compared: Sequence[Sequence[msgspec.Struct]],
    cells: Sequence[Sequence[list[str]]],
    verdicts: Sequence[str],
    notes: list[str],
    *,
    as_json: bool,
) -> None:
    """Print what `compared` says of each two runs, in the order of `combinations`: of two a table, of more one, too."""
    pairs = list(combinations(range(len(runs)), 2))
    names = [str(run.path) for run in runs]
    named = ", ".join(f"{letter} = {name}" for letter, name in zip(LETTERS, names, strict=False))
    if len(pairs) == 1:
        found = {"a": names[0], "b": names[1], **facts, part: msgspec.to_builtins(compared[0])}
        show.print_result(as_json, found, (f"{named}, {what}: {verdicts[0]}", header, list(cells[0])), notes=notes)
        return
    found = {
        "runs": names,
        **facts,
        "comparisons": [
            {"a": names[a], "b": names[b], part: msgspec.to_builtins(lines)}
            for (a, b), lines in zip(pairs, compared, strict=True)
        ],
    }
    places = {"A": "first", "B": "second"}
    heads = [re.sub(r"\b[AB]\b", lambda found: places[found[0]], one) for one in header]
    rows = [[f"{LETTERS[a]}, {LETTERS[b]}", *row] for (a, b), lines in zip(pairs, cells, strict=True) for row in lines]
    table = (f"{named}, {what}", ["runs", *heads], rows)
    show.print_result(as_json, found, table, notes=notes)


def item_column(row: Stimulus) -> str | None:
    """The column of a table that names its items."""
    return _column(row, NAMES["item"])


def condition_column(row: Stimulus) -> str | None:
    """The column of a table that names its conditions."""
    return _column(row, ("condition",))


def kept_items(table: Sequence[Stimulus], lacking: Sequence[Collection[str]]) -> list[int]:
    """The numbers of the sentences whose items have no unknown word; without a column of items each is one."""
    column = item_column(table[0])
    items = [str(at) if column is None else row.carried[column] for at, row in enumerate(table)]
    kept = of_known_items(items, lacking)
    show.say_excluded("exclude-items", len(table) - len(kept), len(table), "sentence")
    return kept


def say_unknown(table: Sequence[Stimulus], lacking: Sequence[Collection[str]]) -> None:
    """Say on standard error which words are unknown in each condition of a table that has a column of conditions."""
    if table and (column := condition_column(table[0])) is not None:
        for one in unknown_by([row.carried[column] for row in table], lacking):
            if one.strange:
                notice(f"condition {one.line()}")


def _column(row: Stimulus, names: Sequence[str]) -> str | None:
    """The column of a table that has one of some names, the first of which counts most; None where none has."""
    found = {in_one_form(heading): heading for heading in reversed(row.carried)}
    return next((found[name] for name in names if name in found), None)


def _read_alike(found: "Sequence[Words]", sentences: Sequence[str]) -> list[int]:
    """The numbers of the sentences that all runs read as the same; raises UserError where these are too few."""
    ways = [[one.words[index][:2] for one in found] for index in range(len(sentences))]
    alike = [index for index, way in enumerate(ways) if way[0][0] and all(one == way[0] for one in way)]
    if len(alike) < len(sentences):
        other = next(index for index in range(len(sentences)) if index not in set(alike))
        read = [f"{text!r}{' and its end' if ends else ''}" for text, ends in ways[other]]
        named = ", ".join(f"{letter} {text}" for letter, text in zip(LETTERS[1:], read[1:], strict=False))
        line = (
            f"{len(sentences) - len(alike):,} of {len(sentences):,} sentences are left out, which the runs read as"
            f" different symbols, such as {sentences[other]!r}: without blanks A reads {read[0]}, {named}"
        )
        folded = len({(text.lower(), ends) for text, ends in ways[other]}) == 1
        advice = "give them in small letters" if folded else "give sentences that all read in the same way"
        if len(alike) < 2:
            raise UserError(f"{line}; {advice}")
        notice(line + (f"; {advice}" if folded else ""))
    return alike


def _cells(row: "PairedItems") -> list[str]:
    return [
        row.condition,
        f"{row.items:,}",
        f"{row.sentences:,}",
        f"{row.a:.2f}",
        f"{row.b:.2f}",
        f"{row.difference:+.3f}",
        "\N{EN DASH}" if row.low is None or row.high is None else f"{row.low:+.3f} to {row.high:+.3f}",
        "\N{EN DASH}" if row.p_value is None else f"{row.p_value:.2g}",
        "" if row.p_holm is None else f"{row.p_holm:.2g}",
    ]
