"""elman reproduce."""

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
from cyclopts import Parameter

from elman.cli import progress, show
from elman.cli.groups import Common
from elman.cli.launching import LaunchOptions
from elman.cli.options import DataSource, Tracked, file_to_write, trackers_of_runs, writable
from elman.errors import UserError, command, counted
from elman.files import require_own
from elman.study.runner import Stopped

if TYPE_CHECKING:
    from elman.study.claim import Claim, Scale
    from elman.study.conduct import Reproduction
    from elman.study.store import Plan
    from elman.study.summary import Summary

OUT = Path("runs/reproduce")

READ = {
    "list": ("--scale", "--quick"), "summary": ("--scale", "--quick", "--out", "--into"),
    "published": ("--out", "--into"),
}  # fmt: skip
"""The options that the words read which train nothing."""


def reproduce(
    name: str,
    /,
    *others: str,
    scale: str = "small",
    quick: bool = False,
    data: DataSource = None,
    out: Annotated[Path, Parameter(metavar="FOLDER", validator=writable)] = OUT,
    seeds: str | None = None,
    arm: Annotated[list[str] | None, Parameter(metavar="LABEL")] = None,
    resume: bool = False,
    track: Tracked = None,
    into: Annotated[Path | None, Parameter(metavar="FILE", validator=file_to_write)] = None,
    launching: LaunchOptions = LaunchOptions(),
    common: Common = Common(),
) -> int:
    """Train, measure and judge what the papers claim.

    Published claims as experiments: trains what one needs, measures it, and judges the claim by the figures. Runs are
    kept in OUT by their content, so that no run is trained twice; after an interruption the same command continues. The
    last line begins with NAME: holds, NAME: does not hold, or NAME: undecided; at the scale quick with NAME: indicates.

    `published` lists the published figures of the recipes beside what runs by these recipes reached: the runs that the
    project has trained, and those in OUT.

    Args:
        name: an experiment, `all`, `list` to see them, `summary` of the results in OUT, or `published`
        others: further experiments; the runs of all share the jobs, and verdicts follow when all are trained; behind
            `list` the ones whose arms to see, behind `summary` the ones whose plan, figures and p to see, behind
            `published` words of which recipes must have all in their path, title or source
        scale: quick (indicative, one seed), small (minutes per run on two cores) or paper
        quick: the same as --scale quick
        data: a corpus for every run (default: Shakespeare at the scale small)
        out: the folder of runs and reports; for `published` of runs, which is runs if it is not given
        seeds: N, for seeds 1 to N, or M-N for fresh ones (default: as the experiment plans)
        arm: only this arm of the experiment, and comparisons among those named; may be repeated
        resume: continue in OUT, which must exist
        into: of `summary` and `published`, a Markdown file to write too, such as results/claims.md; of `published` also
            a .json file of records
    """
    given = {
        "--scale": scale != "small", "--quick": quick, "--data": data is not None, "--out": out != OUT,
        "--seeds": seeds is not None, "--arm": bool(arm), "--resume": resume, "--track": track is not None,
        "--into": into is not None, "options for many runs": launching != LaunchOptions(),
    }  # fmt: skip
    read = READ.get(name, {*given} - {"--into"})
    if unread := [option for option, here in given.items() if here and option not in read]:
        raise UserError(f"`elman reproduce {name}` does not read {', '.join(unread)}; leave it out")
    if name == "published":
        return _published(others, OUT.parent if out == OUT else out, into, as_json=common.as_json)
    names = list(dict.fromkeys((name, *others)))
    for word in ("all", "list", "summary"):
        if word in names[1:] or (others and name == word == "all"):
            raise UserError(f"`elman reproduce {word}` takes no further names; leave them out")
    if arm and (len(names) > 1 or name == "all"):
        raise UserError(f"--arm belongs to one experiment, not to `elman reproduce {' '.join(names)}`; leave it out")
    from elman.study.claim import scale_of
    from elman.study.claims import choose
    from elman.study.conduct import batches, conduct, plan, total_minutes, train_together
    from elman.study.runs import Machine as Pool
    from elman.study.store import Store

    asked = None if seeds is None else _seeds(seeds)
    if quick and scale == "paper":
        raise UserError("--quick --scale paper: choose one of them")
    chosen = scale_of("quick" if quick else scale)
    if name == "list":
        return _list([claim for one in others for claim in choose(one)], chosen, common.as_json)
    if name == "summary" and others:
        if into is not None:
            raise UserError("--into writes all claims; leave out the names")
        return _follow([claim for one in others for claim in choose(one)], out, chosen, as_json=common.as_json)
    if name == "summary":
        return _summary(out, chosen, into, as_json=common.as_json)
    claims = [claim.among(arm) if arm else claim for one in names for claim in choose(one)]
    several = name == "all" or len(names) > 1
    if resume and not out.is_dir():
        raise UserError(f"--resume: there is no folder {out}; leave --resume out to begin")
    if common.precision is not None:
        raise UserError("--precision: claims are trained with the precision of their recipes; leave it out")
    common.place()
    require_own(out, "runs", "computed", *(f"{claim.name}.json" for claim in claims))
    console, store = progress.log(), Store(out, data)
    launch = launching.launch(out, common.device)
    pool = Pool(launch, common.device, common.threads, trackers_of_runs(track))
    if name == "all":
        for claim in (claim for claim in claims if claim.data is not None):
            console.print(f"{claim.name}: left out of `all`; it needs --data of its own: {claim.data}")
        claims = [claim for claim in claims if claim.has(chosen) and claim.data is None]
    plans: list[Plan] = []
    outcomes: list[Reproduction] = []
    failed: list[str] = []

    @contextlib.contextmanager
    def attempt(claim: str) -> Iterator[None]:
        """Report an error of one claim of several, so that the next can be tried."""
        try:
            yield
        except UserError as error:
            if not several:
                raise
            console.print(f"{claim}: left out: {error}")
            failed.append(claim)

    try:
        for claim in claims:
            with attempt(claim.name):
                plans.append(made := plan(claim, store, chosen, asked, pool))
                console.print(
                    f"{claim.name}, {made.scale} scale, seeds {made.seeds[0]} to {made.seeds[-1]}:"
                    f" {sum(map(len, made.runs.values()))} runs, {len(made.waiting)} to train"
                )
        console.print(f"planned: {_minutes(total_minutes(plans, pool))} in all, {launch.at_once} in parallel")
        for batch in [plans] if len(names) > 1 else batches(plans, launch.at_once):
            if len(batch) > 1:
                with contextlib.suppress(UserError):  # each claim below reports its own
                    train_together(batch, store, pool, console.print)
            for planned in batch:
                with attempt(planned.claim.name):
                    outcomes.append(conduct(planned, store, pool, console.print))
                    if not common.as_json:
                        _print(outcomes[-1])
    except Stopped:
        console.print("stopped and saved; the same command continues")
        return 130
    if common.as_json:
        records = [msgspec.to_builtins(outcome.record) for outcome in outcomes]
        show.print_json(records if several else records[0])
    if name == "all":
        from elman.study.summary_files import write_index

        console.print(f"summary: {write_index(out, _summary_of(out, chosen))}")
    if failed:
        console.print(f"left out: {', '.join(failed)}")
    return 1 if failed else 0


