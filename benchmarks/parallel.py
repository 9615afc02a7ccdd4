"""Two processes of one thread against one process of two threads: tokens per second, in turns.

The one process computes the batch whole, as it does without torchrun, or in the same two slices as the two processes,
which gives the same numbers as theirs.

python benchmarks/parallel.py RECIPE ... --data DATA [--pairs 3] [--steps 60]

such as shakespeare/demo.toml, ptb/awd-lstm.toml and ptb/awd-lstm-mos.toml on ptb.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

TORCHRUN = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
FORMS: dict[str, tuple[list[str], int, int]] = {
    "whole": ([sys.executable], 2, 1),
    "two slices": ([sys.executable], 2, 2),
    "two processes": ([sys.executable, *TORCHRUN], 1, 2),
}
"""Launcher, threads of a process, slices."""


def speed(form: str, recipe: str, data: str, steps: int) -> float:
    """The median of tokens per second over the lines of metrics but the first, which pays for the start."""
    launcher, threads, slices = FORMS[form]
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "run"
        keys = (f"training.slices={slices}", f"training.log_every={max(1, steps // 6)}", "training.epochs=1000")
        settings = [word for key in keys for word in ("--set", key)]
        command = [*launcher, "-m", "elman", "train", recipe, "--data", data, "--out", str(out)]
        command += ["--threads", str(threads), *settings]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        assert process.stderr is not None
        lines: list[str] = []
        for line in process.stderr:
            lines.append(line)
            metrics = out / "metrics.jsonl"
            rows = [json.loads(row) for row in metrics.read_text().splitlines()] if metrics.exists() else []
            rows = [row for row in rows if row["kind"] == "train"]
            if rows and rows[-1]["step"] >= steps:
                break
        process.terminate()  # so that torchrun ends its processes
        process.communicate()
        if not rows:
            raise SystemExit("".join(lines))
    return median(row["tokens_per_s"] for row in rows[1:])


def main() -> None:
    """Measure the pairs in turn and print them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("recipes", nargs="+", metavar="RECIPE")
    parser.add_argument("--data", required=True)
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--steps", type=int, default=60)
    given = parser.parse_args()
    for recipe in given.recipes:
        turns = [{form: speed(form, recipe, given.data, given.steps) for form in FORMS} for _ in range(given.pairs)]
        ratios = [turn["two processes"] / turn["whole"] for turn in turns]
        for turn, ratio in zip(turns, ratios, strict=True):
            speeds = ", ".join(f"{form} {value:,.0f}" for form, value in turn.items())
            print(f"{recipe}: tokens/s: {speeds}; two processes / whole {ratio:.3f}")
        print(f"{recipe}: median ratio {median(ratios):.3f}", flush=True)


if __name__ == "__main__":
    main()
