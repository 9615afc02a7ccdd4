"""The summary of a comparison: the longest span that each network learns, over seeds."""

from collections.abc import Mapping
from statistics import median
from typing import Any

import msgspec

from elman.laboratory.conduct import Chain, reach
from elman.laboratory.trial import TrialResult

Results = Mapping[Chain, list[TrialResult]]


class Summary(msgspec.Struct, frozen=True):
    """A network and a rule on a task, over seeds.

    `spans` are the longest learnt, by seed, and `median` is theirs; `first` is the shortest. `steps` and `error` are
    medians at the shortest span, `steps` over the seeds that learnt it. `seconds` is processor time in total.
    """

    task: str
    cell: str
    rule: str
    first: int
    spans: list[int]
    median: float
    steps: float | None
    error: float
    parameters: int
    seconds: float


def summarise(results: Results) -> list[Summary]:
    """One summary per task, cell and rule, in the order of the chains."""
    groups: dict[tuple[str, str, str], list[list[TrialResult]]] = {}
    for chain, outcomes in results.items():
        first = chain.first
        groups.setdefault((first.task, first.cell, first.rule), []).append(outcomes)
    return [
        Summary(
            task=task,
            cell=cell,
            rule=rule,
            first=chains[0][0].trial.span,
            spans=(spans := [reach(trials) for trials in chains]),
            median=median(spans),
            steps=median(learnt) if (learnt := [first.steps for first, *_ in chains if first.solved]) else None,
            error=median(first.error for first, *_ in chains),
            parameters=chains[0][0].parameters,
            seconds=round(sum(trial.seconds for trials in chains for trial in trials), 1),
        )
        for (task, cell, rule), chains in groups.items()
    ]


def table(rows: list[Summary]) -> tuple[list[str], list[list[str]]]:
    """Header and rows."""
    header = ["task", "cell", "rule", "span learnt", "by seed", "steps at first", "error at first", "weights", "CPU s"]
    body = [
        [
            row.task,
            row.cell,
            row.rule,
            f"{row.median:g}" if row.median else "none",
            ", ".join(str(span) if span else "none" for span in row.spans),
            "" if row.steps is None else f"{row.steps:g}",
            f"{row.error:.3g}",
            f"{row.parameters:,}",
            f"{row.seconds:,.0f}",
        ]
        for row in rows
    ]
    return header, body


def to_builtins(results: Results) -> dict[str, Any]:
    """The summaries, and every trial without its curves, for --json."""
    trials = [
        msgspec.to_builtins(found.trial)
        | {"solved": found.solved, "error": found.error, "steps": found.steps, "seconds": found.seconds}
        for chain in results.values()
        for found in chain
    ]
    return {"rows": msgspec.to_builtins(summarise(results)), "trials": trials}
