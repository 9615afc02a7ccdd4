"""Are killed commands completed as if nothing had happened? Kills them with SIGKILL at random moments, and compares.

    python benchmarks/kills.py [--count 200] [--seed 0] [--only KIND ...] [--json] [--folder FOLDER]

Each kind of work is done once undisturbed. Then it is begun, killed with its whole process group after a part of that
time that is drawn uniformly, and begun again as a user would (`train --resume`, otherwise the same command) until it
ends. Its files are compared with the undisturbed ones: digests of all models and checkpoints, results, samples, metrics
without times, tunings, claims, encoded texts. Exit status 1 on a difference; FOLDER keeps the files of both.

Commands are forks of this process, which has torch and elman imported, so that a start takes milliseconds (Linux only).
"""

import argparse
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
from elman.cli import main as elman_main

MOST_KILLS = 3
"""Of one run; the attempt after them is left alone."""

PR_SET_CHILD_SUBREAPER = 36

TRAINING = """
[training]
epochs = {epochs}
batch_size = 4
checkpoint_minutes = 0.001
optimiser = {{ kind = "adam", lr = 0.01 }}
averaging = {{ kind = "non-monotone", interval = 1 }}
window = {{ length = 8 }}
log_every = 5
"""

RECIPES = {
    "text": """
title = "words"
data = { kind = "text" }
[model]
encoder = { kind = "lookup", size = 8, dropout = 0.1, word_dropout = 0.1 }
core = { kind = "stack", sizes = [8, 8], weight_drop = 0.2, output_dropout = 0.1 }
output = { choice = { kind = "flat", tied = true } }
""",
    "music": """
title = "chords"
data = { kind = "music", pitches = 88, evaluation = { streams = 4 } }
[model]
encoder = { kind = "frames", size = 8, dropout = 0.1 }
core = { kind = "stack", sizes = [12], output_dropout = 0.1 }
output = { choice = { kind = "nade" } }
""",
    "pairs": """
title = "reversal"
data = { kind = "pairs", valid = 20, test = 20, max_source = 8, min_count = 2 }
[model]
encoder = { kind = "lookup", size = 16, dropout = 0.1 }
source = { encoder = { kind = "lookup", size = 16 }, stack = { sizes = [8] } }
core = { kind = "attentive", stack = { sizes = [16] }, output_dropout = 0.1 }
""",
    "series": """
title = "waves"
data = { kind = "series" }
[model]
encoder = { kind = "values", size = 6 }
core = { kind = "stack", sizes = [12], output_dropout = 0.05 }
output = { choice = { kind = "gaussian" } }
""",
}
EPOCHS = {"text": 4, "music": 4, "pairs": 4, "series": 6}


