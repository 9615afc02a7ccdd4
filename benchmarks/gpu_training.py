"""Full-size networks of Penn Treebank, trained at once on one GPU in a few minutes, evaluated, and compared.

    python benchmarks/gpu_training.py --data PTB --out runs/gpu --minutes 12

Each network is an `elman train` of its own with a shortened schedule (SHORT below); all run at the same time, under
CUDA's Multi-Process Service where it is installed. They begin with a rate that hardly falls; from the speed of their
first seconds, and again in the middle, follows the number of epochs in which the rate reaches 0 when the time is over.
Then each best model is evaluated, by dynamic evaluation and the cache too, and the weights of the best network are kept
in bf16 (gpu_weights.py). A call that is stopped, or that ends by --stop-after, is continued by the same
command: the minutes are those of all calls together. OUT/training.json is written after every piece; the runs, which
are large, are in OUT/runs. `--tiny --device cpu` tries everything with tiny networks on a text made up for it.
"""

import argparse
import json
import os
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median
from typing import Any

import gpu

SHORT = """\
base = "{base}"
title = "{name} in a few minutes of a GPU"
without = ["training.fine_tune"]

[data.evaluation]
streams = 64

[model.initialisation]
output_bias = "unigram"

[training]
epochs = 100000
batch_size = {batch_size}
schedule = {{ kind = "cosine" }}
averaging = {{ kind = "exponential", decay = 0.999 }}
log_every = 20
"""
RULE = ("--lr", "4.6e-5", "--decay", "4.4e-3", "--eps", "2.3e-5")
"""Of dynamic evaluation: the published settings for mixtures (docs/evaluation.md)."""

EVALUATIONS = (
    ("test", "dynamic", RULE),
    ("test", "cache", ("--tune",)),
    ("test", "dynamic+cache", RULE),
    ("valid", "dynamic", RULE),
    ("valid", "cache", ("--tune",)),
    ("valid", "dynamic+cache", RULE),
)
FOR_EVALUATION, PROBE, START = 0.3, 20.0, 12.0
"""The share of the minutes that is left for evaluation; seconds of training that are timed; seconds until it begins."""


class Clock:
    """Seconds spent in all calls; those of this call end at `end`, those of training at `training`."""

    def __init__(self, options: argparse.Namespace, before: float) -> None:
        self.before, self.begun, self.total = before, time.monotonic(), 60 * options.minutes
        self.end = min(self.total, before + 60 * (options.stop_after or options.minutes)) - 5
        self.training = (1 - FOR_EVALUATION) * self.total

    def now(self) -> float:
        """Seconds spent up to now."""
        return self.before + time.monotonic() - self.begun

    def until(self, seconds: float) -> float:
        """That moment in the time of `time.monotonic`, within this call."""
        return self.begun - self.before + min(seconds, self.end)


def lines_of(run: Path) -> list[dict[str, Any]]:
    """The lines of training and validation in the metrics of a run, complete ones only."""
    path = run / "metrics.jsonl"
    text = path.read_text() if path.exists() else ""
    found = [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]
    return [line for line in found if line["kind"] in ("train", "valid")]


def epochs_for(lines: Sequence[dict[str, Any]], seconds: float) -> int | None:
    """How many epochs there are in all after so many further seconds, at the speed of late; None: not known yet."""
    late = [line for line in lines if line["seconds"] >= lines[-1]["seconds"] - 5 * PROBE]
    if len(late) < 2 or late[-1]["seconds"] <= late[0]["seconds"]:
        return None
    first, last = late[0], late[-1]
    speed = (last["epoch"] - first["epoch"]) / (last["seconds"] - first["seconds"])
    return max(int(last["epoch"]) + 1, int(last["epoch"] + 0.97 * speed * max(0.0, seconds)))


def finished(run: Path) -> bool:
    """Whether a run is trained, and evaluated as far as `elman train` does it."""
    return (run / "results.json").exists()


