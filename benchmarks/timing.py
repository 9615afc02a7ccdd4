"""Timing of alternatives: warmed up and in turns, so that whatever else runs falls on all of them alike."""

import argparse
import time
from collections.abc import Callable
from statistics import median

import torch

from elman.files import json_text
from elman.network.device import choose_device
from elman.network.fast import matmul, policy

Candidates = dict[str, Callable[[], object]]


def add_device(parser: argparse.ArgumentParser) -> None:
    """The option --device, a device as elman chooses it: products in float32 are those of float32, not TF32."""
    parser.add_argument("--device", type=choose_device, default="cpu", help="cpu or cuda (default: cpu)")


def waited(options: argparse.Namespace) -> float:
    """The clock, after all that the device has still to do."""
    if options.device.type == "cuda":
        torch.cuda.synchronize(options.device)
    return time.process_time() if options.cpu_time else time.perf_counter()


def arguments(description: str, parts: tuple[str, ...], *, devices: bool = False) -> argparse.Namespace:
    """The options every benchmark has, and --device where it runs on several `devices`; sets the number of threads."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("parts", nargs="*", default=parts, metavar="PART", help=f"of {', '.join(parts)}")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--cpu-time", action="store_true", help="processor time; with --threads 1, for a busy machine")
    if devices:
        add_device(parser)
    else:
        parser.set_defaults(device=torch.device("cpu"))
    options = parser.parse_args()
    if unknown := set(options.parts) - set(parts):
        parser.error(f"no such part: {', '.join(sorted(unknown))}; there are {', '.join(parts)}")
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    return options


def in_turns(candidates: Candidates, options: argparse.Namespace) -> dict[str, list[float]]:
    """Seconds of each candidate, sorted; a repetition runs every candidate once, the first one uncounted."""
    seconds: dict[str, list[float]] = {name: [] for name in candidates}
    for repetition in range(options.repetitions + 1):
        for name, run in candidates.items():
            start = waited(options)
            run()
            if repetition:
                seconds[name].append(waited(options) - start)
    return {name: sorted(values) for name, values in seconds.items()}


def report(facts: dict[str, object], gflop: float, candidates: Candidates, options: argparse.Namespace) -> float:
    """Print one JSON line for each candidate, of work `gflop`; return the best rate seen, in GFLOP/s."""
    best = 0.0
    for name, seconds in in_turns(candidates, options).items():
        rate = gflop / median(seconds)
        best = max(best, gflop / seconds[0])
        times = {key: round(1e3 * value, 3) for key, value in spread(seconds).items()}
        print(json_text(facts | {"candidate": name} | times | {"gflops": round(rate, 1)}), flush=True)
    return best


def repeated(candidates: Candidates, times: int) -> Candidates:
    """Each candidate run several times in its turn, with what it reads in the cache as in a loop."""

    def repeat(run: Callable[[], object]) -> Callable[[], object]:
        return lambda: [run() for _ in range(times)]

    return {name: repeat(run) for name, run in candidates.items()}


def spread(seconds: list[float]) -> dict[str, float]:
    """Least, median and greatest."""
    return {"min_ms": seconds[0], "median_ms": median(seconds), "max_ms": seconds[-1]}


def peak(options: argparse.Namespace, quiet: bool = False) -> float:
    """The machine's best rate for a product of 2048 x 2048 matrices, GFLOP/s."""
    size = 2048
    a, b = (torch.randn(size, size, device=options.device) for _ in range(2))
    candidates: Candidates = {"torch.mm": lambda: a @ b}
    packed = matmul.pack(b, size, policy.PACKING_USES)
    candidates["kernels.product"] = lambda: matmul.multiply(a, packed)
    if quiet:
        return max(2 * size**3 / 1e9 / seconds[0] for seconds in in_turns(candidates, options).values())
    facts: dict[str, object] = {"part": "peak", "threads": options.threads, "cpu_time": options.cpu_time}
    return report(facts, 2 * size**3 / 1e9, candidates, options)
