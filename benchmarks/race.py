"""What a recipe reaches in so many minutes: wall-clock time from reading the text to the last update, and perplexities.

    python benchmarks/race.py RECIPE --data DATA --minutes 5 --seeds 1 2 3 --out runs/race [--adapt dynamic+cache]

Each seed trains in a process of its own, one after the other, with an empty cache, so that reading and encoding the
text count, as do validations; importing torch does not. No choice looks at the test split. A JSON line for each seed
has the seconds, the machine's peak just before, and perplexities of validation and test: those of the network alone
with its state carried over (static), and with --adapt also that of the test by another method of `elman evaluate`, such
as dynamic+cache, tuned on the validation split. The last line has the medians over seeds; a run that took longer than
its minutes is marked. Runs that are complete are not trained again. `--curve PICTURE` draws validation perplexity
against seconds for the runs in --out.

With `--networks N` a seed is an ensemble of N networks, whose probabilities are averaged: they train side by side on a
share of the threads each, one after the other where there are more networks than threads, and the seconds are those of
the slowest of these rows. Their own seeds are N (seed - 1) + 1 to N seed. `--ngram ORDER` adds the test figure of a
mixture with a Kneser-Ney model of the same training text, whose weight is found on the validation split (`mixed`), and
the seconds that counting took (`counting`), which come on top.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor
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


def evaluated(outs: list[Path], split: str, threads: int, *options: str) -> dict[str, Any]:
    """The row of a split by `elman evaluate`; several networks are averaged."""
    together = ["--ensemble"] if len(outs) > 1 else []
    command = ["evaluate", *map(str, outs), "--split", split, *together, *options, "--threads", str(threads), "--json"]
    found = subprocess.run([sys.executable, "-m", "elman", *command], check=True, stdout=subprocess.PIPE, text=True)
    rows = json.loads(found.stdout)
    return next(row for row in (rows if isinstance(rows, list) else [rows]) if row["split"] == split)


def together(outs: list[Path], options: argparse.Namespace, *more: str) -> tuple[float, float | None]:
    """The figures of the test by the networks alone, and with counts where these are asked for."""
    if not options.ngram:
        return _value(outs[0], evaluated(outs, "test", options.threads, *more)), None
    row = evaluated(outs, "test", options.threads, "--mix", f"{options.ngram}-gram", *more)
    networks = row["members"][-2]  # the counts are the last
    return _value(outs[0], networks), _value(outs[0], row)


def counting(out: Path, order: int) -> float:
    """The seconds that counting n-grams of the training text takes."""
    from elman.tasks.text.ensemble import own_counts
    from elman.tasks.text.run import TextRun

    run, begun = TextRun(out), time.monotonic()
    own_counts(run, order)
    return round(time.monotonic() - begun, 1)


def _figure(out: Path, split: str) -> float:
    rows = json.loads((out / "results.json").read_text())
    return _value(out, next(row for row in rows if row["split"] == split))


def _value(out: Path, row: dict[str, Any]) -> float:
    """Perplexity; bits per character where tokens are characters; nats per step of music."""
    data = tomllib.loads((out / "recipe.toml").read_text())["data"]
    if data["kind"] == "music":
        return round(row["nll"], 4)
    return round(row["bits_per_character" if data["tokenisation"] == "characters" else "perplexity"], 4)


def measured(seed: int, options: argparse.Namespace) -> dict[str, Any]:
    """The row of a seed: of its network, or of its ensemble of networks."""
    seeds = range(options.networks * (seed - 1) + 1, options.networks * seed + 1)
    lanes = min(options.networks, options.threads)
    with ThreadPoolExecutor(lanes) as pool:
        shares = pool.map(lambda lane: [trained(one, options) for one in seeds[lane::lanes]], range(lanes))
        rows = list(shares)
    outs = [folder(one, options) for one in seeds]
    row = rows[0][0] if options.networks == 1 else summed(rows, outs, options.threads)
    if options.ngram:
        row["counting"] = counting(outs[0], options.ngram)
    if options.ngram or options.networks > 1:
        test, row["mixed"] = together(outs, options)
        row.setdefault("test", test)  # of one network it is known
    if options.adapt:
        row["adapted"], row["adapted mixed"] = together(outs, options, "--method", options.adapt, "--tune")
    over = row["seconds"] + row.get("counting", 0) > 60 * options.minutes
    return {key: value for key, value in row.items() if value is not None} | ({"over": True} if over else {})


def folder(seed: int, options: argparse.Namespace) -> Path:
    """Of the run of a seed."""
    return options.out / f"{Path(options.recipe).stem}-{seed}"


def trained(seed: int, options: argparse.Namespace) -> dict[str, Any]:
    """The row of one network, trained in a fresh process with an empty cache."""
    kept = folder(seed, options) / ROW
    if not kept.is_file():
        threads = max(1, options.threads // options.networks)
        with tempfile.TemporaryDirectory() as cache:
            command = [sys.executable, __file__, *sys.argv[1:], "--entry", str(seed), "--threads", str(threads)]
            subprocess.run(command, check=True, env={**os.environ, "ELMAN_CACHE": cache}, stdout=sys.stderr)
    return json.loads(kept.read_text())


def summed(lanes: list[list[dict[str, Any]]], outs: list[Path], threads: int) -> dict[str, Any]:
    """The row of an ensemble, of the rows of its networks by lane."""
    rows = [row for lane in lanes for row in lane]
    sums = {key: sum(row[key] for row in rows) for key in ("parameters", "steps", "processor_seconds")}
    return {
        "run": f"{outs[0].name} to {outs[-1].name}",
        "networks": len(rows),
        **sums,
        "seconds": max(sum(row["seconds"] for row in lane) for lane in lanes),
        "peak_gflops": rows[0]["peak_gflops"],
        "threads": threads,
        "single valid": [row["valid"] for row in rows],
        "single test": [row["test"] for row in rows],
        "valid": _value(outs[0], evaluated(outs, "valid", threads)),
    }


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
    parser.add_argument("--networks", type=int, default=1, help="networks of an ensemble, trained side by side")
    parser.add_argument("--ngram", type=int, metavar="ORDER", help="also mixed with a Kneser-Ney model of this order")
    parser.add_argument("--adapt", metavar="METHOD", help="the test also by this method of elman evaluate, tuned")
    parser.add_argument("--curve", type=Path, help="draw the runs in --out into this picture")
    parser.add_argument("--entry", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.entry is not None:
        out = folder(options.entry, options)
        settings = ["training.precision=auto", *options.set, f"seed={options.entry}"]
        (row,) = [train(options.recipe, settings, options.data, out, options)]
        (out / ROW).write_text(json.dumps(row))
        return
    rows = [measured(seed, options) for seed in options.seeds]
    for row in rows:
        print(json.dumps(row), flush=True)
    figures = [key for key in ("seconds", "valid", "test", "mixed", "adapted", "adapted mixed") if key in rows[0]]
    print(
        json.dumps({"recipe": options.recipe} | {f"median {key}": median(row[key] for row in rows) for key in figures})
    )
    if options.curve is not None:
        draw(options.out, options.curve)


if __name__ == "__main__":
    main()
