"""Are killed commands completed as if nothing had happened? Kills them with SIGKILL at random moments, and compares.

    python benchmarks/kills.py [--count 200] [--seed 0] [--only KIND ...] [--json] [--folder FOLDER]

Each kind of work is done once undisturbed. Then it is begun, killed with its whole process group after a part of that
time that is drawn uniformly, and begun again as a user would (`train --resume`, otherwise the same command) until it
ends. Its files are compared with the undisturbed ones: digests of all models and checkpoints, results, samples, metrics
without times, tunings, claims, encoded texts, what score, embed, compose, export and publish write; temporary files
that are left, and trained runs that changed, count too. Exit status 1 on a difference; FOLDER keeps the files of both.

Commands are forks of this process, which has torch and elman imported, so that a start takes milliseconds (Linux only).
"""

import argparse
import contextlib
import ctypes
import importlib
import json
import os
import pkgutil
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))
import elman
from killed_work import KINDS, TRAINED, write_inputs

MOST_KILLS = 3
"""Of one run; the attempt after them is left alone."""

PR_SET_CHILD_SUBREAPER = 36


def begin(work: Callable[[Path, Path], int], inputs: Path, place: Path) -> int:
    """Do the work in a fork of this process, in a process group of its own; the process id."""
    pid = os.fork()
    if pid:
        return pid
    os.setsid()
    log = os.open(place / ".log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.environ["ELMAN_CACHE"] = str(place / "cache")
    status = 70
    try:
        status = work(inputs, place)
    finally:
        sys.stdout.flush()
        os._exit(status)


def end(pid: int, after: float | None) -> int:
    """Wait for a process, killing its group after so many seconds; its exit status, negative if it was killed."""
    deadline = None if after is None else time.monotonic() + after
    while True:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            break
        if deadline is not None and time.monotonic() >= deadline:
            with contextlib.suppress(ProcessLookupError):  # it has no group of its own yet
                os.killpg(pid, signal.SIGKILL)
            os.kill(pid, signal.SIGKILL)
            _, status = os.waitpid(pid, 0)
            break
        time.sleep(0.001)
    try:
        while True:  # its descendants, which became children of this process
            os.waitpid(-pid, 0)
    except ChildProcessError:
        return os.waitstatus_to_exitcode(status)


def contents(place: Path) -> dict[str, str]:
    """What must be equal of every file, by its path; times and pages, which show them, are left out."""
    found = {}
    for path in sorted(place.rglob("*")):
        name = path.relative_to(place).as_posix()
        if path.is_dir() or path.name.startswith(".") or path.suffix == ".html" or path.name == "environment.json":
            continue
        if path.parent.name == "outputs":  # which files of `--out` elman wrote, by their whole path
            continue
        found[name] = content(path).replace(str(place), "PLACE")
    return found


def content(path: Path) -> str:
    """What must be equal of a file, as text."""
    from elman.files import sha256_file
    from elman.learning import checkpoint

    if path.suffix == ".safetensors":
        tensors, facts = checkpoint.load(path)
        for counted in ("seconds", "lines"):  # of the time, and of metrics with the lines that tell of a resumption
            facts.get("progress", {}).pop(counted, None)
        return f"{checkpoint.digest_of(tensors)} {json.dumps(facts, sort_keys=True)}"
    if path.name == "metrics.jsonl":
        records = map(json.loads, path.read_text().splitlines())
        clock = ("seconds", "tokens_per_s")
        kept = [record for record in records if record.get("event") != "resume"]
        return "\n".join(json.dumps({k: v for k, v in record.items() if k not in clock}) for record in kept)
    if path.suffix in (".json", ".toml", ".tsv"):
        return path.read_text()
    return sha256_file(path)


def differences(expected: dict[str, str], found: dict[str, str]) -> list[str]:
    """The files that differ, with the first line that does."""
    told = []
    for name in sorted(expected | found):
        if name not in expected or name not in found:
            told.append(f"{name}: {'missing' if name in expected else 'new'}")
            continue
        pairs = zip_longest(expected[name].splitlines(), found[name].splitlines(), fillvalue="nothing")
        for number, (wanted, line) in enumerate(pairs, start=1):
            if wanted != line:
                told.append(f"{name}:{number}: {line[:200]} in place of {wanted[:200]}")
                break
    return told


@dataclass
class Tally:
    """What was found of one kind."""

    seconds: float
    runs: int = 0
    kills: int = 0
    temporary: int = 0
    differences: list[str] = field(default_factory=list)


class Undisturbed:
    """One kind of work done without a kill, to compare with."""

    def __init__(self, kind: str, inputs: Path, folder: Path) -> None:
        self.kind, self.work, self.inputs, self.folder = kind, KINDS[kind], inputs, folder
        place = folder / kind / "undisturbed"
        started = time.monotonic()
        self._do(place, lambda: None)
        self.tally = Tally(time.monotonic() - started)
        self.expected = contents(place)

    def disturb(self, draw: np.random.Generator, kills: int) -> None:
        """Kill the work up to so many times, complete it and compare."""
        place = self.folder / self.kind / f"killed-{self.tally.runs:03d}"
        left = [draw.uniform(0, self.tally.seconds) for _ in range(kills)]
        try:
            self.tally.kills += self._do(place, lambda: left.pop() if left else None)
            found = contents(place)
            wrong = differences(self.expected, found)
        except (OSError, ValueError, RuntimeError) as error:
            wrong = [str(error)]
        self.tally.runs += 1
        temporary = [f"{path.relative_to(place)}: left" for path in place.rglob("*.tmp")]
        self.tally.temporary += len(temporary)
        wrong += temporary
        self.tally.differences += [f"{place.name}: {name}" for name in wrong]
        if not wrong:
            shutil.rmtree(place)

    def _do(self, place: Path, next_kill: Callable[[], float | None]) -> int:
        place.mkdir(parents=True)
        kills = 0
        while (status := end(begin(self.work, self.inputs, place), next_kill())) == -signal.SIGKILL:
            kills += 1
        if status:
            last = (place / ".log").read_text(errors="replace").strip().splitlines()[-1:]
            raise RuntimeError(f"exit status {status} after {kills} kills: {' '.join(last)}")
        return kills


def import_everything() -> None:
    """Import all modules once, so that forks need not."""
    for module in pkgutil.walk_packages(elman.__path__, "elman."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)


def run(kinds: list[str], count: int, seed: int, folder: Path) -> dict[str, Tally]:
    """Kill each kind of work until there were `count` kills in all."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)
    inputs = folder / "inputs"
    inputs.mkdir(parents=True)
    write_inputs(inputs)
    for kind in {TRAINED[kind] for kind in kinds if kind in TRAINED}:
        place = inputs / "trained" / kind
        place.mkdir(parents=True)
        if end(begin(KINDS[kind], inputs, place), None):
            raise RuntimeError(f"the {kind} run that is used: {(place / '.log').read_text()}")
    before = contents(inputs)
    found = [Undisturbed(kind, inputs, folder) for kind in kinds]
    draw = np.random.default_rng(seed)
    while (left := count - sum(one.tally.kills for one in found)) > 0 and max(one.tally.runs for one in found) < count:
        fewest = min(found, key=lambda one: (one.tally.kills, one.tally.runs))
        fewest.disturb(draw, min(int(draw.integers(1, MOST_KILLS + 1)), left))
        if wrong := differences(before, contents(inputs)):
            fewest.tally.differences += [f"inputs: {name}" for name in wrong]
            break
    return {one.kind: one.tally for one in found}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=200, help="kills in all (default: 200)")
    parser.add_argument("--seed", type=int, default=0, help="of the moments (default: 0)")
    parser.add_argument("--only", nargs="+", choices=KINDS, default=list(KINDS), metavar="KIND", help=", ".join(KINDS))
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--folder", type=Path, help="an empty folder that is kept (default: a temporary one)")
    arguments = parser.parse_args()
    import_everything()
    with tempfile.TemporaryDirectory(prefix="kills-") as temporary:
        found = run(arguments.only, arguments.count, arguments.seed, arguments.folder or Path(temporary))
    kills = sum(one.kills for one in found.values())
    number = sum(len(one.differences) for one in found.values())
    if arguments.json:
        kinds = {kind: vars(one) for kind, one in found.items()}
        print(json.dumps({"seed": arguments.seed, "kills": kills, "differences": number, "kinds": kinds}))
        return int(number > 0)
    print(f"{'kind':12}{'seconds':>9}{'runs':>6}{'kills':>7}{'files left':>12}{'differences':>13}")
    for kind, one in found.items():
        row = f"{one.seconds:9.1f}{one.runs:6}{one.kills:7}{one.temporary:12}{len(one.differences):13}"
        print(f"{kind:12}{row}")
        for line in one.differences:
            print(f"    {line}")
    print(f"seed {arguments.seed}: {kills} kills, {number} differences")
    return int(number > 0)


if __name__ == "__main__":
    sys.exit(main())
