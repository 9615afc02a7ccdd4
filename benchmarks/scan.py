"""Linear and matrix recurrences over a training window, every form beside the plain loop: `python benchmarks/scan.py`.

The parts: `real` and `complex`, h_t = a_t h_{t-1} + b_t by the forms of `fast/diagonal.py` and two that were slower;
`chunks`, the cells with matrices by chunks of several lengths.
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


def blocks(a: Tensor, b: Tensor, start: Tensor) -> Tensor:
    """Blocks of about sqrt(T) steps as if each began at zero, then what is carried over: O(sqrt(T)) operations."""
    steps = len(a)
    length = max(1, round(steps**0.5))
    count = -(-steps // length)
    padding = count * length - steps
    if padding:
        a = torch.cat([a, a.new_ones(padding, *a.shape[1:])])
        b = torch.cat([b, b.new_zeros(padding, *b.shape[1:])])
    within, products = [], []
    h, product = torch.zeros_like(b[:count]), torch.ones_like(a[:count])
    for factor, drive in zip(
        a.unflatten(0, (count, length)).unbind(1), b.unflatten(0, (count, length)).unbind(1), strict=True
    ):
        h, product = factor * h + drive, factor * product
        within.append(h)
        products.append(product)
    carried = [start]
    for last, over in zip(h[:-1], product[:-1], strict=True):
        carried.append(over * carried[-1] + last)
    states = torch.stack(within, 1) + torch.stack(products, 1) * torch.stack(carried).unsqueeze(1)
    return states.flatten(0, 1)[:steps]


def logarithms(a: Tensor, b: Tensor, start: Tensor) -> Tensor:
    """h_t = exp(A_t) h_0 + exp(A_t + log sum_s exp(log b_s - A_s)) for a > 0 and b > 0 (Heinsen 2023).

    A_t is the sum of log a up to t.
    """
    sums = a.log().cumsum(0)
    return sums.exp() * start + (sums + torch.logcumsumexp(b.log() - sums, 0)).exp()


def forms(options: argparse.Namespace, kind: str) -> None:
    dtype = torch.float32 if kind == "real" else torch.complex64
    for steps, rows, size in WINDOWS:
        a, b = torch.rand(2, steps, rows, size).to(dtype)
        given = [a.requires_grad_(), b.requires_grad_(), torch.zeros(rows, size, dtype=dtype).requires_grad_()]
        candidates: timing.Candidates = {
            form.__name__: lambda form=form, given=given: _gradients(form, given)
            for form in (diagonal.plain, diagonal.loop, blocks, diagonal.doubling, logarithms)
            if kind == "real" or form is not logarithms
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
