"""The record of a reproduction, NAME.json: all that its page and the summary of the claims show but the curves."""

import contextlib
import math
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from elman.errors import UserError, counted
from elman.files import finite, json_text, write_atomic
from elman.formats import read_json, with_nan
from elman.study.claim import Claim, Measurement, Power, Scale
from elman.study.comparison import ByToken, Ratio, Verdict, bounded, together
from elman.study.planning import PlanRecord
from elman.study.runs import PlannedRun
from elman.study.statistics import POWER, Answer, Judgement, judge, spread_text
from elman.study.store import Plan
from elman.study.texts import texts


class FigureRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """A metric of an arm: its values by seed, their mean and sample standard deviation; None: not finite.

    Values of the places `unknown` were never measured, such as a radius that was not logged; others are infinite.
    `shown` are the words of a figure of which the values by seed were not kept.
    """

    mean: float | None
    deviation: float | None
    by_seed: list[float | None]
    unknown: list[int] = []
    shown: str = ""

    @classmethod
    def of(cls, values: Sequence[float]) -> "FigureRecord":
        whole = all(map(math.isfinite, values))
        deviation = statistics.stdev(values) if len(values) > 1 and whole else None
        unknown = [place for place, value in enumerate(values) if math.isnan(value)]
        return cls(statistics.fmean(values) if whole else None, deviation, finite(list(values)), unknown)

    @property
    def values(self) -> list[float]:
        """By seed, infinite where a training diverged and NaN where the figure is unknown."""
        lacking = (math.nan if place in self.unknown else math.inf for place in range(len(self.by_seed)))
        return [other if value is None else value for value, other in zip(self.by_seed, lacking, strict=True)]

    @property
    def words(self) -> str:
        return self.shown or spread_text(self.values)


class TrialRecord(msgspec.Struct, frozen=True):
    """An alternative that was tried for an arm, its loss on the validation text (None: it diverged), and its run."""

    settings: list[str]
    loss: float | None = msgspec.field(name="valid loss")
    run: str
    minutes: float | None


class ArmRecord(msgspec.Struct, frozen=True):
    """An arm: its published figure, every metric, the folders of its runs (relative to the record), their minutes.

    `course` are points of the claim's `course`, means over the seeds; `series`: as in the `Arm`.
    """

    published: str | None
    figures: dict[str, FigureRecord]
    runs: list[str] = []
    minutes: list[float | None] = []
    grid: list[TrialRecord] = []
    course: list[tuple[float, float]] = []
    series: str | None = None


class ComparisonRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A verdict, with its line, as plain values; `judgement` and `by_token` as in `Verdict`."""

    statement: str
    answer: Answer
    line: str
    figures: str
    p_value: float | None = None
    bound: float | None = None
    needs: int | None = None
    judgement: dict[str, Any] | None = None
    by_token: dict[str, Any] | None = None


class ClaimRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A reproduction of a claim at one scale.

    Attributes:
        metrics: the names of the metrics and their descriptions, `headline` the one of the published figures, `cost`
            the one which it is drawn against, if any.
        course: the labels of two curves of which the second is drawn against the first, if any.
        planned: how the number of seeds was planned, `effect` for which (the logarithm of a ratio), if it was.
        verdict: the words after the name in the last line of the command, `answer` what they amount to.
        p_value: of the verdict, None where no test decides it.
        text, published_text: what our figures and the published ones were measured on.
        plans: what was planned when; the fresh seeds of the last plan are judged.
        minutes: of all trainings, trials included; None where nothing was trained.
        versions: of elman, by which the runs were trained.
        processors: the processors and GPUs that trained them.
    """

    name: str
    claim: str
    source: str
    notes: str
    scale: Scale
    seeds: list[int]
    planned: str
    effect: float | None = None
    headline: str
    cost: str | None = None
    course: tuple[str, str] | None = None
    metrics: dict[str, str]
    arms: dict[str, ArmRecord]
    comparisons: list[ComparisonRecord]
    answer: Answer
    verdict: str
    p_value: float | None = None
    text: str = ""
    published_text: str = ""
    plans: list[PlanRecord] = []
    minutes: float | None = None
    versions: list[str] = []
    processors: list[str] = []
    report: str

    @property
    def line(self) -> str:
        return f"{self.name}: {self.verdict}"

    @property
    def training(self) -> dict[str, float]:
        """The minutes of each run and trial by its folder; a run of several arms is in it once."""
        pairs = [pair for arm in self.arms.values() for pair in zip(arm.runs, arm.minutes, strict=True)]
        pairs += [(trial.run, trial.minutes) for arm in self.arms.values() for trial in arm.grid]
        return {folder: minutes for folder, minutes in pairs if minutes is not None}


