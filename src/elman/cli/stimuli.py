"""elman compare --stimuli: two runs on the sentences of a table, by item and condition."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from elman.cli import progress, show, texts
from elman.cli.options import ExcludeValue
from elman.data.minimal_pairs import NAMES
from elman.data.tables import in_one_form
from elman.errors import UserError, counted, notice

if TYPE_CHECKING:
    from elman.data.stimuli import Stimulus
    from elman.evaluation.paired import PairedItems
    from elman.evaluation.scoring import Treatment
    from elman.tasks.text.comparison import Words
    from elman.tasks.text.model import TextModel

_HEADER = ["condition", "items", "sentences", "bits, A", "bits, B", "A - B", "95 % interval", "p", "p, Holm"]


def compare_on_stimuli(
    runs: "Sequence[TextModel]",
    stimuli: Path,
    column: str,
    treatment: "Treatment",
    types: int | None,
    exclude: ExcludeValue = None,
    *,
    as_json: bool,
) -> None:
    """Print the paired test of two runs on the surprisal of the sentences in a column of a table."""
    from elman.data.stimuli import of_known_items, read_table
    from elman.evaluation.paired import compare_items
    from elman.tasks.text.comparison import shared

    table = read_table(texts.read_text(str(stimuli)), str(stimuli), column)
    sentences = [one.text for one in table]
    ends = all(run.options.eos != "none" for run in runs)
    if not ends and any(run.options.eos != "none" for run in runs):
        notice("only one of A and B predicts the end of a sentence, so that ends are not compared")
    first, second = (_read(run, sentences, ends) for run in runs)
    alike = _read_alike(first, second, sentences)
    by_item = _column(table[0], NAMES["item"])
    by_condition = _column(table[0], ("condition",))
    excluded = 0
    if exclude is not None:
        names = [str(row) if by_item is None else table[row].carried[by_item] for row in alike]
        strange = [["unknown"] * int(first.unknown[row] + second.unknown[row]) for row in alike]
        known = [alike[index] for index in of_known_items(names, strange)]
        excluded = len(alike) - len(known)
        show.say_excluded(excluded, len(alike), "sentence")
        alike = known
    both = shared(first.at(alike), second.at(alike), treatment, types)
    rows = [index for index, ok in zip(alike, both.kept, strict=True) if ok]

    items = [str(row) if by_item is None else table[row].carried[by_item] for row in rows]
    conditions = ["all" if by_condition is None else table[row].carried[by_condition] for row in rows]
    if len(set(items)) < 2:
        raise UserError(
            f"{stimuli}: {len(set(items))} items can be compared, and a paired test needs 2 or more; of"
            f" {len(sentences):,} sentences {both.left_out:,} have words unknown to a run, which --unknown spread keeps"
        )
    compared = compare_items(both.a, both.b, items, conditions)
    whole, (a, b) = compared[-1], (run.path for run in runs)
    facts = {
        "a": str(a),
        "b": str(b),
        "stimuli": str(stimuli),
        "sentences": len(sentences),
        "read_differently": len(sentences) - len(alike),
        "unknown": treatment,
        "left_out": both.left_out,
        **({} if exclude is None else {"excluded": excluded}),
        "item_column": by_item,
        "condition_column": by_condition,
        "conditions": msgspec.to_builtins(compared),
    }
    which = show.better(whole.low, whole.high)
    title = f"A = {a}, B = {b}, {stimuli}: {which}"
    some = int(((first.unknown + second.unknown)[alike] > 0).sum())
    have = f"{some:,} of {counted(len(alike), 'sentence')} have some"
    how = {
        "score": f"{have}, scored as <unk>, which is the same event for both",
        "exclude": f"{both.left_out:,} sentences with words unknown to a run are left out for both",
        "spread": f"{have}, and the probability of <unk> is shared by the unknown types",
    }
    notes = [
        "Items: every sentence is one, since no column is called item."
        if by_item is None
        else f"Items: those of the column {by_item}; the sentences of one are averaged.",
        "Surprisal of a sentence in bits; paired t test by item, two-sided; Holm: adjusted for the conditions.",
        f"Unknown words: {how[treatment]}.",
    ]
    shown = compared if len(compared) > 2 else compared[-1:]
    show.print_result(as_json, facts, (title, _HEADER, [_cells(row) for row in shown]), notes=notes)


def _column(row: "Stimulus", names: Sequence[str]) -> str | None:
    """The column of a table that has one of some names, the first of which counts most; None where none has."""
    found = {in_one_form(heading): heading for heading in reversed(row.carried)}
    return next((found[name] for name in names if name in found), None)


def _read(run: "TextModel", sentences: Sequence[str], ends: bool) -> "Words":
    from elman.tasks.text.comparison import read_sentences

    with progress.counting(f"scoring by {run.path}") as advance:
        return read_sentences(run, sentences, advance, ends=ends)


def _read_alike(first: "Words", second: "Words", sentences: Sequence[str]) -> list[int]:
    """The numbers of the sentences that both runs read as the same; raises UserError where these are too few."""
    a, b = first.words, second.words
    alike = [index for index in range(len(sentences)) if a[index].text and a[index][:2] == b[index][:2]]
    if len(alike) < len(sentences):
        other = next(index for index in range(len(sentences)) if index not in set(alike))
        read = (f"{one[other].text!r}{' and its end' if one[other].ends else ''}" for one in (a, b))
        line = (
            f"{len(sentences) - len(alike):,} of {len(sentences):,} sentences are other symbols to each run and are"
            f" left out, such as {sentences[other]!r}: A reads {', B '.join(read)}"
        )
        if len(alike) < 2:
            raise UserError(f"{line}; give sentences that both read in the same way")
        notice(line)
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
