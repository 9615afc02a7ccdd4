"""LSTM and GRU of `elman.nn` beside torch's own, forward and backward: `python benchmarks/layers.py [LSTM] [GRU]`.

Every layer computes the same window in turns, first in float32, then in bf16: torch's under autocast, elman's within
`products_in("bf16")`. Each round gives a ratio of two times that follow each other, and its median counts, so that
other work falls on both; beside other work also give `--threads 1 --cpu-time`. In float32 elman is compared with
torch's float32, in bf16 with the faster of torch's two. A row of the table marks a ratio above 1.05 with `!`.

The last columns are what the backward pass keeps (MB, elman's and torch's), and the greatest relative error of a
gradient in bf16, against float64. The layers of torchrecurrent and haste are timed too where they are installed.
"""

import argparse
import contextlib
import importlib
import os
import time
from collections.abc import Callable, Iterator
from statistics import median
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

import timing
from elman import nn as enn
from elman.files import json_text
from elman.network.device import processor_name
from elman.nn import products_in

SIZES = [(size, rows) for size in (64, 256, 650, 1150) for rows in (1, 20, 64)]
LEAST_ROUNDS = 7
TURN = 0.01
PEERS = {
    "LSTM": {"torchrecurrent": "PeepholeLSTM", "haste_pytorch": "LSTM"},  # the former has no LSTM without peepholes
    "GRU": {"haste_pytorch": "GRU"},
}


class Layer(NamedTuple):
    """A layer, and in what its products are computed."""

    module: nn.Module
    within: Callable[[], contextlib.AbstractContextManager[Any]] = contextlib.nullcontext

    def gradients(self, xs: Tensor, pull: Tensor) -> list[Tensor]:
        """Of its weights, and of the inputs, after a forward pass."""
        with self.within():
            outputs = self.module(xs)[0]
        return list(torch.autograd.grad(outputs, [*self.module.parameters(), xs], pull.to(outputs.dtype)))


def layers(cell: str, size: int) -> dict[str, Layer]:
    """Layers with the same weights, where these have the same names, by library and precision."""
    own, theirs = getattr(enn, cell)(size, size), getattr(nn, cell)(size, size)
    own.load_state_dict(theirs.state_dict())
    found = {
        "torch float32": Layer(theirs),
        "elman float32": Layer(own),
        "torch bf16": Layer(theirs, lambda: torch.autocast("cpu", torch.bfloat16)),
        "elman bf16": Layer(own, lambda: products_in("bf16")),
    }
    for library, name in PEERS[cell].items():
        with contextlib.suppress(ImportError):
            found[library] = Layer(getattr(importlib.import_module(library), name)(size, size))
    return found


def in_turns(found: dict[str, Layer], xs: Tensor, pull: Tensor, options: argparse.Namespace) -> dict[str, list[float]]:
    """Seconds of every layer in every round: of some passes that take `TURN` together, so that each begins warm."""

    def turn(layer: Layer, times: int) -> float:
        start = timing.waited(options)
        for _ in range(times):
            layer.gradients(xs, pull)
        return (timing.waited(options) - start) / times

    times = 1 + int(TURN / max(turn(layer, 2) for layer in found.values()))
    begun = time.perf_counter()
    seconds: dict[str, list[float]] = {name: [] for name in found}
    while len(seconds["torch float32"]) < LEAST_ROUNDS or time.perf_counter() - begun < options.seconds:
        for name, layer in found.items():
            seconds[name].append(turn(layer, times))
    return seconds


@contextlib.contextmanager
def counted() -> Iterator[list[int]]:
    """Bytes of each storage that autograd keeps within the block, weights left out."""
    kept: dict[int, int] = {}
    total: list[int] = []

    def keep(tensor: Tensor) -> Tensor:
        if not isinstance(tensor, nn.Parameter):
            storage = tensor.untyped_storage() if not tensor.is_mkldnn else None
            kept[storage.data_ptr() if storage else id(tensor)] = storage.nbytes() if storage else 0
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        yield total
    total.append(sum(kept.values()))


def megabytes(layer: Layer, xs: Tensor) -> float:
    """What a backward pass keeps."""
    with counted() as total, layer.within():
        outputs = layer.module(xs)[0]
    del outputs
    return round(total[0] / 1e6, 2)


