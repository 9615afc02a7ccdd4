"""What a recipe reaches in so many minutes: wall-clock time from reading the text to the last update, and perplexities.

    python benchmarks/race.py RECIPE --data DATA --minutes 5 --seeds 1 2 3 --out runs/race [--adapt]

Each seed trains in a process of its own, one after the other, with an empty cache, so that reading and encoding the
text count, as do validations; importing torch does not. No choice looks at the test split. A JSON line for each seed
has the seconds, the machine's peak just before, and perplexities of validation and test: those of the network alone
with its state carried over (static), and with --adapt also that of the test with the neural cache and dynamic
evaluation, tuned on the validation split. The last line has the medians over seeds; a run that took longer than its
minutes is marked. Runs that are complete are not trained again. `--curve PICTURE` draws validation perplexity against
seconds for the runs in --out.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

import torch

import timing

ROW = "race.json"


def train(recipe: str, settings: list[str], data: str, out: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Train in this process; seconds and processor seconds from before the text is read to the last update."""
    from elman.config.toml import load_recipe
    from elman.learning.trainer import StopReason
    from elman.network.device import use_large_pages
    from elman.tasks.experiment import Experiment

    use_large_pages()
    torch.set_num_threads(options.threads)
    measured = {"threads": options.threads, "repetitions": 3, "cpu_time": False, "device": torch.device("cpu")}
    gflops = timing.peak(argparse.Namespace(**measured), quiet=True)
    wall, processor = time.monotonic(), time.process_time()
    experiment = Experiment(load_recipe(recipe, settings), out, data=data)
    if experiment.train() is not StopReason.FINISHED:
        raise SystemExit(f"{out}: training was interrupted; remove the folder, since its time is not known")
    wall, processor = time.monotonic() - wall, time.process_time() - processor
    experiment.finish()
    return {
        "run": out.name,
        "parameters": sum(parameter.numel() for parameter in experiment.model.parameters()),
        "steps": experiment.trainer.progress.step,
        "seconds": round(wall, 1),
        "processor_seconds": round(processor, 1),
        "peak_gflops": round(gflops, 1),
        "threads": options.threads,
        "valid": _figure(out, "valid"),
        "test": _figure(out, "test"),
    }


def adapted(out: Path, threads: int) -> float:
    """Of the test, with cache and dynamic evaluation tuned on validation text."""
    command = ["evaluate", str(out), "--method", "dynamic+cache", "--tune", "--threads", str(threads), "--json"]
    found = subprocess.run([sys.executable, "-m", "elman", *command], check=True, stdout=subprocess.PIPE, text=True)
    rows = json.loads(found.stdout)
    return _value(out, next(row for row in (rows if isinstance(rows, list) else [rows]) if row["split"] == "test"))


def _figure(out: Path, split: str) -> float:
    rows = json.loads((out / "results.json").read_text())
    return _value(out, next(row for row in rows if row["split"] == split))


def _value(out: Path, row: dict[str, Any]) -> float:
    """Perplexity, or bits per character where tokens are characters."""
    characters = 'tokenisation = "characters"' in (out / "recipe.toml").read_text()
    return round(row["bits_per_character" if characters else "perplexity"], 4)


def measured(seed: int, options: argparse.Namespace) -> dict[str, Any]:
    """The row of a seed, trained in a fresh process with an empty cache."""
    out = options.out / f"{Path(options.recipe).stem}-{seed}"
    kept = out / ROW
    if not kept.is_file():
        with tempfile.TemporaryDirectory() as cache:
            command = [sys.executable, __file__, *sys.argv[1:], "--entry", str(seed)]
            subprocess.run(command, check=True, env={**os.environ, "ELMAN_CACHE": cache}, stdout=sys.stderr)
    row = json.loads(kept.read_text())
    if options.adapt and "adapted" not in row:
        row["adapted"] = adapted(out, options.threads)
        kept.write_text(json.dumps(row))
    return row | ({"over": True} if row["seconds"] > 60 * options.minutes else {})


def draw(out: Path, picture: Path) -> None:
    """Validation figures against seconds of training, a line for each run in `out`."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import ScalarFormatter

    figure = Figure(figsize=(7, 4.5), layout="constrained")
    axes = figure.subplots()
    for metrics in sorted(out.glob("*/metrics.jsonl")):
        rows = [row for row in map(json.loads, metrics.read_text().splitlines()) if row["kind"] == "valid"]
        axes.plot(
            [row["seconds"] for row in rows], [row["perplexity"] for row in rows], "o-", label=metrics.parent.name
        )
    axes.set(xscale="log", yscale="log", xlabel="seconds of training", ylabel="validation perplexity")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(ScalarFormatter())
        axis.set_minor_formatter(ScalarFormatter())
    axes.legend(frameon=False, fontsize="small")
    figure.savefig(picture)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("recipe")
    parser.add_argument("--data", required=True)
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--out", type=Path, default=Path("runs/race"))
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="a change of the recipe")
    parser.add_argument("--adapt", action="store_true", help="also with cache and dynamic evaluation")
    parser.add_argument("--curve", type=Path, help="draw the runs in --out into this picture")
    parser.add_argument("--entry", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.entry is not None:
        out = options.out / f"{Path(options.recipe).stem}-{options.entry}"
        settings = ["training.precision=auto", *options.set, f"seed={options.entry}"]
        (row,) = [train(options.recipe, settings, options.data, out, options)]
        (out / ROW).write_text(json.dumps(row))
        return
    rows = [measured(seed, options) for seed in options.seeds]
    for row in rows:
        print(json.dumps(row), flush=True)
    figures = [key for key in ("seconds", "valid", "test", "adapted") if key in rows[0]]
    print(
        json.dumps({"recipe": options.recipe} | {f"median {key}": median(row[key] for row in rows) for key in figures})
    )
    if options.curve is not None:
        draw(options.out, options.curve)


if __name__ == "__main__":
    main()