def _seeds(text: str) -> tuple[int, ...]:
    first, dash, last = text.partition("-")
    if not (first.isdecimal() and (last.isdecimal() or not dash)):
        raise UserError(f"--seeds {text}: write a number N, for seeds 1 to N, or M-N")
    begin, end = (int(first), int(last)) if dash else (1, int(first))
    if begin < 1 or end < begin:
        raise UserError(f"--seeds is {text}; it must be 1 or more" + (", and rise" if dash else ""))
    return tuple(range(begin, end + 1))


def _minutes(minutes: float) -> str:
    if minutes < 1.5:
        return "about a minute or less"
    if minutes < 120:
        return f"about {minutes:.0f} minutes"
    return f"about {minutes / 60:,.0f} hours" if minutes < 72 * 60 else f"about {minutes / 1440:,.0f} days"


def _print(outcome: "Reproduction") -> None:
    from elman.study.figures import table

    claim = outcome.plan.claim
    show.print_table(f"{claim.sentence} ({claim.source})", *table(outcome.record))
    for verdict in outcome.verdicts:
        print(f"{verdict.statement}: {verdict.line}")
        print(f"  {verdict.figures}")
    print(f"report: {outcome.page}")
    print(outcome.record.line)


def _summary_of(out: Path, scale: "Scale") -> "Summary":
    from elman.study.claims import CLAIMS
    from elman.study.summary import summarise

    return summarise(out, list(CLAIMS.values()), scale)


def _summary(out: Path, scale: "Scale", into: Path | None, *, as_json: bool) -> int:
    from elman.study.summary import HEADER
    from elman.study.summary_files import write_index, write_markdown

    found = _summary_of(out, scale)
    pages = [write_index(out, found), *([] if into is None else [write_markdown(into, found)])]
    notes = [found.chance, *(f"summary: {page}" for page in pages), found.tally]
    show.print_result(as_json, found.facts(), (f"Claims at the scale {scale}", HEADER, found.table()), notes=notes)
    return 0


