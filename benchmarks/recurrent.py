"""The recurrent products and sequence functions, JSON lines: `python benchmarks/recurrent.py [PART ...]`.

The parts: `products`, the narrow product of one step in every layout, ten in a row; `lstm` and `gru`, whole
windows, with and without gradients; `small`, small products by both libraries; `narrow`, GRUs of few units without
gradients; `stream`, one token at a time through three layers of 1150. The table in `elman.network.fast.lstm`
comes from `--threads 1 --cpu-time lstm`, the table of `fast.gru` from `--threads 1 --cpu-time narrow`.
"""

import argparse
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor
from torch.nn.functional import linear

import timing
from elman.network.cells.cell import Scan, Weights, unroll
from elman.network.cells.gru import GRU
from elman.network.cells.lstm import LSTM
from elman.network.fast import gru, lstm, matmul, policy

PRODUCTS = [(20, 1150), (20, 650), (20, 256), (12, 960), (1, 1150), (40, 400), (80, 1150)]
WINDOWS = [
    (70, 20, 1150, 1150),
    (70, 20, 400, 1150),
    (35, 20, 650, 650),
    (35, 20, 200, 256),
    (70, 12, 280, 960),
    (50, 100, 128, 1024),
    (70, 80, 400, 400),
]
SMALL = [(1, 64), (20, 64), (1, 128), (10, 128), (20, 128), (10, 200), (20, 200), (10, 256), (20, 256), (1, 650)]
NARROW = [
    (1, 1, 128, 128),
    (1, 1, 650, 650),
    (700, 1, 128, 128),
    (700, 1, 400, 400),
    (700, 1, 650, 650),
    (35, 20, 200, 200),
    (35, 20, 300, 300),
    (35, 20, 650, 650),
]


def products(options: argparse.Namespace) -> None:
    for rows, size in PRODUCTS:
        h, w, d = torch.randn(rows, size), torch.randn(4 * size, size), torch.randn(rows, 4 * size)
        w_t, h_t, d_t = w.t().contiguous(), h.t().contiguous(), d.t().contiguous()
        packed, packed_t = matmul.pack(w, rows, 100), matmul.pack(w_t, rows, 100)
        forward: timing.Candidates = {
            "h @ W.t()": lambda h=h, w=w: h @ w.t(),
            "h @ Wt": lambda h=h, w_t=w_t: h @ w_t,
            "W @ h.t()": lambda h=h, w=w: w @ h.t(),
            "W @ ht": lambda h_t=h_t, w=w: w @ h_t,
            "packed": lambda h=h, p=packed: matmul.multiply(h, p),
        }
        backward: timing.Candidates = {
            "d @ W": lambda d=d, w=w: d @ w,
            "Wt @ d.t()": lambda d=d, w_t=w_t: w_t @ d.t(),
            "Wt @ dt": lambda d_t=d_t, w_t=w_t: w_t @ d_t,
            "packed": lambda d=d, p=packed_t: matmul.multiply(d, p),
        }
        layout: timing.Candidates = {
            "pack W": lambda w=w: matmul.pack(w, 1, 100),
            "pack W.t()": lambda w=w: matmul.pack(w.t(), 1, 100),
        }
        for direction, candidates in (("forward", forward), ("backward", backward), ("layout", layout)):
            facts: dict[str, object] = {"part": "products", "direction": direction, "B": rows, "H": size}
            gflop = 0.0 if direction == "layout" else 10 * 8e-9 * rows * size**2
            timing.report(facts | {"times": 10}, gflop, timing.repeated(candidates, 10), options)


def _runs(sequence: Scan, weights: Weights, xs: Tensor, slots: int) -> dict[str, Callable[[], object]]:
    leaves = [*weights.tensors().values(), xs]
    state = tuple(xs.new_zeros(xs.shape[1], weights.weight_hh.shape[1]) for _ in range(slots))
    gradient = torch.randn(*xs.shape[:2], weights.weight_hh.shape[1])

    def train() -> None:
        torch.autograd.grad(sequence(weights, xs, state)[0], leaves, gradient)

    def evaluate() -> None:
        with torch.no_grad():
            sequence(weights, xs, state)

    return {"train": train, "evaluate": evaluate}


def _without_onednn(sequence: Scan) -> Scan:
    def run(weights: Weights, xs: Tensor, state: tuple[Tensor, ...]) -> tuple[Tensor, tuple[Tensor, ...]]:
        with torch.backends.mkldnn.flags(enabled=False):
            return sequence(weights, xs, state)

    return run


def _library_lstm(weights: Weights, xs: Tensor, state: tuple[Tensor, ...]) -> tuple[Tensor, tuple[Tensor, ...]]:
    h, c = state
    return torch.lstm(xs, [h[None], c[None]], list(weights.tensors().values()), True, 1, 0.0, False, False, False)[
        0
    ], state


def _library_gru(weights: Weights, xs: Tensor, state: tuple[Tensor, ...]) -> tuple[Tensor, tuple[Tensor, ...]]:
    return torch.gru(xs, state[0][None], list(weights.tensors().values()), True, 1, 0.0, False, False, False)[0], state


