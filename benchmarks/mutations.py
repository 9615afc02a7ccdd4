"""Damaged run folders, opened with every command: `python benchmarks/mutations.py --count 1000 --seed 0`.

Tiny runs of each kind of data are trained, finished ones and ones stopped after their first step. Then, `count` times,
one file of a run folder or of its cache entries is changed at random (bits, length, lines, values that keep the syntax,
headers with a valid digest), and the run is opened with every command in this process. Faults are counted: an exception
that reaches the user as a traceback, an answer that takes longer than `--limit` seconds, and figures, outputs or
weights that differ from those of the undamaged run without any message. Prints a table by file and command, or JSON;
the exit status is 1 if there was a fault. `--only N` repeats the mutation of that number.
"""

import argparse
import collections
import contextlib
import hashlib
import io
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import torch

import damage
import tiny_runs
from elman.cli import main as elman
from elman.learning import checkpoint

KINDS = tuple(tiny_runs.MODELS)
WRITERS = {
    "text": "generate",
    "music": "compose",
    "pairs": "translate",
    "series": "forecast",
    "trees": "parse",
    "tags": "tag",
}
FIGURES = ("split", "method", "nll", "perplexity", "tokens", "accuracy", "nrmse")


class Outcome(NamedTuple):
    """What a command did: its exit status, what it computed, and what it printed on standard error."""

    status: int
    result: Any
    message: str


class Fault(NamedTuple):
    """A fault: the number of the mutation, where and how the file was changed, the command, and what happened."""

    number: int
    run: str
    file: str
    change: str
    command: str
    what: str


class Hang(BaseException):
    """A command took too long."""


def commands(kind: str, base: Path) -> dict[str, list[str]]:
    """The command lines that open a run; RUN is its folder."""
    writer = {
        "text": ["--tokens", "20", "--seed", "1"],
        "music": ["--steps", "8", "--out", str(base / "tune.mid"), "--seed", "1"],
        "pairs": ["--source", str(base / "source.txt")],
        "series": ["--steps", "5", "--samples", "3", "--seed", "1"],
        "trees": ["--text", "a b c d"],
        "tags": ["--text", "a b c d"],
    }[kind]
    return {
        "evaluate": ["evaluate", "RUN", "--json"],
        WRITERS[kind]: [WRITERS[kind], "RUN", *writer, "--json"],
        "info": ["info", "RUN", "--json"],
        "report": ["report", "RUN"],
        "resume": ["train", "--resume", "--out", "RUN", "--json"],
    }


def figures(value: Any) -> Any:
    """The numbers of results, which no damage may change in silence."""
    if isinstance(value, list):
        return [figures(one) for one in value]
    if isinstance(value, dict) and "nll" in value:
        return {key: value[key] for key in FIGURES if key in value}
    return {key: figures(one) for key, one in value.items()} if isinstance(value, dict) else value


def computed(command: str, base: Path, run: Path, printed: str) -> Any:
    """What a command computed, without names, places and times."""
    if command in ("info", "report"):
        return None
    result = json.loads(printed)
    if command == "resume":
        tensors, _ = checkpoint.load(run / "model.safetensors")
        return [figures(result["results"]), checkpoint.digest_of(tensors)]
    if command == "compose":
        return hashlib.sha256((base / "tune.mid").read_bytes()).hexdigest()
    places = ("run", "data", "file")
    return figures({key: one for key, one in result.items() if key not in places} if type(result) is dict else result)


@contextlib.contextmanager
def within(seconds: float) -> Iterator[None]:
    """Raise Hang in a block that takes longer."""

    def stop(*_: object) -> None:
        raise Hang

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


