"""The mixture likelihood beside its plain form, JSON lines: `python benchmarks/mixture.py [PART ...]`.

The parts: `mixture`, 15 components; `flat`, one component; `wide`, 33 278 symbols; `chunks`, chunk sizes.
Each line gives the fraction of the machine's peak that the three products (one without gradients) reach, and
the most memory a step takes beyond what the process had, measured in a process of its own.
"""

import argparse
import json
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor
from torch.nn.functional import linear

import timing
from elman.network.fast import mixture, mixture_products
from elman.network.output.activation import log_g

SHAPES = {"mixture": (840, 15, 10_000, 280), "flat": (1400, 1, 10_000, 400), "wide": (350, 1, 33_278, 400)}


def plain(
    context: Tensor,
    log_prior: Tensor,
    weight: Tensor,
    bias: Tensor,
    target: Tensor,
    position_weight: Tensor,
    activation: str,
) -> tuple[Tensor, Tensor]:
    scores = log_g(linear(context, weight, bias), activation)
    chosen = scores.gather(-1, target.view(-1, 1, 1).expand(-1, scores.shape[1], 1)).squeeze(-1)
    nll = -torch.logsumexp(log_prior + chosen - scores.logsumexp(-1), -1)
    return (position_weight * nll).sum(), nll


FORMS: dict[str, Callable[..., tuple[Tensor, Tensor]]] = {"plain": plain, "kernel": mixture.nll}


def steps(
    shape: tuple[int, int, int, int], form: str, activation: str, device: torch.device
) -> dict[str, Callable[[], None]]:
    """One training step's work and one evaluation's."""
    n, k, v, d = shape
    leaves = [
        torch.randn(n, k, d, device=device),
        torch.randn(n, k, device=device).log_softmax(-1),
        0.05 * torch.randn(v, d, device=device),
        torch.zeros(v, device=device),
    ]
    for leaf in leaves:
        leaf.requires_grad_()
    target, position_weight = torch.randint(v, (n,), device=device), torch.full((n,), 1 / n, device=device)

    def train() -> None:
        total, _ = FORMS[form](*leaves, target, position_weight, activation)
        torch.autograd.grad(total, leaves)

    def evaluate() -> None:
        with torch.no_grad():
            FORMS[form](*leaves, target, position_weight, activation)

    return {"train": train, "evaluate": evaluate}


def compare(part: str, peak: float, options: argparse.Namespace) -> None:
    n, k, v, d = shape = SHAPES[part]
    for activation in ("softmax", "sigsoftmax"):
        runs = {form: steps(shape, form, activation, options.device) for form in FORMS}
        for mode, products in (("train", 3), ("evaluate", 1)):
            seconds = timing.in_turns({form: run[mode] for form, run in runs.items()}, options)
            for form, times in seconds.items():
                gflops = 2e-9 * products * n * k * v * d / timing.median(times)
                line: dict[str, object] = {
                    "part": part,
                    "activation": activation,
                    "mode": mode,
                    "candidate": form,
                }
                line |= {key: round(1e3 * value, 1) for key, value in timing.spread(times).items()}
                line |= {"gflops": round(gflops, 1), "fraction_of_peak": round(gflops / peak, 3)}
                line["memory_mb"] = memory(part, form, activation, mode, str(options.device))
                print(json.dumps(line), flush=True)


def memory(*what: str) -> float:
    """Peak memory (MB) of one step in a fresh process, beyond its peak before the step."""
    command = [sys.executable, __file__, "--measure-memory", *what]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def measure_memory(part: str, form: str, activation: str, mode: str, device: str) -> None:
    torch.set_num_threads(1)
    place = torch.device(device)
    run = steps(SHAPES[part], form, activation, place)[mode]
    steps((1, 1, 2, 2), form, activation, place)[mode]()
    before = high_water(place)
    run()
    print(round(high_water(place) - before, 1))


def high_water(device: torch.device) -> float:
    """The most memory this process has had there, MB; on Linux `ru_maxrss` would count its parent's too."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device) / 2**20
    status = Path("/proc/self/status")
    if status.exists():
        return int(status.read_text().split("VmHWM:")[1].split()[0]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def chunks(peak: float, options: argparse.Namespace) -> None:
    kind = options.device.type
    usual = mixture_products.CHUNK_BYTES[kind]
    for part, shape in SHAPES.items():
        n, k, v, d = shape
        run = steps((n // 4, k, v, d), "kernel", "softmax", options.device)["train"]

        def sized(megabytes: int, run: Callable[[], None] = run) -> None:
            mixture_products.CHUNK_BYTES[kind] = megabytes << 20
            run()

        sizes = (4, 8, 12, 16, 24, 30, 48) if kind == "cpu" else (16, 64, 256, 1024)
        candidates: timing.Candidates = {f"{m} MB": lambda m=m, f=sized: f(m) for m in sizes}
        timing.report({"part": "chunks", "of": part, "peak": peak}, 6e-9 * (n // 4) * k * v * d, candidates, options)
        mixture_products.CHUNK_BYTES[kind] = usual


def main() -> None:
    if sys.argv[1:2] == ["--measure-memory"]:
        measure_memory(*sys.argv[2:])
        return
    options = timing.arguments(__doc__ or "", (*SHAPES, "chunks"), devices=True)
    peak = timing.peak(options)
    for part in options.parts:
        if part == "chunks":
            chunks(peak, options)
        else:
            compare(part, peak, options)


if __name__ == "__main__":
    main()