def record(
    planned: Plan,
    measurements: Mapping[str, Sequence[Measurement]],
    verdicts: Sequence[Verdict],
    verdict: Verdict,
    page: Path,
    plans: Sequence[PlanRecord] = (),
) -> ClaimRecord:
    def named(folder: Path) -> str:
        return (folder.relative_to(page.parent) if folder.is_relative_to(page.parent) else folder).as_posix()

    claim, measure = planned.claim, planned.claim.measure
    trained = {label: [one for one in each if isinstance(one, PlannedRun)] for label, each in planned.runs.items()}
    files = [run.folder / "environment.json" for each in trained.values() for run in each]
    environments = [read_json(path, dict[str, Any]) for path in files if path.is_file()]
    versions = {
        ", commit ".join(str(found[key]) for key in ("elman", "commit") if key in found)
        for found in environments
        if "elman" in found
    }
    arms = {
        arm.label: ArmRecord(
            published=claim.published.get(arm.label),
            figures={
                name: FigureRecord.of([one.figures[name] for one in measurements[arm.label]])
                for name in measure.metrics
            },
            runs=[named(run.folder) for run in trained[arm.label]],
            minutes=[run.minutes for run in trained[arm.label]],
            grid=[
                TrialRecord(list(trial.settings), finite(trial.loss), named(trial.run.folder), trial.run.minutes)
                for trial in planned.trials.get(arm.label, [])
            ],
            course=mean_course(measure.course, measurements[arm.label]),
            series=arm.series,
        )
        for arm in claim.arms
    }
    recipes = [run.recipe for each in trained.values() for run in each]
    published, ours = texts(claim, planned.scale, recipes)
    made = ClaimRecord(
        name=claim.name,
        claim=claim.sentence,
        source=claim.source,
        notes=claim.notes,
        scale=planned.scale,
        seeds=list(planned.seeds),
        planned=how_planned(claim, planned.scale, len(planned.seeds)),
        effect=claim.seeds.effect if isinstance(claim.seeds, Power) else None,
        headline=claim.headline,
        cost=measure.cost,
        course=measure.course,
        metrics=dict(measure.metrics),
        arms=arms,
        comparisons=list(map(_recorded, verdicts)),
        answer=verdict.answer,
        verdict=verdict.line,
        p_value=verdict.whole,
        text=ours,
        published_text=published,
        plans=list(plans),
        versions=sorted(versions),
        processors=sorted({found["processor"] for found in environments if "processor" in found}),
        report=str(page),
    )
    return msgspec.structs.replace(made, minutes=sum(made.training.values()) if any(trained.values()) else None)


def _recorded(verdict: Verdict) -> ComparisonRecord:
    plain = {**finite(msgspec.to_builtins(verdict)), "line": verdict.line, "p_value": verdict.p_value}
    return msgspec.convert(plain, ComparisonRecord)


def rejudged(made: ClaimRecord) -> ClaimRecord:
    """The record with the verdict that today's rule gives for its comparisons (`together`).

    At the scale quick nothing is judged, and the record is returned as it is.
    """
    if made.scale == "quick":
        return made
    verdicts = [bounded(_read(one, len(judged_places(made)))) for one in made.comparisons]
    verdict = together(made.claim, verdicts)
    return msgspec.structs.replace(
        made, comparisons=list(map(_recorded, verdicts)), answer=verdict.answer, verdict=verdict.line,
        p_value=verdict.whole,
    )  # fmt: skip


class Again(msgspec.Struct, frozen=True):
    """A comparison as it was judged, and judged again `by` the figures that were kept; None where there were none."""

    statement: str
    answer: Answer
    p: float | None
    answer_again: Answer | None = None
    p_again: float | None = None
    by: str = ""


