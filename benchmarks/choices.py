"""Seconds and memory of a training step of each choice, JSON lines: `python benchmarks/choices.py [V ...]`.

Forward and backward of 700 positions, 20 columns of 35 steps, with targets by Zipf's law, over contexts of width 256,
at 10k, 100k and 800k words; `flat` is the full softmax, fused. Targets are drawn afresh for every step, since products
may be compiled for their shapes. Memory is the most a step takes beyond what the process had with its weights, so
their gradient is in it, measured in a process of its own.
"""

import json
import subprocess
import sys
from collections.abc import Callable

import torch

import timing
from elman import config
from elman.network.encoders.encoder import build_encoder
from elman.network.output.choice import Choice, build_choice, zipf
from mixture import high_water

POSITIONS, WIDTH = 700, 256
VOCABULARIES = {"10k": 10_000, "100k": 100_000, "800k": 800_000}
CUTOFFS = {"10k": (1000, 4000), "100k": (2000, 20_000), "800k": (4000, 40_000, 200_000)}


def choices(size: str) -> dict[str, config.Output]:
    """The candidates."""
    adaptive = config.Adaptive(cutoffs=CUTOFFS[size])
    found = {
        "flat": config.Output(),
        "adaptive": config.Output(choice=adaptive),
        "adaptive sigsoftmax": config.Output(choice=adaptive, activation="sigsoftmax"),
        "tree by frequency": config.Output(choice=config.Tree()),
        "tree at random": config.Output(choice=config.Tree(assignment="random")),
    }
    if size == "10k":
        found["monotone"] = config.Output(choice=config.Monotone())
        found["mixtape"] = config.Output(choice=config.Mixtape())
    return found


def made(recipe: config.Output, num_words: int) -> Choice:
    """A choice with random weights."""
    choice = build_choice(recipe, WIDTH, build_encoder(config.Lookup(size=1), num_words, locked=True), num_words)
    for parameter in choice.parameters():
        torch.nn.init.uniform_(parameter, -0.1, 0.1)
    return choice


def step(choice: Choice, positions: int, num_words: int) -> Callable[[], None]:
    """A step's work; the gradients are freed, as by an optimiser that sets them to None."""
    context = torch.randn(positions, 1, WIDTH, requires_grad=True)
    frequency = zipf(num_words)
    weight, log_prior = torch.full((positions,), 1 / positions), torch.zeros(positions, 1)
    leaves = [context, *choice.parameters()]

    def run() -> None:
        target = torch.multinomial(frequency, positions, replacement=True)
        total, _ = choice.mixture_nll(context, log_prior, target, weight)
        torch.autograd.grad(total, leaves)

    return run


def compare(size: str, options: object) -> None:
    num_words = VOCABULARIES[size]
    for name, recipe in choices(size).items():
        choice = made(recipe, num_words)
        seconds = timing.in_turns({name: step(choice, POSITIONS, num_words)}, options)[name]  # type: ignore[arg-type]
        cost = choice.multiply_adds(zipf(num_words))
        times = {key: round(1e3 * value, 1) for key, value in timing.spread(seconds).items()}
        line: dict[str, object] = {"words": num_words, "choice": name, **times}
        line["us_per_position"] = round(1e6 * timing.median(seconds) / POSITIONS, 1)
        line["multiply_adds_per_position"] = round(cost)
        line["memory_mb"] = memory(size, name)
        line["weights_mb"] = round(4e-6 * sum(parameter.numel() for parameter in choice.parameters()), 1)
        print(json.dumps(line), flush=True)
        del choice


def memory(size: str, name: str) -> float:
    """Peak memory (MB) of a step in a fresh process, beyond its peak before the step."""
    command = [sys.executable, __file__, "--measure-memory", size, name]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def measure_memory(size: str, name: str) -> None:
    torch.set_num_threads(1)
    step(made(config.Output(choice=config.Tree()), 10), 2, 10)()
    run = step(made(choices(size)[name], VOCABULARIES[size]), POSITIONS, VOCABULARIES[size])
    before = high_water()
    run()
    print(round(high_water() - before, 1))


def main() -> None:
    if sys.argv[1:2] == ["--measure-memory"]:
        measure_memory(*sys.argv[2:])
        return
    options = timing.arguments(__doc__ or "", tuple(VOCABULARIES))
    timing.peak(options)
    for size in options.parts:
        compare(size, options)


if __name__ == "__main__":
    main()
