"""Linear and matrix recurrences over a training window, every form beside the plain loop: `python benchmarks/scan.py`.

The parts: `real` and `complex`, h_t = a_t h_{t-1} + b_t by every form of `fast/diagonal.py`; `chunks`, the cells
with matrices by chunks of several lengths.
"""

import argparse
from collections.abc import Callable
from unittest.mock import patch

import torch
from torch import Tensor

import timing
from elman import config
from elman.network.cells.cell import unroll
from elman.network.cores.layer import Layer
from elman.network.fast import chunked, diagonal

WINDOWS = ((35, 20, 200), (70, 80, 650), (512, 1, 200), (512, 20, 200))
"""(T, B, H)."""

LENGTHS = (4, 8, 16, 35)
CELLS: dict[str, config.Cell] = {
    "mlstm": config.MLSTM(),
    "mamba2": config.Mamba2(),
    "deltanet": config.DeltaNet(),
    "rwkv7": config.RWKV7(),
}


def forms(options: argparse.Namespace, kind: str) -> None:
    dtype = torch.float32 if kind == "real" else torch.complex64
    for steps, rows, size in WINDOWS:
        a, b = torch.rand(2, steps, rows, size).to(dtype)
        given = [a.requires_grad_(), b.requires_grad_(), torch.zeros(rows, size, dtype=dtype).requires_grad_()]
        candidates: timing.Candidates = {
            form.__name__: lambda form=form, given=given: _gradients(form, given)
            for form in (diagonal.plain, diagonal.loop, diagonal.blocks, diagonal.doubling, diagonal.logarithms)
            if kind == "real" or form is not diagonal.logarithms
        }
        timing.report({"part": kind, "T": steps, "B": rows, "H": size}, 0.0, candidates, options)


def _gradients(form: Callable[..., Tensor], given: list[Tensor]) -> None:
    torch.autograd.grad(form(*given).abs().sum(), given)


def chunks(options: argparse.Namespace) -> None:
    steps, rows, size = 35, 20, 200
    xs = torch.randn(steps, rows, size)
    for name, recipe in CELLS.items():
        layer = Layer(recipe, size, size)
        layer.initialise(config.Initialisation())
        candidates: timing.Candidates = {
            f"{name}, chunks of {length}": lambda layer=layer, length=length: _in_chunks(layer, xs, length)
            for length in LENGTHS
        }
        candidates[f"{name}: loop"] = lambda layer=layer: _train(
            layer, unroll(layer.cell.step, layer.weights(), xs, layer.begin(rows))[0]
        )
        timing.report({"part": "chunks", "cell": name, "T": steps, "B": rows, "H": size}, 0.0, candidates, options)


def _in_chunks(layer: Layer, xs: Tensor, length: int) -> None:
    with patch.object(chunked, "LENGTH", length):
        _train(layer, layer(xs, layer.begin(xs.shape[1]))[0])


def _train(layer: Layer, outputs: Tensor) -> None:
    torch.autograd.grad(outputs.sum(), list(layer.parameters()), allow_unused=True)


def main() -> None:
    options = timing.arguments(__doc__ or "", ("real", "complex", "chunks"))
    for part in options.parts:
        chunks(options) if part == "chunks" else forms(options, part)


if __name__ == "__main__":
    main()
