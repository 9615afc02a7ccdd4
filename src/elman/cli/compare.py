"""elman compare: which of two runs is better on a text, on minimal pairs, on the sentences of a table."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import numpy as np
from cyclopts import Parameter

from elman.cli import progress, show
from elman.cli.groups import Common, SplitOptions, UnknownOptions
from elman.cli.minimal_pairs import PairFiles, compare_on_pairs
from elman.cli.options import RunFolders, given, group, refuse
from elman.cli.stimuli import LETTERS, compare_on_stimuli
from elman.config.text import TextEvaluation
from elman.errors import UserError, counted, notice

if TYPE_CHECKING:
    from elman.evaluation.scoring import Treatment
    from elman.tasks.text.run import TextRun


@group("What is compared", 3)
class MaterialOptions:
    """What the runs are compared on; without any, the words of a split.

    Attributes:
        stimuli: a table (.tsv, .csv) with a header and a sentence per row, independent of each other.
        column: of --stimuli: the column of the sentences (default: text).
    """

    pairs: PairFiles = ()
    stimuli: Annotated[Path | None, Parameter(metavar="TABLE")] = None
    column: str | None = None


def compare(
    runs: RunFolders,
    /,
    *,
    split: SplitOptions = SplitOptions(),
    material: MaterialOptions = MaterialOptions(),
    unknown: UnknownOptions = UnknownOptions(),
    common: Common = Common(),
) -> None:
    """Test which of two runs is better on a text, or of several on minimal pairs or the sentences of a table.

    Of a split: a paired comparison of NLL with its 95 % interval and a two-sided p-value from the means of blocks of
    100 tokens; where vocabularies or tokens differ, of white-space words. With --pairs McNemar's test by phenomenon;
    with --stimuli a paired t test by item, also for each condition. Of more than two runs each is compared with each,
    and Holm's adjustment is for all comparisons.

    Args:
        runs: two run folders, n-gram models (.arpa, .arpa.gz) or models of transformers (hf://NAME or their folders);
            more of them with --pairs and --stimuli
    """
    from elman.tasks.text.ensemble import have_one_vocabulary
    from elman.tasks.text.run import TextRun

    if not 2 <= len(runs) <= len(LETTERS):
        raise UserError(f"{counted(len(runs), 'run')} cannot be compared; name 2 to {len(LETTERS)}")
    models = [common.open_model(path) for path in runs]
    one_vocabulary = have_one_vocabulary(*models)
    unknown.check()
    if unknown.unknown == "score" and not one_vocabulary and not material.pairs:
        raise UserError(
            "--unknown score: <unk> stands for other words in each of two vocabularies; use exclude or spread"
        )
    treatment = unknown.treatment if one_vocabulary or unknown.unknown else "exclude"
    if material.column is not None and material.stimuli is None:
        raise UserError("--column belongs to --stimuli; add it")
    if material.pairs or material.stimuli is not None:
        if material.pairs and material.stimuli is not None:
            raise UserError("--pairs and --stimuli are two comparisons; leave one of them out")
        own = [name for name in given(split) if getattr(split, name[2:]) != getattr(SplitOptions(), name[2:])]
        refuse(own, "does not belong to --pairs and --stimuli; leave it out")
    if material.pairs:
        unknown.check("spread")
        compare_on_pairs(models, material.pairs, unknown.left_out, as_json=common.as_json)
        return
    if material.stimuli is not None:
        column = material.column or "text"
        whole = unknown.unknown == "exclude-items"
        types = unknown.unknown_types
        compare_on_stimuli(models, material.stimuli, column, treatment, types, whole=whole, as_json=common.as_json)
        return
    unknown.check("exclude-items")
    own_runs = [model for model in models if isinstance(model, TextRun)]
    if len(own_runs) < len(models):
        raise UserError("other models than runs of elman are compared on --pairs or --stimuli; add one of them")
    if len(models) > 2:
        raise UserError(f"{len(models)} runs are compared on --pairs or --stimuli; add one of them, or name two runs")
    if one_vocabulary and unknown.unknown is None:
        _by_token(own_runs, split, common)
    else:
        _by_word(own_runs, split, treatment, unknown.unknown_types, common)


def _by_token(runs: "list[TextRun]", split: SplitOptions, common: Common) -> None:
    from elman.tasks.text.ensemble import run_log_probs

    corpus = runs[0].corpus(split.data)
    split.say_others(runs)
    split.say_part(runs[0])
    chosen = next((one for one in runs if one.reads_spelling), runs[0]).split(corpus, split.split)
    rules = TextEvaluation(streams=split.streams)
    found = [run_log_probs(run, chosen, rules, advance) for run, advance in progress.scoring(runs)]
    _print(runs, split, found, "token", {}, common)


def _by_word(
    runs: "list[TextRun]", split: SplitOptions, treatment: "Treatment", types: int | None, common: Common
) -> None:
    from elman.tasks.text.comparison import read_words, require_same_words, shared, without_open_end
    from elman.tasks.text.model import sections_of

    sections = sections_of(runs[0].source if split.data is None else split.data, split.split, runs[0].options)
    split.say_others(runs)
    split.say_part(runs[0])
    found = [read_words(run, sections, split.streams, advance) for run, advance in progress.scoring(runs)]
    first, second = without_open_end(*found)
    if len(first.words) < len(found[0].words):
        last = found[0].words[-1].text
        notice(f"the last word, {last!r}, is left out for both: only one of the runs predicts a line end after it")
    require_same_words(first, second, (str(runs[0].path), str(runs[1].path)))
    a_ends, b_ends = (int(one.line_ends.sum()) for one in (first, second))
    if a_ends != b_ends:
        notice(f"A predicts {a_ends:,} line ends and B {b_ends:,}: blank lines count for one of them")
    both = shared((first, second), treatment, types)
    facts = {"unknown": treatment, "left_out": both.left_out, "unknown_types": [types or one.types for one in found]}
    _print(runs, split, both.log_probs, "word", facts, common)


def _print(
    runs: "list[TextRun]",
    split: SplitOptions,
    log_probs: Sequence[np.ndarray],
    unit: str,
    more: dict[str, Any],
    common: Common,
) -> None:
    from elman.evaluation.statistics import compare

    if (count := len(log_probs[0])) < 20:
        raise UserError(f"the {split.split} split has {count} {unit}s to compare, too few; it needs 20 or more")
    found, (a, b) = compare(log_probs[0], log_probs[1]), (run.path for run in runs)
    which = show.better(found.low, found.high)
    rows = [
        [f"NLL(A) - NLL(B), nats per {unit}", f"{found.difference:+.4f}"],
        ["95 % interval", f"{found.low:+.4f} to {found.high:+.4f}"],
        ["p-value", f"{found.p_value:.2g}"],
        ["perplexity(A) / perplexity(B)", f"{found.ratio:.4g}"],
        [f"{unit}s that B predicts better", f"{100 * found.better:.1f} %"],
        [f"{unit}s", f"{found.tokens:,}"],
    ]
    facts = {"a": str(a), "b": str(b), "split": split.split, "unit": unit, **msgspec.to_builtins(found), **more}
    title = (f"A = {a}, B = {b}, {split.split}: {which}", ["", "value"], rows)
    notes = []
    if more:
        types = "{:,} unknown types of A, {:,} of B".format(*more["unknown_types"])
        how = {
            "exclude": f"{more['left_out']:,} words unknown to a run are left out for both",
            "score": "scored as <unk>, which is the same event for both",
            "spread": f"the probability of <unk> is shared by {types}",
        }
        notes = [
            f"Compared are white-space {unit}s with the end of their line, the sums over their tokens.",
            f"Unknown words: {how[more['unknown']]}.",
        ]
    show.print_result(common.as_json, facts, title, notes=notes)