class Training:
    """All networks of one call."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options, self.path, self.lock = options, options.out / "training.json", threading.Lock()
        self.found = json.loads(self.path.read_text()) if self.path.exists() else {"seconds": 0.0, "networks": {}}
        self.clock, self.env = Clock(options, self.found["seconds"]), dict[str, str]()
        self.threads = 1 if options.tiny else max(1, (os.cpu_count() or 1) // len(options.networks))
        self.data = options.data
        if options.tiny:
            import tiny_runs

            self.data = tiny_runs.write_data("text", options.out / "data")

    def run_of(self, name: str) -> Path:
        """The run folder of a network."""
        return self.options.out / "runs" / name

    def record(self, name: str, **facts: object) -> None:
        """Add facts about a network, and write everything."""
        with self.lock:
            self.found["networks"].setdefault(name, {"evaluations": {}}).update(facts)
            self.found["seconds"] = round(self.clock.now(), 1)
            self.path.write_text(json.dumps(self.found, indent=1) + "\n")

    def each(self, work: Callable[[str], None], names: Sequence[str]) -> None:
        """Do the work for each network at the same time; an error is recorded."""

        def guarded(name: str) -> None:
            try:
                work(name)
            except Exception as error:  # the other networks continue
                self.record(name, error=f"{type(error).__name__}: {error}"[:500])

        with ThreadPoolExecutor(max(1, len(names))) as pool:
            list(pool.map(guarded, names))

    def elman(self, name: str, *command: str) -> gpu.Process:
        """A command of elman on the device, with this network's share of the threads."""
        machine = ("--device", self.options.device, "--threads", str(self.threads))
        return gpu.Process(["-m", "elman", *command, *machine], self.options.out / "logs" / f"{name}.txt", env=self.env)

    def started(self, name: str) -> gpu.Process:
        """A training, begun or resumed, which ends when the time is over, by the number of epochs that is recorded."""
        run, left = self.run_of(name), self.clock.training - self.clock.now() - START
        lines = lines_of(run)
        epochs = self.options.epochs or (epochs_for(lines, left) if lines else None)
        planned = self.found["networks"].get(name, {}).get("planned")
        if lines and planned and lines[-1]["epoch"] >= planned:  # only the results are missing
            epochs = planned
        self.record(name, planned=epochs)
        if (run / "checkpoint.safetensors").exists():
            begin = ["--resume"]
        else:
            shutil.rmtree(run, ignore_errors=True)
            begin = [self.recipe(name), "--data", str(self.data), "--precision", self.options.precision]
            begin += ["--seed", str(self.options.seed)]
            settings = [*self.options.set, *(gpu.NETWORKS[name].tiny if self.options.tiny else ())]
            begin += [part for setting in settings for part in ("--set", setting)]
        begin += [] if epochs is None else ["--epochs", str(epochs)]
        return self.elman(name, "train", *begin, "--out", str(run), "--max-minutes", f"{max(0.02, left / 60):.3f}")

    def recipe(self, name: str) -> str:
        """Write the shortened recipe of a network."""
        import elman

        network, path = gpu.NETWORKS[name], self.options.out / f"{name}.toml"
        rows = self.options.batch_factor * elman.load_recipe(gpu.ROOT / network.recipe).training.batch_size
        base = network.recipe.removeprefix("recipes/")
        path.write_text(SHORT.format(name=name, base=base, batch_size=rows))
        return str(path)

    def train(self) -> None:
        """Train until each network is timed, then to the middle, then to the end, or as far as this call reaches."""
        middle = (self.clock.now() + self.clock.training) / 2
        for stage, end in (("probe", middle), ("middle", middle), ("end", self.clock.total)):
            names = [name for name in self.options.networks if not finished(self.run_of(name))]
            known = self.options.epochs or all(lines_of(self.run_of(name)) for name in names)
            if not names or self.clock.now() > self.clock.end - 5 or (known and stage == "probe"):
                continue
            if stage == "middle" and (self.options.epochs or self.clock.now() > middle - 5):
                continue
            running = {name: self.started(name) for name in names}
            until = self.clock.until(end)
            while time.monotonic() < until and any(process.run.poll() is None for process in running.values()):
                if stage == "probe" and all(self.timed(name, running[name]) for name in names):
                    until = time.monotonic()
                time.sleep(0.2)

            def end_one(name: str, running: dict[str, gpu.Process] = running, until: float = until) -> None:
                reason = running[name].wait(until)
                self.record(name, **self.state(name), stopped=reason)

            self.each(end_one, names)

    def timed(self, name: str, process: gpu.Process) -> bool:
        """Whether the speed of a training is known, or it has ended."""
        lines = lines_of(self.run_of(name))
        least = PROBE / 20 if self.options.tiny else PROBE
        return process.run.poll() is not None or (len(lines) > 1 and lines[-1]["seconds"] > least)

    def state(self, name: str) -> dict[str, Any]:
        """What the metrics and results of a network state now."""
        lines, planned = lines_of(self.run_of(name)), self.found["networks"][name].get("planned")
        valid = [line for line in lines if line["kind"] == "valid"]
        rates = [line["tokens_per_s"] for line in lines if line["kind"] == "train"]
        done = lines[-1]["epoch"] if lines else 0.0
        facts = {
            "epochs": done,
            "seconds": lines[-1]["seconds"] if lines else 0.0,
            "cut_off": planned is None or done < planned,
        }
        facts |= {"tokens_per_s": round(median(rates)) if rates else None}
        facts["curve"] = [[line["epoch"], round(line["perplexity"], 3), line["seconds"]] for line in valid]
        return facts | {"perplexity": self.figures(name)}

    def figures(self, name: str) -> dict[str, float]:
        """Perplexities in the results of a run, by split and method."""
        path = self.run_of(name) / "results.json"
        rows = json.loads(path.read_text()) if path.exists() else []
        return {f"{row['split']} {row['method']}": row["perplexity"] for row in rows}

    def evaluate(self, name: str) -> None:
        """The methods one after the other, as far as there is time; those that are known are not computed again."""
        for split, method, more in EVALUATIONS[: 2 if self.options.tiny else None]:
            what, known = f"{split} {method}", self.found["networks"][name]["evaluations"]
            if what in self.figures(name):
                continue
            reason: str | None = "no time left"
            if self.clock.now() < self.clock.end - 10:
                words = (str(self.run_of(name)), "--split", split, "--method", method, *more, "--skip-first")
                reason = self.elman(name, "evaluate", *words).wait(self.clock.until(self.clock.end))
            done = "complete" if what in self.figures(name) else reason
            self.record(name, **self.state(name), evaluations={**known, what: done})

    def keep(self) -> None:
        """Keep the weights of the best network by validation in bf16."""
        ours = {name: self.figures(name).get("valid static") for name in self.options.networks}
        best = min((name for name, figure in ours.items() if figure), key=lambda name: ours[name] or 0.0, default=None)
        if best is None or "weights" in self.found["networks"][best] or self.clock.now() > self.clock.end - 15:
            return
        out = self.options.out / "logs" / f"{best}-weights.json"
        out.unlink(missing_ok=True)
        place = ("--out", str(self.options.out), "--device", self.options.device)
        command = ["benchmarks/gpu_weights.py", str(self.run_of(best)), *place]
        reason = gpu.Process(command, out.with_suffix(".txt"), out, self.env).wait(self.clock.until(self.clock.end))
        self.record(best, weights={"reason": reason} if reason else json.loads(out.read_text()))

    def show(self) -> None:
        """Print the table."""
        rows = []
        for name, facts in self.found["networks"].items():
            figures, published = facts.get("perplexity", {}), gpu.NETWORKS[name].perplexity
            static = figures.get("test static")
            row = {"network": name, "published": published, "ratio": static and published / static, "valid": None}
            rows.append({**facts, **row, **{key.removeprefix("test "): figure for key, figure in figures.items()}})
            rows[-1]["valid"] = figures.get("valid static")
        columns = ("network", "published", "static", "ratio", "dynamic", "cache", "dynamic+cache", "valid", "epochs")
        print(gpu.table((*columns, "planned", "cut_off", "seconds", "tokens_per_s", "error"), rows))
        print(f"test perplexities; {self.found['seconds']:.0f} s in all; {self.found.get('sharing')}")