def judged_again(made: ClaimRecord, claim: Claim) -> list[Again]:
    """Every comparison by its figures by seed, or a ratio by mean, deviation and number of its logarithms."""
    figures, count = judged_figures(made), len(judged_places(made))
    found = dict[str, Verdict]()
    for comparison in claim.comparisons:
        with contextlib.suppress(KeyError):  # a figure by seed was not kept
            verdict = comparison.verdict(figures)
            found[verdict.statement] = verdict
    intervals = {one.statement: one.interval for one in claim.comparisons if isinstance(one, Ratio)}
    rows = []
    for one in made.comparisons:
        before, again, by = _read(one, count), found.get(one.statement), "figures by seed"
        known = before.judgement
        if again is None and known is not None and one.statement in intervals and math.isfinite(known.deviation):
            spread = known.deviation * math.sqrt((count - 1) / 2)
            alike = [known.mean - spread, known.mean + spread, *[known.mean] * (count - 2)]
            judgement, by = judge(alike, *intervals[one.statement]), "mean, deviation and number"
            again = msgspec.structs.replace(before, answer=judgement.answer, judgement=judgement)
        elif again is None:
            by = "not kept"
        kept, now = bounded(before), None if again is None else bounded(again)
        answer, p_value = (None, None) if now is None else (now.answer, now.p_value)
        rows.append(Again(one.statement, kept.answer, kept.p_value, answer, p_value, by))
    return rows


def judged_places(made: ClaimRecord) -> list[int]:
    """Of the seeds that were judged, among all seeds of the record."""
    fresh = made.plans[-1].fresh if made.plans else made.seeds
    return [place for place, seed in enumerate(made.seeds) if seed in fresh]


def judged_figures(made: ClaimRecord) -> dict[str, list[dict[str, float]]]:
    """Arm -> for each seed that was judged, metric -> value, of the metrics that were kept by seed."""
    return {
        label: [
            {name: one.values[place] for name, one in arm.figures.items() if one.by_seed}
            for place in judged_places(made)
        ]
        for label, arm in made.arms.items()
    }


def _read(one: ComparisonRecord, seeds: int) -> Verdict:
    """The verdict of a stored comparison; what was not finite is NaN, and no difference is judged again."""
    judgement = None
    if one.judgement is not None:
        plain = with_nan({"count": 0 if one.judgement.get("deviation") is None else seeds, **one.judgement})
        lacking = {key: None for key in ("needs", "inside") if one.judgement.get(key) is None}
        judgement = msgspec.convert({**plain, **lacking}, Judgement)
    answer = one.answer if one.answer != "no difference" or judgement is None else judgement.answer
    by_token = None if one.by_token is None else msgspec.convert(one.by_token, ByToken)
    needs = one.needs if judgement is None else judgement.needs
    direction = answer if judgement is None else judgement.direction
    return Verdict(one.statement, answer, one.figures, direction, needs, judgement, by_token)


def how_planned(claim: Claim, scale: Scale, count: int) -> str:
    seeds = counted(count, "seed")
    if count != claim.num_seeds(scale):
        return f"{seeds}, as the command asked; {claim.num_seeds(scale)} are planned."
    if scale == "quick":
        return f"{seeds}: the scale quick only indicates what a claim would show."
    if not isinstance(claim.seeds, Power):
        return f"{seeds}, a number that the claim sets."
    return (
        f"{seeds}, which detect a ratio that is a factor of {math.exp(claim.seeds.effect):.4g} away from the bound of"
        f" its comparison with a power of {100 * POWER:.0f} %, where the logarithms of the ratios by seed deviate by"
        f" {claim.seeds.deviation:.2g}, as they did in a pilot."
    )


def mean_course(names: tuple[str, str] | None, measurements: Sequence[Measurement]) -> list[tuple[float, float]]:
    """Finite means over the seeds, as far as all of them go; none where a measurement does not have both curves."""
    if names is None or any(name not in one.curves for one in measurements for name in names):
        return []
    x, y = (map(statistics.fmean, zip(*(one.curves[name] for one in measurements), strict=False)) for name in names)
    return [point for point in zip(x, y, strict=True) if all(map(math.isfinite, point))]


def write_record(path: Path, made: ClaimRecord) -> None:
    write_atomic(path, json_text(msgspec.to_builtins(made), indent=1) + "\n")


def read_record(path: Path) -> ClaimRecord:
    """The record in a file; raises UserError where it cannot be read as one."""
    try:
        return msgspec.convert(read_json(path), ClaimRecord)
    except msgspec.ValidationError as error:
        cure = "reproduce the claim again, which trains nothing that is trained"
        raise UserError(f"{path}: not the record of a claim, or of another version ({error}); {cure}") from None
