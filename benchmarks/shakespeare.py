"""Every causal cell and core on Shakespeare, one key changed: the commands of results/cells-commands.md.

`python benchmarks/shakespeare.py --minutes 2 --out runs/cells` trains each for so long, or to the end of the recipe,
prints a JSON line for each, and at the end the table. A network whose line is there already is not trained again.
"""

import argparse
import json
import re
import shlex
import time
from pathlib import Path
from typing import Any

import torch

from elman.cli import application
from elman.config.toml import load_recipe
from elman.learning.trainer import StopReason
from elman.network.device import use_large_pages
from elman.tasks.experiment import Experiment

PAGE = Path(__file__).parents[1] / "results" / "cells-commands.md"
RECIPE = Path(__file__).parents[1] / "recipes" / "shakespeare" / "cells.toml"
HEADER = ("network", "parameters", "tokens", "tokens per second", "tokens per second of processor time", "perplexity")


def networks() -> dict[str, list[str]]:
    """The settings of every network, by the last part of its run folder in the documentation."""
    lines = re.findall(r"^elman (train recipes/shakespeare/cells.toml .*--out runs/cells/.*)$", PAGE.read_text(), re.M)
    commands = (application().parse_args(shlex.split(line))[1].arguments for line in lines)
    return {command["out"].name: list(command.get("settings", ())) for command in commands}


def train(name: str, settings: list[str], options: argparse.Namespace) -> dict[str, Any]:
    """Train one network; its row."""
    experiment = Experiment(load_recipe(RECIPE, settings), options.out / name, data=options.data)
    wall, processor = time.monotonic(), time.process_time()
    outcome = experiment.train(max_minutes=options.minutes)
    if outcome is StopReason.INTERRUPTED:
        raise SystemExit(130)
    # The validation that ends training is within these times.
    wall, processor = time.monotonic() - wall, time.process_time() - processor
    training = experiment.recipe.training
    tokens = experiment.trainer.progress.step * training.window.length * training.batch_size
    return {
        "network": name,
        "parameters": sum(parameter.numel() for parameter in experiment.model.parameters()),
        "tokens": tokens,
        "tokens_per_s": round(tokens / wall, 1),
        "tokens_per_cpu_s": round(tokens / processor, 1),
        "perplexity": round(experiment.task.validate(experiment.model).perplexity, 2),
        "outcome": outcome.value,
    }


def main() -> None:
    use_large_pages()
    found = networks()
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("networks", nargs="*", metavar="NETWORK", help=f"of {', '.join(found)} (default: all)")
    arguments.add_argument("--minutes", type=float, default=2.0, help="of training for each (default: 2)")
    arguments.add_argument("--out", type=Path, default=Path("runs/cells"), help="run folders (default: runs/cells)")
    arguments.add_argument("--data", help="another text (default: Shakespeare)")
    arguments.add_argument("--threads", type=int, default=torch.get_num_threads())
    options = arguments.parse_args()
    if unknown := set(options.networks) - found.keys():
        arguments.error(f"no such network: {', '.join(sorted(unknown))}; there are {', '.join(found)}")
    torch.set_num_threads(options.threads)
    rows = []
    for name in options.networks or found:
        kept = options.out / name / "row.json"
        row = json.loads(kept.read_text()) if kept.exists() else train(name, found[name], options)
        kept.write_text(json.dumps(row))
        print(json.dumps(row), flush=True)
        rows.append(row)
    print("\n| " + " | ".join(HEADER) + " |\n|" + "---|" * len(HEADER))
    for row in rows:
        print(
            f"| {row['network']} | {row['parameters']:,} | {row['tokens']:,} | {row['tokens_per_s']:,.0f}"
            f" | {row['tokens_per_cpu_s']:,.0f} | {row['perplexity']:.1f} |"
        )


if __name__ == "__main__":
    main()
