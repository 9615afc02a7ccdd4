"""Does every number of processes find the same weights? Trains a small network in many ways, and compares digests.

    python benchmarks/parallel_digests.py [--folder FOLDER]

A two-layer LSTM with DropConnect, all other dropout and a mixture of softmaxes is trained for 100 steps, and for 200
with averaging, validations and fine-tuning. One process does both, then several that torchrun starts, on one machine
and as two machines; processes are killed, stopped, and others go on. Prints a table; exit status 1 on a difference;
FOLDER keeps the runs. Linux only.
"""

import argparse
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))
from elman.learning import checkpoint

SHORT = """
title = "in slices"
seed = 1
[model]
encoder = { kind = "lookup", size = 12, dropout = 0.1, word_dropout = 0.1 }
core = { kind = "stack", sizes = [16, 12], weight_drop = 0.3, between_dropout = 0.2, output_dropout = 0.2 }
[model.output]
contexts = { kind = "mixture", heads = { 2 = 3 }, size = 12 }
choice = { kind = "flat", tied = true }
[training]
epochs = 1
batch_size = 8
slices = 4
optimiser = { kind = "sgd", lr = 5.0 }
window = { length = 10 }
clip = 0.25
penalties = { ar = 2.0, tar = 1.0 }
log_every = 10
checkpoint_minutes = 0.01
[data]
kind = "text"
evaluation = { streams = 8 }
"""

WHOLE = SHORT.replace(
    "epochs = 1\n",
    'epochs = 1\nvalidate_every = 20\naveraging = { kind = "non-monotone", interval = 1 }\n'
    "fine_tune = { lr = 2.0, epochs = 1, interval = 2 }\n",
)

LINES = {"train": 801, "valid": 60, "test": 60}
"""Of 9 words and their end: 100 windows of 10 steps in 8 columns."""

MIDDLE = 50
"""The step after which a process is killed or stopped."""


class Way(NamedTuple):
    """How a run is trained: torchrun commands one after another, and what happens to the first."""

    title: str
    torchruns: Sequence[Sequence[str]]
    happens: signal.Signals | None = None


WAYS = (
    Way("one process, without torchrun", [()]),
    *(
        Way(f"torchrun, {count} process{'es' if count > 1 else ''}", [("--nproc-per-node", str(count))])
        for count in (1, 2, 4)
    ),
    Way("torchrun as two machines, 1 process each", [("--nnodes", "2", "--nproc-per-node", "1")]),
    Way(
        "kill -9 of one of 4, resumed by 2",
        [("--nproc-per-node", "4"), ("--nproc-per-node", "2")],
        signal.SIGKILL,
    ),
    Way("SIGTERM to one of 2, resumed by 4", [("--nproc-per-node", "2"), ("--nproc-per-node", "4")], signal.SIGTERM),
    Way("kill -9 of one of 2, --max-restarts 1", [("--nproc-per-node", "2", "--max-restarts", "1")], signal.SIGKILL),
)


def write_corpus(folder: Path) -> None:
    """Text drawn from a Markov chain over 40 words."""
    draw = np.random.default_rng(0)
    chain = draw.dirichlet(np.full(40, 0.1), size=40)
    folder.mkdir(parents=True)
    for split, lines in LINES.items():
        word, text = 0, []
        for _ in range(lines):
            text.append(" ".join(f"w{(word := int(draw.choice(40, p=chain[word])))}" for _ in range(9)))
        (folder / f"{split}.txt").write_text("\n".join(text) + "\n")


def start(torchrun: Sequence[str], work: Sequence[str], log: Path) -> list[subprocess.Popen[bytes]]:
    """The processes of a command, under torchrun where it has words; two for two machines."""
    launcher = [sys.executable, "-m", "torch.distributed.run"]
    commands = [[sys.executable, "-m", *work]]
    if "--nnodes" in torchrun:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            place = f"localhost:{free.getsockname()[1]}"
        shared = ("--rdzv-backend", "c10d", "--rdzv-id", "digests", "--rdzv-endpoint", place)
        commands = [[*launcher, *torchrun, *shared, "-m", *work]] * 2
    elif torchrun:
        commands = [[*launcher, *torchrun, "-m", *work]]
    with log.open("ab") as file:
        return [subprocess.Popen(command, stdout=file, stderr=file) for command in commands]


def disturb(process: subprocess.Popen[bytes], out: Path, number: signal.Signals) -> None:
    """Send a signal to the last process that torchrun has started, after the step MIDDLE."""
    while process.poll() is None:
        try:
            rows = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
        except (OSError, ValueError):
            rows = []
        if rows and rows[-1]["step"] >= MIDDLE:
            children = (path.read_text().split() for path in Path(f"/proc/{process.pid}/task").glob("*/children"))
            os.kill(max(int(pid) for pids in children for pid in pids), number)
            return
        time.sleep(0.05)


def train(way: Way, recipe: Path, folder: Path, out: Path) -> None:
    """Train a run in a way; raises SystemExit with the end of its log where that fails."""
    log = out.with_suffix(".log")
    work = ["elman", "train", str(recipe), "--data", str(folder / "corpus"), "--out", str(out), "--threads", "1"]
    for number, torchrun in enumerate(way.torchruns):
        last = number + 1 == len(way.torchruns)
        processes = start(torchrun, [*work, *(["--resume"] if number else [])], log)
        if way.happens is not None and number == 0:
            disturb(processes[0], out, way.happens)
        ends = [process.wait() for process in processes]
        if any(ends) is last:
            raise SystemExit(f"{way.title}: statuses {ends}\n" + "".join(log.read_text().splitlines(True)[-20:]))


def found(out: Path) -> tuple[str, ...]:
    """The digests of a run's checkpoint and best model, and the last validation loss with all its digits."""
    names = (checkpoint.CHECKPOINT, checkpoint.MODEL)
    digests = [checkpoint.digest_of(checkpoint.load(out / name)[0])[:8] for name in names]
    rows = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    return (*digests, repr([row["nll"] for row in rows if row["kind"] == "valid"][-1]))


def compare(folder: Path, show: Callable[[str], None]) -> bool:
    """Train in every way and show a table; whether each column has one value."""
    write_corpus(folder / "corpus")
    os.environ |= {"ELMAN_CACHE": str(folder / "cache"), "OMP_NUM_THREADS": "1"}
    columns: tuple[set[str], ...] = tuple(set() for _ in range(6))
    recipes = {name: folder / f"{name}.toml" for name in ("short", "whole")}
    for name, text in (("short", SHORT), ("whole", WHOLE)):
        recipes[name].write_text(text)
    show("| processes | 100 steps: weights | best model | validation | 200 steps: weights | best model | validation |")
    show("|---|---|---|---|---|---|---|")
    for number, way in enumerate(WAYS):
        cells: list[str] = []
        for name, recipe in recipes.items():
            if name == "short" and way.happens is not None:
                cells += ["-"] * 3
                continue
            train(way, recipe, folder, folder / f"{name}-{number}")
            cells += found(folder / f"{name}-{number}")
        for column, cell in zip(columns, cells, strict=True):
            column.update({cell} - {"-"})
        show(f"| {way.title} | {' | '.join(cells)} |")
    return all(len(column) == 1 for column in columns)


def main() -> int:
    """Compare; the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "runs" if given.folder is None else given.folder
        same = compare(folder, lambda line: print(line, flush=True))
    print("all equal" if same else "DIFFERENT")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
