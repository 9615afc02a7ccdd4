"""The figures of a report: results beside baselines and published numbers, several runs side by side."""

import dataclasses
import math
from collections.abc import Sequence

from elman.report.comparison import Group, Spread, against, published, spread
from elman.report.folder import RunFolder
from elman.report.metrics import Result


@dataclasses.dataclass(frozen=True)
class Row:
    """A row of the results: perplexities (of music NLLs), for the test split (else valid) more; `kind` is its style."""

    name: str
    kind: str
    valid: float | None = None
    test: float | None = None
    bits_per_token: float | None = None
    bits_per_character: float | None = None
    accuracy: float | None = None
    parameters: int | None = None


@dataclasses.dataclass(frozen=True)
class Outcome:
    """A run in the table of several."""

    label: str
    series: int
    run: RunFolder
    valid: float | None
    test: float | None


@dataclasses.dataclass(frozen=True)
class Tally:
    """A group in the table of several: its outcomes and, over them, the spread of the losses."""

    label: str
    outcomes: tuple[Outcome, ...]
    valid: Spread | None
    test: Spread | None
    seconds: Spread | None


def valid_loss(run: RunFolder) -> float | None:
    """As evaluated after training, else the best one met during training."""
    result, best = run.result("valid"), run.metrics.best
    if result is not None:
        return run.measure.of(result.perplexity)
    return run.measure.of(best.perplexity) if best is not None else None


def test_loss(run: RunFolder) -> float | None:
    """As evaluated after training."""
    result = run.result("test")
    return run.measure.of(result.perplexity) if result is not None else None


def result_rows(run: RunFolder) -> list[Row]:
    """Baselines, the network, and what the recipe expects, the worst baseline first."""
    rows = [_evaluated(run, name, "baseline", _of(run.baselines, name)) for name in _names(run.baselines)]
    rows.sort(key=lambda row: -(row.test or row.valid or math.inf))
    ways = dict.fromkeys((result.method, result.model) for result in run.results)
    for method, model in ways:
        results = [result for result in run.results if (result.method, result.model) == (method, model)]
        rows.append(_evaluated(run, _called(method, model), "network", results, run.parameters))
    if not ways and run.metrics.best is not None:
        name = "this network, while training"
        rows.append(Row(name, "network", valid=run.measure.of(run.metrics.best.perplexity), parameters=run.parameters))
    expected = run.recipe.expected
    if expected:
        rows.append(
            Row(
                f"published: {expected.source}",
                "published",
                valid=published(run, "valid"),
                test=published(run, "test"),
                parameters=expected.parameters,
            )
        )
    return rows


def tallies(groups: Sequence[Group], labels: dict[int, str], series: dict[int, int]) -> list[Tally]:
    """The groups with their runs' figures; `labels` and `series` are by the identity of a run."""
    return [
        Tally(
            group.label,
            tuple(
                Outcome(labels[id(run)], series[id(run)], run, valid_loss(run), test_loss(run)) for run in group.runs
            ),
            spread(map(valid_loss, group.runs)),
            spread(map(test_loss, group.runs)),
            spread(run.metrics.seconds for run in group.runs),
        )
        for group in groups
    ]


def ranking(tallies: Sequence[Tally]) -> str:
    """Which group is best, on test text if all were evaluated on it, and by how much."""
    name = tallies[0].outcomes[0].run.measure.name
    split = "test" if all(tally.test for tally in tallies) else "validation"
    spreads = [(tally.test if split == "test" else tally.valid, tally.label) for tally in tallies]
    known = sorted(((value, label) for value, label in spreads if value), key=lambda pair: pair[0].mean)
    if not known:
        return "No figures yet: the runs have not been validated."
    best, label = known[0]
    deviation = "" if best.deviation is None else f" ± {best.deviation:.2f}"
    times = f" over {best.count} runs" if best.count > 1 else ""
    said = f"{label}: {split} {name} {best.mean:.2f}{deviation}{times}"
    if len(known) == 1:
        return f"{said}."
    second, other = known[1]
    return f"Lowest is {said}, {against(best.mean, second.mean)} the next, {other}."


def widest(rows: Sequence[Row]) -> float:
    """The loss that a full bar stands for."""
    return max((row.test or row.valid or 0.0 for row in rows), default=0.0)


def _evaluated(run: RunFolder, name: str, kind: str, results: Sequence[Result], parameters: int | None = None) -> Row:
    by_split = {result.split: result for result in results}
    valid, test = by_split.get("valid"), by_split.get("test")
    told = test or valid
    return Row(
        name,
        kind,
        valid=run.measure.of(valid.perplexity) if valid else None,
        test=run.measure.of(test.perplexity) if test else None,
        bits_per_token=told.bits_per_token if told else None,
        bits_per_character=told.bits_per_character if told else None,
        accuracy=told.accuracy if told else None,
        parameters=parameters,
    )


def _names(rows: Sequence[Result]) -> list[str]:
    return list(dict.fromkeys(row.name for row in rows if row.name))


def _of(rows: Sequence[Result], name: str) -> list[Result]:
    return [row for row in rows if row.name == name]


def _called(method: str, model: str) -> str:
    parts = [part for part in (method, f"{model} model") if part not in ("static", "best model")]
    return "this network" + (f", {', '.join(parts)}" if parts else "")