class Bench:
    """One run and its cache: the undamaged originals, and copies that are damaged and opened."""

    def __init__(self, kind: str, folder: Path, limit: float, *, stopped: bool) -> None:
        self.name = f"{kind}, {'stopped' if stopped else 'finished'}"
        self.base, self.limit = folder / self.name.replace(", ", "-"), limit
        self.originals, self.copies = self.base / "originals", self.base / "copies"
        os.environ["ELMAN_CACHE"] = str(self.originals / "cache")
        data = tiny_runs.write_data(kind, self.base / "data")
        (self.base / "source.txt").write_text("a b c\nh g\n")
        tiny_runs.train(kind, data, self.originals / "run", stopped=stopped)
        (self.originals / "cache").mkdir(exist_ok=True)
        self.files = [
            path.relative_to(self.originals) for path in sorted(self.originals.rglob("*")) if self._counts(path)
        ]
        self.commands = commands(kind, self.base)
        self.expected = {name: self.open(name, fresh=True) for name in self.commands}
        assert not any(outcome.status for outcome in self.expected.values()), self.expected

    def _counts(self, path: Path) -> bool:
        return path.is_file() and path.name not in (".lock", "report.html")

    def restore(self) -> None:
        """Make the copies equal to the originals."""
        shutil.rmtree(self.copies, ignore_errors=True)
        shutil.copytree(self.originals, self.copies)
        os.environ["ELMAN_CACHE"] = str(self.copies / "cache")

    def open(self, name: str, *, fresh: bool = False) -> Outcome:
        """Run a command on the copies."""
        if fresh:
            self.restore()
        run = self.copies / "run"
        line = [str(run) if word == "RUN" else word for word in self.commands[name]]
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), within(self.limit):
            status = elman(line)
        result = computed(name, self.base, run, out.getvalue()) if status == 0 else None
        return Outcome(status, result, err.getvalue())

    def fault(self, name: str) -> tuple[str, str | None]:
        """Open the damaged copies with a command: how it ended, and what was wrong with that."""
        try:
            outcome = self.open(name)
        except Hang:
            return "hang", f"no answer in {self.limit:g} s"
        except Exception as error:
            return "traceback", f"{type(error).__name__}: {str(error)[:100]} ({_origin(error)})"
        if outcome.status:
            line = outcome.message.strip().rpartition("\n")[2]
            known = outcome.status == 2 and line.startswith("elman: ")
            return "refused", None if known else f"status {outcome.status}, {line[:100]!r}"
        if outcome.result != self.expected[name].result and not _notice(outcome.message, self.expected[name].message):
            return "altered", "another result without a message"
        return "read", None


def _origin(error: Exception) -> str:
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "/elman/" in frame.filename]
    return f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else "?"


def _notice(message: str, usual: str) -> bool:
    """Whether a command says more on standard error than it usually does; numbers do not count."""
    return any(line.startswith("elman: ") for line in message.splitlines() if line not in usual)


def run(count: int, seed: int, limit: float, only: int | None, folder: Path) -> tuple[list[Fault], Any]:
    """The faults of so many mutations, and how often each command read, refused or failed, by file."""
    benches = [Bench(kind, folder, limit, stopped=stopped) for kind in KINDS for stopped in (False, True)]
    table: dict[tuple[str, str], collections.Counter[str]] = collections.defaultdict(collections.Counter)
    faults = []
    for number in range(count) if only is None else [only]:
        draw = random.Random(f"{seed} {number}")
        bench = draw.choice(benches)
        file = draw.choice(bench.files)
        bench.restore()
        change = damage.apply(bench.copies / file, [bench.copies / other for other in bench.files], draw)
        place = f"{file.parts[0]}/{file.name}"
        for name in bench.commands:
            ended, what = bench.fault(name)
            table[place, name][ended] += 1
            if what is not None:
                faults.append(Fault(number, bench.name, place, change, name, what))
                sys.stderr.write(f"{' | '.join(map(str, faults[-1]))}\n")
    return faults, table


def options_of(about: str | None, limit: float) -> argparse.Namespace:
    """The options of a benchmark that damages files, described by `about`."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--limit", type=float, default=limit, help="seconds that a command may take")
    parser.add_argument("--only", type=int, help="the number of the one case to repeat")
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


def main() -> int:
    """Mutate, open, print."""
    options = options_of(__doc__, 60.0)
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        faults, table = run(options.count, options.seed, options.limit, options.only, Path(folder))
    kinds = collections.Counter(fault.what.split(":")[0].split(" (")[0] for fault in faults)
    if options.json:
        rows = [{"file": file, "command": name, **counts} for (file, name), counts in sorted(table.items())]
        facts = {"seed": options.seed, "count": options.count, "faults": [fault._asdict() for fault in faults]}
        print(json.dumps({**facts, "table": rows}))
        return int(bool(faults))
    print(f"seed {options.seed}, {options.count} mutations, {len(faults)} faults: {dict(kinds)}")
    for (file, name), counts in sorted(table.items()):
        print(f"{file:<40} {name:<10} {', '.join(f'{word} {number}' for word, number in sorted(counts.items()))}")
    for fault in faults:
        print(" | ".join(map(str, fault)))
    return int(bool(faults))


if __name__ == "__main__":
    raise SystemExit(main())
