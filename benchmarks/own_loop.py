"""A training loop of one's own, JSON lines: `python benchmarks/own_loop.py [--turns N] [--threads N]`.

31 steps of `recipes/ptb/small-twin-mos.toml` (32 x 35 random words of 10,000, Adam) by each way to the loss, in turns,
each turn in a process of its own: seconds, processor seconds, peak memory in MB, and the last loss.

    parts        `elman.nn`: Embedding, LSTM and MixtureOfSoftmaxes, `output.nll`
    plain        the same with `output.fused = False`
    log_prob     `elman.build_model` and `model.log_prob`
    output.nll   `elman.build_model` and `model.output.nll`
"""

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

import elman
from elman import nn as enn

WORDS, STEPS, SHAPE = 10_000, 31, (2, 35, 32)
RECIPE = Path(__file__).parents[1] / "recipes/ptb/small-twin-mos.toml"
Way = tuple[Iterable[nn.Parameter], Callable[[Tensor, Tensor, Any], tuple[Tensor, Any]]]


def parts(*, fused: bool) -> Way:
    encoder = enn.Embedding(WORDS, 128, dropout=0.1)
    core = enn.LSTM(128, [384, 128], weight_drop=0.1, between_dropout=0.05, output_dropout=0.05)
    output = enn.MixtureOfSoftmaxes(128, WORDS, 3, 128, weight=encoder.weight, dropout=0.05)
    output.fused = fused

    def loss(inputs: Tensor, targets: Tensor, state: Any) -> tuple[Tensor, Any]:
        h, state = core(encoder(inputs), state)
        return output.nll(h, targets), enn.detach(state)

    return nn.ModuleList([encoder, core, output]).parameters(), loss


def recipe(way: str) -> Way:
    model = elman.build_model(elman.load_recipe(RECIPE).model, WORDS)

    def loss(inputs: Tensor, targets: Tensor, state: Any) -> tuple[Tensor, Any]:
        state = model.begin(inputs.shape[1]) if state is None else state
        if way == "log_prob":
            log_prob, state = model.log_prob(inputs, targets, state)
            return -log_prob.mean(), enn.detach(state)
        trace, state = model.trace(inputs, state)
        each = torch.full(targets.shape, 1 / targets.numel())
        return model.output.nll(model.output.contexts(trace), targets, each)[0], enn.detach(state)

    return model.parameters(), loss


WAYS: dict[str, Callable[[], Way]] = {
    "parts": lambda: parts(fused=True),
    "plain": lambda: parts(fused=False),
    "log_prob": lambda: recipe("log_prob"),
    "output.nll": lambda: recipe("output.nll"),
}


def measure(way: str, threads: int) -> dict[str, Any]:
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    parameters, loss_of = WAYS[way]()
    optimiser = torch.optim.Adam(parameters, 5e-3, betas=(0.0, 0.99))
    state, begun, used = None, time.perf_counter(), time.process_time()
    for _ in range(STEPS):
        inputs, targets = torch.randint(WORDS, SHAPE)
        optimiser.zero_grad()
        loss, state = loss_of(inputs, targets, state)
        loss.backward()
        optimiser.step()
    seconds, processor = time.perf_counter() - begun, time.process_time() - used
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    figures = {"seconds": round(seconds, 2), "processor_seconds": round(processor, 2), "peak_mb": round(peak)}
    return {"way": way, **figures, "loss": round(loss.item(), 4)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--way", choices=WAYS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.way:
        print(json.dumps(measure(options.way, options.threads)), flush=True)
        return
    for _ in range(options.turns):
        for way in WAYS:
            subprocess.run([sys.executable, __file__, "--way", way, "--threads", str(options.threads)], check=True)


if __name__ == "__main__":
    main()
