"""A training window of one layer by every cell, and of other cores: `python benchmarks/cells.py [PART ...]`.

The parts: `cells`, each beside the LSTM, and its plain loop where it has a faster form; `wide`, the Mogrifier in wide
layers; `steps`, ten single steps of one row without gradients, by that form and by the plain step; `cores`, whole ones.
"""

import argparse
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

import timing
from elman import config
from elman.network.cells.cell import Scan, unroll
from elman.network.cores.core import RecurrentCore, build_core
from elman.network.cores.layer import Layer
from elman.network.cores.reservoir import ReservoirCore

STEPS, ROWS, SIZE = 35, 20, 200
SINGLE = 10
"""Single steps that are timed together."""

CELLS: dict[str, config.Cell] = {
    "lstm": config.LSTM(),
    "elman": config.Elman(),
    "lstm, no forget gate": config.LSTM(forget_gate=False),
    "lstm, peepholes": config.LSTM(peepholes=True),
    "lstm, coupled": config.LSTM(input_gate="coupled"),
    "lstm, capped": config.LSTM(input_gate="capped"),
    "gru, reset after": config.GRU(),
    "gru, reset before": config.GRU(reset="before"),
    "ladder, forget": config.Ladder(),
    "ladder, input": config.Ladder(rung="input"),
    "elman, softplus": config.Elman(nonlinearity="softplus"),
    "continuous": config.Continuous(),
    "continuous, learned": config.Continuous(tau=(2.0, 64.0), learned=True),
    "unitary": config.Unitary(),
    "highway, depth 5": config.Highway(),
    "mogrifier, 5 rounds": config.Mogrifier(),
    "mogrifier, 5 rounds of rank 20": config.Mogrifier(rank=20),
    "min-gru": config.MinGRU(),
    "min-lstm": config.MinLSTM(),
    "qrnn": config.QRNN(),
    "sru": config.SRU(),
    "lru": config.LRU(),
    "rg-lru": config.RGLRU(),
    "slstm": config.SLSTM(),
    "mlstm": config.MLSTM(),
    "mamba2": config.Mamba2(),
    "deltanet": config.DeltaNet(),
    "rwkv7": config.RWKV7(),
    "local attention": config.LocalAttention(),
}
WIDE = ((35, 20, 192, 384), (64, 16, 64, 640), (64, 16, 64, 1152), (70, 20, 850, 850))
"""Steps, rows, inputs and units of wider layers."""

CORES: dict[str, config.Core] = {
    "two layers": config.Stack(sizes=(SIZE, SIZE)),
    "graves": config.Stack(sizes=(SIZE, SIZE), connections="graves"),
    "melis": config.Stack(sizes=(SIZE, SIZE), connections="melis"),
    "residual, lstm": config.Residual(size=SIZE),
    "residual, min-gru": config.Residual(size=SIZE, cell=config.MinGRU()),
    "jordan, target": config.Jordan(size=SIZE, feedback="target", decay=0.5),
    "reservoir, 1000": config.Reservoir(size=1000),
    "turing machine, 128 x 20": config.TuringMachine(size=SIZE),
    "turing machine, 64 x 16": config.TuringMachine(size=SIZE, rows=64, width=16),
    "turing machine, 4 + 4 heads": config.TuringMachine(size=SIZE, read_heads=4, write_heads=4),
    "turing machine, feed-forward": config.TuringMachine(size=SIZE, controller=config.Perceptron()),
}


def layer_of(recipe: config.Cell, inputs: int = SIZE, units: int = SIZE) -> Layer:
    layer = Layer(recipe, inputs, units)
    for parameter in layer.parameters():
        torch.nn.init.normal_(parameter, 0, 0.05)
    return layer


def cells(options: argparse.Namespace) -> None:
    _training("cells", CELLS, (STEPS, ROWS, SIZE, SIZE), options)


def wide(options: argparse.Namespace) -> None:
    some: dict[str, config.Cell] = {
        "lstm": config.LSTM(),
        "mogrifier, 2 rounds": config.Mogrifier(rounds=2),
        "mogrifier, 5 rounds": config.Mogrifier(),
        "mogrifier, 5 rounds of rank 20, capped": config.Mogrifier(rank=20, input_gate="capped"),
    }
    for shape in WIDE:
        _training("wide", some, shape, options)


def _training(
    part: str, recipes: dict[str, config.Cell], shape: tuple[int, int, int, int], options: argparse.Namespace
) -> None:
    num_steps, rows, inputs, units = shape
    xs = torch.randn(num_steps, rows, inputs)
    candidates: timing.Candidates = {}
    for name, recipe in recipes.items():
        layer = layer_of(recipe, inputs, units)
        candidates[name] = lambda layer=layer: _train(lambda: layer(xs, layer.begin(rows))[0], layer)
        candidates[f"{name}: loop"] = lambda layer=layer: _train(
            lambda: unroll(layer.cell.step, layer.weights(), xs, layer.begin(rows))[0], layer
        )
    timing.report({"part": part, "T": num_steps, "B": rows, "I": inputs, "H": units}, 0.0, candidates, options)


@torch.inference_mode()
def steps(options: argparse.Namespace) -> None:
    xs = torch.randn(1, 1, SIZE)
    candidates: timing.Candidates = {}
    for name, recipe in CELLS.items():
        layer = layer_of(recipe).eval()
        candidates[name] = lambda layer=layer: _single(layer.cell.scan, layer, xs)
        candidates[f"{name}: step"] = lambda layer=layer: _single(partial(unroll, layer.cell.step), layer, xs)
    timing.report({"part": "steps", "steps": SINGLE, "B": 1, "I": SIZE, "H": SIZE}, 0.0, candidates, options)


def _single(sequence: Scan, layer: Layer, xs: Tensor) -> None:
    state, weights = layer.begin(1), layer.weights()
    for _ in range(SINGLE):
        _, state = sequence(weights, xs, state)


def cores(options: argparse.Namespace) -> None:
    xs = torch.randn(STEPS, ROWS, SIZE)
    candidates: timing.Candidates = {}
    for name, recipe in CORES.items():
        core = build_core(recipe, SIZE, locked=True)
        for parameter in core.parameters():
            torch.nn.init.normal_(parameter, 0, 0.05)
        if isinstance(core, ReservoirCore):
            core.draw()
        candidates[name] = lambda core=core: _window(core, xs)
    timing.report({"part": "cores", "T": STEPS, "B": ROWS, "I": SIZE}, 0.0, candidates, options)


def _window(core: RecurrentCore, xs: Tensor) -> None:
    if isinstance(core, ReservoirCore):
        core(xs, core.begin(ROWS))
    else:
        _train(lambda: core(xs, core.begin(ROWS))[0].top, core)


def _train(outputs: Callable[[], Tensor], module: torch.nn.Module) -> None:
    torch.autograd.grad(outputs().sum(), list(module.parameters()))


def main() -> None:
    parts = {"cells": cells, "wide": wide, "steps": steps, "cores": cores}
    options = timing.arguments(__doc__ or "", tuple(parts))
    for part in options.parts:
        parts[part](options)


if __name__ == "__main__":
    main()