def _follow(claims: "Sequence[Claim]", out: Path, scale: "Scale", *, as_json: bool) -> int:
    """Print of each claim the plan, the figures by seed and every comparison, which they judge again."""
    from elman.study.claim import at_scale
    from elman.study.figures import planning
    from elman.study.record import judged_again, judged_figures, judged_places, read_record, rejudged

    facts = []
    for claim in claims:
        made = rejudged(read_record(out / f"{at_scale(claim.name, scale)}.json"))
        rows, figures, places = judged_again(made, claim), judged_figures(made), judged_places(made)
        plans = [{"digest": one.digest, "written": one.written, "content": one.content} for one in made.plans]
        runs = [run for arm in made.arms.values() for run in arm.runs]
        facts.append(
            {"name": made.name, "verdict": made.verdict, "p": made.p_value, "planned": planning(made), "plans": plans,
             "runs": runs, "figures": figures, "comparisons": msgspec.to_builtins(rows)}
        )  # fmt: skip
        if as_json:
            continue
        kept = [run for run in runs if (out / run).is_dir()]
        used = {getattr(one, part, None) for one in claim.comparisons for part in ("metric", "b_metric", "limit")}
        cells = [
            [label, name, *(f"{seed[name]:.6g}" for seed in seeds)]
            for label, seeds in figures.items()
            for name in seeds[0]
            if name in used or name == made.headline
        ]
        again = [
            [row.statement, row.answer, *("" if p is None else f"{p:.3g}" for p in (row.p, row.p_again)), row.by]
            for row in rows
        ]
        print(f"{claim.sentence} ({claim.source})", *planning(made), *(f"run: {out / run}" for run in kept), sep="\n")
        if made.minutes is not None and not kept:
            print(f"Its runs were not kept; `{command('reproduce', 'list', made.name)}` has commands that train them.")
        show.print_table("Figures", ["arm", "figure", *(f"seed {made.seeds[place]}" for place in places)], cells)
        show.print_table("Comparisons", ["comparison", "answer", "p", "p again", "by"], again)
        print(made.line + ("" if made.p_value is None else f", p = {made.p_value:.3g}"))
    if as_json:
        show.print_json(facts)
    return 0


def _list(named: "Sequence[Claim]", scale: "Scale", as_json: bool) -> int:
    from elman.study.claim import SCALES
    from elman.study.claims import CLAIMS
    from elman.study.conduct import nominal_minutes
    from elman.study.planning import arm_lines

    facts, notes = [], []
    for claim in named or CLAIMS.values():
        minutes = {scale: nominal_minutes(claim, scale) for scale in SCALES if claim.has(scale)}
        seeds = {scale: claim.num_seeds(scale) for scale in minutes}
        facts.append(
            {"name": claim.name, "claim": claim.sentence, "source": claim.source, "minutes": minutes,
             "arms": [arm.label for arm in claim.arms], "seeds": seeds, "data": claim.data}
        )  # fmt: skip
        notes += [claim.name + (" (needs --data)" if claim.data else ""), f"  {claim.sentence}", f"  {claim.source}"]
        notes += [] if claim.data is None else [f"  --data: {claim.data}"]
        arms = counted(len(claim.arms), "arm")
        if named and claim.has(scale):
            facts[-1]["commands"] = lines = arm_lines(claim, scale)
            notes += [f"  {line}" for line in lines]
        notes += [
            f"  {scale}: {arms}, {counted(seeds[scale], 'seed')}, {_minutes(minutes[scale])}" for scale in minutes
        ]
    notes.append("Times are for one thread, with nothing trained; claims share runs.")
    show.print_result(as_json, facts, notes=notes)
    return 0


def _published(words: tuple[str, ...], out: Path, into: Path | None, *, as_json: bool) -> int:
    """List figures and what was reached, of recipes with all of these words; write them `into` a file, too."""
    from elman.study import published

    with progress.counting("reading recipes and runs"):
        known = published.targets(words)
        if not known:
            raise UserError(f"no recipe with a published figure has {' and '.join(words)} in its path, title or source")
        records = published.merged([*published.shipped(), *published.trained_in(out, known)])
        rows = published.rows_of(known, records)
        cells = [[name, *rest] for name, _, *rest in (published.cells(row, brief=True) for row in rows)]
    notes = [published.tally(rows), f"train one: {command('train', known[0].path, '--data', 'FOLDER')}"]
    if into is not None:
        notes.append(f"written: {published.write(into, rows, records)}")
    header = ["recipe", "published valid, test", "ours: valid, test", "training", "verdict"]
    show.print_result(as_json, [row.facts for row in rows], ("Published figures", header, cells), notes=notes)
    return 0
