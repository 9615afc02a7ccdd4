"""What a comparison came to: the span at which each network still learns, over seeds."""

from collections.abc import Mapping
from statistics import median
from typing import Any

import msgspec

from elman.laboratory.conduct import Chain, reach
from elman.laboratory.trial import Outcome

Results = Mapping[Chain, list[Outcome]]


class Row(msgspec.Struct, frozen=True):
    """A network and a rule on a task.

    Attributes:
        task, cell, rule: by name.
        first: the shortest span that was tried.
        spans: the longest learnt, for each seed.
        median: of them.
        steps: median of the learning steps at the shortest span, of seeds that learnt it; None: none did.
        error: median at the shortest span.
        parameters: that learn.
        seconds: of processor time, in all.

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


def summarise(results: Results) -> list[Row]:
    """A row for each task, cell and rule, in the order of the chains."""
    groups: dict[tuple[str, str, str], list[list[Outcome]]] = {}
    for chain, outcomes in results.items():
        first = chain.first
        groups.setdefault((first.task, first.cell, first.rule), []).append(outcomes)
    return [_row(*key, chains) for key, chains in groups.items()]


def _row(task: str, cell: str, rule: str, chains: list[list[Outcome]]) -> Row:
    spans = [reach(outcomes) for outcomes in chains]
    first = [outcomes[0] for outcomes in chains]
    learnt = [outcome.steps for outcome in first if outcome.solved]
    return Row(
        task=task,
        cell=cell,
        rule=rule,
        first=first[0].trial.span,
        spans=spans,
        median=median(spans),
        steps=median(learnt) if learnt else None,
        error=median(outcome.error for outcome in first),
        parameters=first[0].parameters,
        seconds=round(sum(outcome.seconds for outcomes in chains for outcome in outcomes), 1),
    )


def table(rows: list[Row]) -> tuple[list[str], list[list[str]]]:
    """Header and cells."""
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
    """For --json: the rows, and every trial without its curves."""
    trials = [
        {
            **msgspec.to_builtins(outcome.trial),
            "solved": outcome.solved,
            "error": outcome.error,
            "steps": outcome.steps,
            "seconds": outcome.seconds,
        }
        for outcomes in results.values()
        for outcome in outcomes
    ]
    return {"rows": msgspec.to_builtins(summarise(results)), "trials": trials}