def write_inputs(folder: Path) -> None:
    """Recipes and data of all kinds, small and always the same."""
    draw = np.random.default_rng(0)
    chain = draw.dirichlet(np.full(20, 0.1), size=20).cumsum(1)
    word, words = 0, []
    for place in draw.random(60_000):
        word = min(int(chain[word].searchsorted(place)), 19)
        words.append(f"w{word}")
    lines = [" ".join(words[at : at + 9]) for at in range(0, len(words), 9)]
    (folder / "text.txt").write_text("\n".join(lines[:120]) + "\n")
    (folder / "encoding.txt").write_text("\n".join(lines * 4) + "\n")
    steps = {"train": 200, "valid": 40, "test": 40}
    rolls = {f"{name}_roll": np.eye(88, dtype=np.uint8)[30 + np.arange(size) % 4 * 2] for name, size in steps.items()}
    lengths = {f"{name}_len": np.full(size // 10, 10, np.int32) for name, size in steps.items()}
    np.savez(folder / "music.npz", **rolls, **lengths)
    pairs = [draw.choice(list("abcdefgh"), draw.integers(1, 7)) for _ in range(240)]
    (folder / "pairs.tsv").write_text("".join(f"{' '.join(one)}\t{' '.join(one[::-1]).upper()}\n" for one in pairs))
    (folder / "series.csv").write_text("wave\n" + "".join(f"{np.sin(at / 3):.6f}\n" for at in range(400)))
    for name, recipe in RECIPES.items():
        text = recipe + TRAINING.format(epochs=EPOCHS[name])
        (folder / f"{name}.toml").write_text(text.replace("length = 8", "") if name == "pairs" else text)


def train(inputs: Path, place: Path, kind: str, suffix: str) -> int:
    """Begin a run, or resume one that has a recipe."""
    out = place / "run"
    begun = (out / "recipe.toml").exists()
    what = ["--resume"] if begun else [str(inputs / f"{kind}.toml"), "--data", str(inputs / f"{kind}.{suffix}")]
    return elman_main(["train", *what, "--out", str(out), "--threads", "1", "--json"])


def encode(inputs: Path, place: Path) -> int:  # noqa: ARG001
    """Count the words of a text and encode it into the cache."""
    from elman.config.text import TextOptions
    from elman.data.text.corpus import open_corpus

    open_corpus(inputs / "encoding.txt", TextOptions())
    return 0


def tune(inputs: Path, place: Path) -> int:
    """Tune dynamic evaluation and the cache of a trained run, and evaluate with them."""
    if not (place / "run").exists():
        shutil.copytree(inputs / "trained" / "run", place / "copy", dirs_exist_ok=True)
        (place / "copy").rename(place / "run")
    tuning = ["--method", "dynamic+cache", "--tune", "--tune-tokens", "60", "--rule", "rms", "--threads", "1"]
    return elman_main(["evaluate", str(place / "run"), *tuning, "--json"])


def reproduce(inputs: Path, place: Path) -> int:
    """A claim on two recipes, trained by the processes of `elman reproduce`."""
    from elman.reproduce import claim, claims
    from elman.reproduce.comparison import lower

    claim.find = lambda name: inputs / name
    settings = {name: f"model.output.activation={name}" for name in ("softmax", "sigsoftmax")}
    made = claim.Claim(
        name="killed",
        sentence="sigsoftmax is lower",
        source="nowhere",
        arms=tuple(claim.Arm(name, claim.Source("text.toml", (setting,))) for name, setting in settings.items()),
        measure=claim.PERPLEXITY,
        comparisons=(lower("test perplexity", "sigsoftmax", "softmax"),),
        seeds=1,
    )
    claims.CLAIMS[made.name] = made
    where = ["--out", str(place / "out"), "--data", str(inputs / "text.txt")]
    return elman_main(["reproduce", made.name, *where, "--threads", "1", "--json"])


KINDS: dict[str, Callable[[Path, Path], int]] = {
    "text": lambda inputs, place: train(inputs, place, "text", "txt"),
    "music": lambda inputs, place: train(inputs, place, "music", "npz"),
    "pairs": lambda inputs, place: train(inputs, place, "pairs", "tsv"),
    "series": lambda inputs, place: train(inputs, place, "series", "csv"),
    "encoding": encode,
    "tuning": tune,
    "reproduce": reproduce,
}


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
            os.killpg(pid, signal.SIGKILL)
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
        self.tally.temporary += sum(1 for _ in place.rglob("*.tmp"))
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
    if "tuning" in kinds:
        (inputs / "trained").mkdir()
        if end(begin(KINDS["text"], inputs, inputs / "trained"), None):
            raise RuntimeError(f"the run to tune: {(inputs / 'trained' / '.log').read_text()}")
    found = [Undisturbed(kind, inputs, folder) for kind in kinds]
    draw = np.random.default_rng(seed)
    while (left := count - sum(one.tally.kills for one in found)) > 0 and max(one.tally.runs for one in found) < count:
        fewest = min(found, key=lambda one: (one.tally.kills, one.tally.runs))
        fewest.disturb(draw, min(int(draw.integers(1, MOST_KILLS + 1)), left))
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
