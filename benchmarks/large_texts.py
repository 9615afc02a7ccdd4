"""Large texts: memory, speed and use of the cores of each command: `python benchmarks/large_texts.py FOLDER`.

A corpus in the layout of One Billion Word is generated in FOLDER (unless it is there), whose words are drawn from a
power law with so many types that a corpus of 2 GB has some 800,000 words of three occurrences or more. Every command
runs in a fresh process. Peak memory is that of the process itself (ru_maxrss), and the largest sum over it and all its
children at one moment (proportional set sizes, so that shared pages count once; Linux only).
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np

TRAIN = "training-monolingual.tokenized.shuffled/news.en-{:05d}-of-{:05d}"
HELD_OUT = "heldout-monolingual.tokenized.shuffled/news.en.heldout-{:05d}-of-00050"
RECIPE = "recipes/one-billion-word/adaptive-softmax.toml"
SMALL = (
    "data.max_vocabulary=20000",
    "model.encoder.size=128",
    "model.core.sizes=[256]",
    "model.output.choice.cutoffs=[2000,10000]",
    "training.batch_size=64",
    "training.log_every=100",
)
"""The recipe with a model whose weights are small beside the memory that is asked about."""

_DIGITS = "etaoinshrdlucmfwypvbgk"


def word(rank: int) -> str:
    """The word of a rank: the rarer, the longer."""
    letters = ""
    rank += 12_000
    while rank:
        rank, digit = divmod(rank, len(_DIGITS))
        letters += _DIGITS[digit]
    return letters


def law(types: int, exponent: float) -> np.ndarray:
    """The cumulative probabilities of the ranks, Zipf's law with Mandelbrot's shift."""
    weights = 1.0 / (np.arange(types) + 2.7) ** exponent
    return np.cumsum(weights) / weights.sum()


def write_shard(path: Path, size: int, types: int, exponent: float, seed: int) -> int:
    """Write sentences of words until there are `size` bytes; returns the number of tokens, line ends included."""
    draw, cumulative, tokens, written = np.random.default_rng(seed), law(types, exponent), 0, 0
    words = np.array([word(rank) for rank in range(types)], dtype=object)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        while written < size:
            lengths = draw.integers(5, 46, 20_000)
            chosen = words[np.searchsorted(cumulative, draw.random(lengths.sum()))].tolist()
            lines, at = [], 0
            for length in lengths.tolist():
                lines.append(" ".join(chosen[at : at + length]))
                at += length
            text = "\n".join(lines) + "\n"
            text = text[: text.rfind("\n", 0, size - written) + 1] or text[: text.index("\n") + 1]
            tokens += len(text.split()) + text.count("\n")
            written += file.write(text)
    return tokens


def generate(folder: Path, megabytes: int, shards: int, types: int, exponent: float, jobs: int) -> None:
    """A corpus of so many megabytes of training text, and two shards of 1 MB that are held out."""
    size = megabytes * 1_000_000 // shards
    wanted = [(folder / TRAIN.format(number, shards + 1), size, number) for number in range(1, shards + 1)]
    wanted += [(folder / HELD_OUT.format(number), 1_000_000, 1000 + number) for number in range(2)]
    with ProcessPoolExecutor(jobs) as executor:
        made = [executor.submit(write_shard, path, bytes_, types, exponent, seed) for path, bytes_, seed in wanted]
        tokens = sum(one.result() for one in made)
    print(f"{folder}: {megabytes} MB in {shards} shards, {tokens:,} tokens", flush=True)


def proportional(process: int) -> int:
    """The sum of the proportional set sizes of a process and its children, in bytes."""
    total = 0
    try:
        rollup = Path(f"/proc/{process}/smaps_rollup").read_text()
        total += 1024 * int(re.search(r"^Pss:\s+(\d+)", rollup, re.MULTILINE)[1])
        for thread in Path(f"/proc/{process}/task").iterdir():
            for child in (thread / "children").read_text().split():
                total += proportional(int(child))
    except (OSError, TypeError):
        pass
    return total


def measured(name: str, command: list[str], log: Path, tokens: int | None = None) -> dict[str, object]:
    """Run a command; its seconds, its peak memory (MB), the cores that it used, and tokens per second."""
    started, peak, done = time.monotonic(), [0], threading.Event()
    with log.open("wb") as out:
        child = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT)

        def watch() -> None:
            while not done.wait(0.2):
                peak[0] = max(peak[0], proportional(child.pid))

        watcher = threading.Thread(target=watch)
        watcher.start()
        _, status, used = os.wait4(child.pid, 0)
        done.set()
        watcher.join()
    seconds = time.monotonic() - started
    if os.waitstatus_to_exitcode(status):
        print(log.read_text()[-3000:], file=sys.stderr)
        raise SystemExit(f"{name}: failed")
    row = {
        "command": name,
        "seconds": round(seconds, 1),
        "peak_mb": round(used.ru_maxrss / 1e3),
        "peak_with_children_mb": round(peak[0] / 1e6),
        "cores": round((used.ru_utime + used.ru_stime) / seconds, 2),
        "tokens_per_s": None if tokens is None else round(tokens / seconds),
    }
    print(json.dumps(row), flush=True)
    return row


def elman(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "elman", *arguments]


def counts_of(log: Path) -> dict[str, int]:
    """The tokens of each split, from what `elman data prepare --json` printed."""
    found = json.loads(log.read_text()[log.read_text().index("{") :])
    print(json.dumps({"vocabulary": found["vocabulary"]["size"], "digest": found["digest"]}), flush=True)
    return {name: split["tokens"] for name, split in found["splits"].items()}


def run(folder: Path, minutes: float) -> None:
    """Every command on the corpus of a folder, with a cache of its own."""
    corpus, cache, logs = folder / "corpus", folder / "cache", folder / "logs"
    for old in (cache, folder / "run"):
        shutil.rmtree(old, ignore_errors=True)
    logs.mkdir(exist_ok=True)
    os.environ["ELMAN_CACHE"] = str(cache)
    sets = [part for one in SMALL for part in ("--set", one)]
    log = logs / "prepare.log"
    measured("prepare, V of the recipe", elman("data", "prepare", str(corpus), "--recipe", RECIPE, "--json"), log)
    full = sum(counts_of(log).values())
    print(json.dumps({"tokens": full}), flush=True)
    shutil.rmtree(cache)
    measured("prepare", elman("data", "prepare", str(corpus), "--recipe", RECIPE, *sets[:2], "--json"), log)
    test = counts_of(log)["test"]
    train = ["train", RECIPE, "--data", str(corpus), "--out", str(folder / "run"), "--max-minutes", str(minutes), *sets]
    measured("train", elman(*train), logs / "train.log")
    evaluate = ["evaluate", str(folder / "run"), "--streams", "16"]
    measured("evaluate", elman(*evaluate), logs / "evaluate.log", test)
    held_out = [str(corpus / HELD_OUT.format(number)) for number in range(2)]
    scored = ["score", str(folder / "run"), held_out[0], "--by", "sentence", "--out", str(folder / "scored.tsv")]
    measured("score", elman(*scored), logs / "score.log", test)
    counted = ["ngram", "train", held_out[1], "--order", "3", "--out", str(folder / "held-out.arpa.gz")]
    measured("ngram train, 1 MB", elman(*counted), logs / "ngram.log")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--megabytes", type=int, default=2000)
    parser.add_argument("--shards", type=int, default=20)
    parser.add_argument("--types", type=int, default=3_000_000)
    parser.add_argument("--exponent", type=float, default=1.33)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--minutes", type=float, default=2.0, help="of training")
    parser.add_argument("--generate", action="store_true", help="only generate the corpus")
    options = parser.parse_args()
    corpus = options.folder / "corpus"
    if not corpus.exists():
        generate(corpus, options.megabytes, options.shards, options.types, options.exponent, options.jobs)
    if not options.generate:
        run(options.folder, options.minutes)


if __name__ == "__main__":
    main()