def error(layer: Layer, xs: Tensor, pull: Tensor) -> float:
    """The greatest relative error of a gradient, in the norm of each array, against torch's layer in float64."""
    exact = type(layer.module)(xs.shape[2], xs.shape[2]).double()
    exact.load_state_dict(layer.module.state_dict())
    wide = xs.detach().double().requires_grad_()
    wanted = Layer(exact).gradients(wide, pull.double())
    found = layer.gradients(xs, pull)
    return max(((one - other).norm() / other.norm()).item() for one, other in zip(found, wanted, strict=True))


def measure(cell: str, size: int, rows: int, options: argparse.Namespace) -> dict[str, Any]:
    """All figures of one size."""
    torch.manual_seed(0)
    found = layers(cell, size)
    xs, pull = torch.randn(options.steps, rows, size, requires_grad=True), torch.randn(options.steps, rows, size)
    seconds = in_turns(found, xs, pull, options)
    fastest = min(("torch float32", "torch bf16"), key=lambda name: median(seconds[name]))

    def ratio(name: str, beside: str) -> float:
        return round(median(one / other for one, other in zip(seconds[name], seconds[beside], strict=True)), 3)

    return {
        "cell": cell,
        "T": options.steps,
        "H": size,
        "B": rows,
        "threads": torch.get_num_threads(),
        "rounds": len(seconds["torch float32"]),
        "least_ms": {name: round(1e3 * min(values), 3) for name, values in seconds.items()},
        "median_ms": {name: round(1e3 * median(values), 3) for name, values in seconds.items()},
        "float32": ratio("elman float32", "torch float32"),
        "bf16": ratio("elman bf16", fastest),
        "kept_mb": {name: megabytes(layer, xs) for name, layer in found.items() if "float32" in name},
        "kept_mb_bf16": {name: megabytes(layer, xs) for name, layer in found.items() if "bf16" in name},
        "error": {name: error(layer, xs, pull) for name, layer in found.items() if name.startswith("elman")},
    }


def row(found: dict[str, Any]) -> str:
    """One row of the table."""
    times = found["least_ms"]
    marks = ["!" if found[kind] > 1.05 else " " for kind in ("float32", "bf16")]
    kept = found["kept_mb"]
    cells = [
        f"{found['cell']:4s} {found['H']:5d} {found['B']:3d}",
        *(f"{value:10.2f}" for value in times.values()),
        *(f"{found[kind]:7.3f}{mark}" for kind, mark in zip(("float32", "bf16"), marks, strict=True)),
        f"{kept['elman float32']:8.2f} {kept['torch float32']:8.2f} {100 * found['error']['elman bf16']:6.2f} %",
    ]
    return " ".join(cells)


def facts(options: argparse.Namespace) -> dict[str, Any]:
    """The machine."""
    return {
        "processor": processor_name(options.device),
        "cores": os.cpu_count(),
        "load": os.getloadavg()[0],
        "avx512_bf16": torch.cpu._is_avx512_bf16_supported(),
        "torch": str(torch.__version__),
        "clock": "processor time" if options.cpu_time else "time",
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cells", nargs="*", default=["LSTM", "GRU"], metavar="CELL", help="LSTM or GRU")
    parser.add_argument("--sizes", nargs="+", default=[f"{size}x{rows}" for size, rows in SIZES], metavar="HxB")
    parser.add_argument("--steps", type=int, default=35, help="T")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--seconds", type=float, default=4.0, help="least time of a size")
    parser.add_argument("--cpu-time", action="store_true", help="processor time; with --threads 1, for a busy machine")
    parser.add_argument("--json", action="store_true", help="JSON lines in place of the table")
    options = parser.parse_args()
    options.device = torch.device("cpu")
    print(json_text(facts(options)), flush=True)
    for threads in options.threads:
        torch.set_num_threads(threads)
        for cell in options.cells:
            named = list(layers(cell, 4))
            if not options.json:
                heads = (f"{name.replace('float', 'f'):>10.10s}" for name in named)
                print(f"\n{threads} thread(s), least ms\n{'':13s}", *heads, end="")
                print("   f32 x   bf16 x  kept MB    torch    error")
            for given in options.sizes:
                size, rows = map(int, given.split("x"))
                found = measure(cell, size, rows, options)
                print(json_text(found) if options.json else row(found), flush=True)


if __name__ == "__main__":
    main()
