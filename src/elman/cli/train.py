"""elman train."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from elman.cli import measures, options, show, watchers
from elman.errors import UserError

if TYPE_CHECKING:
    import torch

    from elman.config.recipe import Recipe
    from elman.tasks.experiment import Experiment


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """The command's arguments."""
    parser = commands.add_parser(
        "train",
        help="train a model from a recipe",
        description="Train a model. The run folder holds everything: recipe, vocabulary, checkpoints, metrics, results,"
        " report. Ctrl-C and SIGTERM finish the step and save; --resume --out RUN goes on bit for bit.",
    )
    parser.add_argument(
        "recipe",
        nargs="?",
        type=Path,
        metavar="RECIPE",
        help="a TOML recipe (`elman recipes`); with --resume that of the run",
    )
    parser.add_argument(
        "--data",
        metavar="DATA",
        help="a folder with train.txt, valid.txt and test.txt, one text file, or a known corpus (`elman data list`);"
        " for music an .npz file of piano rolls or a folder with train, valid and test of MIDI files;"
        " default: the recipe's corpus",
    )
    parser.add_argument("--out", type=Path, metavar="RUN", help="the run folder (default: runs/NAME-OF-RECIPE)")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help=options.SETTING)
    parser.add_argument("--seed", type=int, metavar="S", help="the same as --set seed=S")
    parser.add_argument("--resume", action="store_true", help="go on with the run in --out")
    parser.add_argument(
        "--init",
        type=Path,
        metavar="RUN",
        help="start from the weights of another run, words matched by spelling",
    )
    parser.add_argument(
        "--max-minutes",
        type=float,
        metavar="M",
        help="stop training after M minutes, then evaluate and report",
    )
    parser.add_argument("--baselines", action="store_true", help="also compute unigram and Kneser-Ney baselines")
    parser.add_argument(
        "--tensorboard",
        action="store_true",
        help="also write RUN/tensorboard (needs the package tensorboard)",
    )
    parser.add_argument(
        "--dry-run",
        action="store_true",
        help="time a few steps, say parameters, memory and minutes; begin no run",
    )
    options.add_json(parser)
    options.add_machine(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Train, evaluate, report."""
    from elman import config
    from elman.tasks.experiment import Experiment

    recipe_path = _recipe_path(args)
    settings = [*args.set, *([] if args.seed is None else [f"seed={args.seed}"])]
    recipe = config.load_recipe(recipe_path, settings)
    out = args.out or Path("runs") / recipe_path.stem
    device = options.use_machine(args)
    options.at_least(0, "--max-minutes", args.max_minutes)
    if args.dry_run:
        return dry_run(recipe, args.data, device, args.json)
    with show.preparing() as progress:
        experiment = Experiment(
            recipe, out, data=args.data, device=device, resume=args.resume, init=args.init, progress=progress
        )
    return conduct(experiment, args)


def conduct(experiment: "Experiment", args: argparse.Namespace) -> int:
    """Train an experiment, evaluate it, print what came out and write the report, alone in the run folder."""
    with experiment.lock:
        return _conduct(experiment, args)


def _conduct(experiment: "Experiment", args: argparse.Namespace) -> int:
    from elman.learning.log import Watcher
    from elman.learning.trainer import StopReason
    from elman.report.page import write_report

    console, recipe, out = show.log(), experiment.recipe, experiment.out
    in_perplexity = recipe.data.reporting.in_perplexity
    parameters = sum(parameter.numel() for parameter in experiment.model.parameters())
    console.print(f"[bold]{recipe.title}[/]: {parameters:,} parameters on {experiment.device}, into {out}")
    for line in experiment.task.summary():
        console.print(f"  {line}")
    bar = watchers.TrainingBar(in_perplexity=in_perplexity)
    watching: list[Watcher] = [bar]
    if args.tensorboard:
        watching.append(watchers.TensorBoard(out))
    outcome = experiment.train(watching, args.max_minutes)
    if outcome is StopReason.INTERRUPTED:
        console.print(f"stopped and saved; go on with: elman train --resume --out {out}")
        return 130
    if outcome is StopReason.OUT_OF_TIME:
        console.print(f"the time is over; go on with: elman train --resume --out {out}")
    with show.counting("evaluating") as advance:
        results = [result.as_dict() for result in experiment.finish(progress=advance)]
    baselines = []
    if args.baselines:
        console.print("computing n-gram baselines")
        baselines = [result.as_dict() for result in experiment.baselines()]
    page = write_report([out])
    if args.json:
        show.print_json({"run": str(out), "results": results, "baselines": baselines, "report": str(page)})
        return 0
    show.print_figures(recipe.title, "model", [{"name": "this model", **row} for row in [*baselines, *results]])
    for row in results:
        if "output" in row:
            measures.print_worth(f"{row['split']}", row["output"])
    print(f"report: {page}")
    return 0


def dry_run(recipe: "Recipe", data: str | None, device: "torch.device", as_json: bool) -> int:
    """Say what training would cost."""
    from elman.tasks.estimate import estimate

    with show.counting("timing a few steps") as advance:
        cost = estimate(recipe, data, device, advance)
    if as_json:
        show.print_json(cost)
        return 0
    rows = [[name, value] for name, value in cost_rows(cost)]
    show.print_table(recipe.title, ["", "estimate"], rows)
    return 0


def cost_rows(cost: dict[str, float]) -> list[tuple[str, str]]:
    """An estimate in words."""
    return [
        ("parameters", f"{cost['parameters']:,}"),
        ("peak memory", f"{cost['peak_mb']:,.0f} MB"),
        ("speed", f"{cost['tokens_per_s']:,.0f} tokens/s"),
        ("minutes an epoch", f"{cost['minutes_per_epoch']:.1f}"),
        ("epochs", f"{cost['epochs']}"),
        ("minutes in all", f"{cost['minutes']:.0f}"),
    ]


def _recipe_path(args: argparse.Namespace) -> Path:
    from elman.config.toml import resolve

    if args.recipe is not None:
        return resolve(args.recipe)
    if not args.resume:
        raise UserError("give a RECIPE, such as recipes/ptb/small-awd-lstm.toml; `elman recipes` lists them")
    if args.out is None:
        raise UserError("--resume needs --out RUN (or the RECIPE whose run is to go on)")
    if not (args.out / "recipe.toml").is_file():
        raise UserError(f"{args.out} is not a run folder: it has no recipe.toml; nothing to resume, leave out --resume")
    return args.out / "recipe.toml"