def _hoisted_lstm(weights: Weights, xs: Tensor, state: tuple[Tensor, ...]) -> tuple[Tensor, tuple[Tensor, ...]]:
    return lstm.hoisted(weights, xs, *state)[0], state


def _loop(step: Callable[..., tuple[Tensor, ...]]) -> Scan:
    return lambda weights, xs, state: unroll(step, weights, xs, state)


LSTMS: dict[str, Scan] = {
    "library": _library_lstm,
    "library without oneDNN": _without_onednn(_library_lstm),
    "hoisted": _hoisted_lstm,
    "loop": _loop(LSTM().step),
}
GRUS: dict[str, Scan] = {
    "library": _library_gru,
    "hoisted": lambda weights, xs, state: (gru.hoisted(weights, xs, *state), state),
    "reset after": gru.scan,
    "reset after, loop": _loop(GRU().step),
    "reset before": partial(gru.scan, reset="before"),
    "reset before, loop": _loop(GRU(reset="before").step),
}


def small(options: argparse.Namespace) -> None:
    policy.LEAST_ONEDNN = 0
    for rows, size in SMALL:
        h, w, other = torch.randn(rows, size), torch.randn(4 * size, size), torch.randn(rows, 4 * size)
        packed = matmul.pack(w, rows, 100)
        candidates: timing.Candidates = {
            "oneDNN": lambda h=h, w=w, other=other: matmul.multiply_add(h, w, other),
            "oneDNN, packed": lambda h=h, packed=packed, other=other: matmul.multiply_add(h, packed, other),
            "torch": lambda h=h, w=w, other=other: torch.addmm(other, h, w.t()),
        }
        facts: dict[str, object] = {"part": "small", "B": rows, "H": size, "multiply_adds": 4 * rows * size**2}
        timing.report(facts, 80e-9 * rows * size**2, timing.repeated(candidates, 10), options)


def windows(
    part: str,
    functions: dict[str, Scan],
    gates: int,
    options: argparse.Namespace,
    shapes: list[tuple[int, int, int, int]] = WINDOWS,
    modes: tuple[str, ...] = ("train", "evaluate"),
) -> None:
    for steps, rows, inputs, size in shapes:
        arrays = (gates * size, inputs), (gates * size, size), (gates * size,), (gates * size,)
        weights = Weights(*((0.03 * torch.randn(shape)).requires_grad_() for shape in arrays))
        xs = torch.randn(steps, rows, inputs, requires_grad=True)
        runs = {name: _runs(f, weights, xs, 2 if gates == 4 else 1) for name, f in functions.items()}
        gflop = 2e-9 * gates * size * (inputs + size) * rows * steps
        for mode in modes:
            products_each = 3 if mode == "train" else 1
            facts: dict[str, object] = {
                "part": part,
                "mode": mode,
                "T": steps,
                "B": rows,
                "I": inputs,
                "H": size,
            }
            timing.report(facts, products_each * gflop, {n: r[mode] for n, r in runs.items()}, options)


@torch.no_grad()
def stream(options: argparse.Namespace) -> None:
    """One token, batch 1: the floor is reading the 127 MB of weights once."""
    size = 1150
    shapes = (4 * size, size), (4 * size, size), (4 * size,), (4 * size,)
    layers = [Weights(*(0.03 * torch.randn(shape) for shape in shapes)) for _ in range(3)]
    zero = torch.zeros(1, size)

    def through(sequence: Scan) -> None:
        xs = torch.ones(1, 1, size)
        for weights in layers:
            xs, _ = sequence(weights, xs, (zero, zero))

    def read() -> None:
        for weights in layers:
            weights.weight_ih.sum()
            weights.weight_hh.sum()

    def multiply() -> None:
        for weights in layers:
            linear(zero, weights.weight_ih)
            linear(zero, weights.weight_hh)

    functions = {name: LSTMS[name] for name in ("library", "library without oneDNN", "loop")} | {"kernel": lstm.scan}
    candidates: timing.Candidates = {name: lambda f=f: through(f) for name, f in functions.items()}
    candidates |= {"the products by torch.nn.functional.linear": multiply, "sum of the weights": read}
    timing.report({"part": "stream", "layers": 3, "H": size}, 2e-9 * 3 * 8 * size**2, candidates, options)


def main() -> None:
    options = timing.arguments(__doc__ or "", ("products", "lstm", "gru", "small", "narrow", "stream"))
    timing.peak(options)
    for part in options.parts:
        match part:
            case "products":
                with torch.no_grad():
                    products(options)
            case "lstm":
                windows(part, LSTMS, 4, options)
            case "gru":
                windows(part, GRUS, 3, options)
            case "small":
                with torch.no_grad():
                    small(options)
            case "narrow":
                compared = {name: GRUS[name] for name in ("library", "hoisted", "reset after")}
                windows(part, compared, 3, options, NARROW, ("evaluate",))
            case "stream":
                stream(options)


if __name__ == "__main__":
    main()