def main() -> None:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("networks", nargs="*", metavar="NETWORK", help=f"of {', '.join(gpu.NETWORKS)} (default: all)")
    parser.add_argument(
        "--data", type=Path, help="a folder with train.txt, valid.txt and test.txt, or ptb.train.txt ..."
    )
    parser.add_argument("--out", type=Path, default=Path("runs/gpu"))
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--minutes", type=float, default=12.0, help="of all calls together, with evaluation")
    parser.add_argument(
        "--stop-after", type=float, metavar="MINUTES", help="end this call then; the next one continues"
    )
    parser.add_argument("--epochs", type=int, help="so many, instead of those for which there is time")
    parser.add_argument("--batch-factor", type=int, default=2, help="columns, as a multiple of the recipe's")
    parser.add_argument("--precision", default="bf16", help="float32, bf16 or auto")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="a change of every recipe")
    parser.add_argument("--tiny", action="store_true", help="tiny networks on a made-up text, to try the script")
    options = parser.parse_args()
    options.out = options.out.absolute()
    if unknown := set(options.networks) - set(gpu.NETWORKS):
        parser.error(f"no such network: {', '.join(sorted(unknown))}; there are {', '.join(gpu.NETWORKS)}")
    if options.data is None and not options.tiny:
        parser.error("--data FOLDER is needed, the text of Penn Treebank")
    options.networks = options.networks or list(gpu.NETWORKS)
    options.out.mkdir(parents=True, exist_ok=True)
    training = Training(options)
    with gpu.sharing(options.device, len(options.networks)) as (training.env, training.found["sharing"]):
        training.train()
        training.keep()
        complete = [name for name in options.networks if finished(training.run_of(name))]
        training.each(training.evaluate, complete)
    for name in options.networks:
        training.record(name, **training.state(name))
    training.show()


if __name__ == "__main__":
    main()
