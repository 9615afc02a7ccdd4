"""elman reproduce."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from elman.cli import progress, show
from elman.cli.options import Common, DataSource, Positive
from elman.errors import UserError

if TYPE_CHECKING:
    from elman.reproduce.conduct import Reproduction


def reproduce(
    name: str,
    /,
    *,
    scale: str = "small",
    quick: bool = False,
    data: DataSource = None,
    out: Annotated[Path, Parameter(metavar="FOLDER")] = Path("runs/reproduce"),
    seeds: Positive | None = None,
    jobs: Positive = 1,
    resume: bool = False,
    common: Common = Common(),
) -> int:
    """Train, measure and judge what the papers claim.

    Published claims as experiments: trains what one needs, measures it, and judges the claim by the figures. Runs are
    kept in OUT by their content, so that no run is trained twice; after an interruption the same command continues. The
    last line is NAME: holds, NAME: does not hold, or NAME: undecided (needs N seeds).

    Args:
        name: an experiment, `all`, or `list` to see them
        scale: quick (indicative, one seed), small (minutes per run on two cores) or paper
        quick: the same as --scale quick
        data: a corpus for every run (default: Shakespeare at the scale small)
        out: the folder of runs and reports
        seeds: seeds 1 to N (default: as the experiment plans)
        jobs: runs trained in parallel
        resume: continue in OUT, which must exist
    """
    if name == "list":
        return _list(common.as_json)
    from elman.reproduce.arm import scale_of
    from elman.reproduce.claims import choose
    from elman.reproduce.conduct import conduct, plan, record, total_minutes
    from elman.reproduce.runs import Store
    from elman.reproduce.training import Machine as Pool
    from elman.reproduce.training import Stopped

    if quick and scale == "paper":
        raise UserError("--quick --scale paper: choose one of them")
    claims, chosen = choose(name), scale_of("quick" if quick else scale)
    if resume and not out.is_dir():
        raise UserError(f"--resume: there is no folder {out}; leave --resume out to begin")
    common.use()
    console, store, pool = progress.log(), Store(out, data), Pool(jobs, common.device, common.threads)
    if len(claims) > 1:
        for claim in (claim for claim in claims if claim.data is not None):
            console.print(f"{claim.name}: left out of `all`; it needs --data of its own: {claim.data}")
        claims = [claim for claim in claims if claim.has(chosen) and claim.data is None]
    outcomes = []
    try:
        plans = []
        for claim in claims:
            plans.append(plan(claim, store, chosen, seeds, pool))
            seeded, every = plans[-1].seeds, sum(map(len, plans[-1].runs.values()))
            console.print(
                f"{claim.name}, {plans[-1].scale} scale, seeds {seeded[0]} to {seeded[-1]}: {every} runs,"
                f" {len(plans[-1].waiting)} to train"
            )
        console.print(f"planned: {_minutes(total_minutes(plans, pool))} in all, {jobs} in parallel")
        for planned in plans:
            outcomes.append(conduct(planned, store, pool, console.print))
            if not common.as_json:
                _print(outcomes[-1])
    except Stopped:
        console.print("stopped and saved; the same command continues")
        return 130
    if common.as_json:
        records = [record(outcome) for outcome in outcomes]
        show.print_json(records[0] if len(records) == 1 else records)
    return 0


def _minutes(minutes: float) -> str:
    if minutes < 1.5:
        return "about a minute or less"
    if minutes < 120:
        return f"about {minutes:.0f} minutes"
    return f"about {minutes / 60:,.0f} hours" if minutes < 72 * 60 else f"about {minutes / 1440:,.0f} days"


def _print(outcome: "Reproduction") -> None:
    from elman.reproduce.page import table

    claim = outcome.plan.claim
    header, rows = table(claim, outcome.measurements)
    show.print_table(f"{claim.sentence} ({claim.source})", header, rows)
    for verdict in outcome.verdicts:
        print(f"{verdict.statement}: {verdict.line}")
        print(f"  {verdict.figures}")
    print(f"report: {outcome.page}")
    print(outcome.line)


def _list(as_json: bool) -> int:
    from elman.reproduce.arm import SCALES
    from elman.reproduce.claims import CLAIMS
    from elman.reproduce.conduct import nominal_minutes

    facts, notes = [], []
    for claim in CLAIMS.values():
        minutes = {scale: nominal_minutes(claim, scale) for scale in SCALES if claim.has(scale)}
        facts.append(
            {
                "name": claim.name,
                "claim": claim.sentence,
                "source": claim.source,
                "minutes": minutes,
                "arms": [arm.label for arm in claim.arms],
                "seeds": claim.num_seeds("small"),
            }
        )
        times = ", ".join(f"{scale} {_minutes(length)}" for scale, length in minutes.items())
        arms, seeds = len(claim.arms), claim.num_seeds("small")
        runs = f"{arms} arms x {seeds} seeds = {arms * seeds} runs"
        notes += [claim.name, f"  {claim.sentence}", f"  {claim.source}"]
        notes.append(f"  {runs}; on one thread, untrained: {times}")
        if claim.data is not None:
            notes.append(f"  needs --data: {claim.data}")
    show.print_result(as_json, facts, notes=notes)
    return 0
