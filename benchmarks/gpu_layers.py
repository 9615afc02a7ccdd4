"""Single layers on a GPU, three sections of gpu_kernels.py: beside float64 on the CPU, beside cuDNN, and as compiled.

The internal modules of elman that both scripts for a GPU need are imported here and by the helpers of other benchmarks.
"""

import argparse
import contextlib
import copy
import io
import re
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from unittest import mock

import torch
from torch import Tensor, nn

import cells
import timing
from elman import config
from elman.network.cells.cell import unroll
from elman.network.fast import persistent, policy
from gpu import attempt, in_time, milliseconds, row
from precision import in_precision

TOLERANCE = {"float32": 1e-4, "bf16": 5e-2, "persistent bf16": 1e-2}
"""Of relative errors of whole tensors, in the norm."""

FIRST = ("lstm", "gru, reset after", "gru, reset before", "highway, depth 5", "slstm")
SHAPES = [(1, 3, 24, 32), (9, 3, 24, 32), (35, 20, 192, 256)]
WIDE = (70, 20, 400, 1152)
LAYERS = {  # steps, columns, inputs and units
    "lstm": [(70, 20, 1150, 1150), *((70, rows, size, size) for size in (650, 960) for rows in (1, 20, 80))],
    "gru, reset after": [(70, rows, 650, 650) for rows in (1, 20, 80)],
    "gru, reset before": [(70, 20, 650, 650)],
}
PERSISTENT = {"lstm": "lstm", "gru, reset after": "gru-after", "gru, reset before": "gru-before"}
CHIPS = {"sm_80": (163, 108), "sm_90": (227, 132), "sm_100": (227, 148)}
"""Shared memory of a block in KB and multiprocessors of A100, H100 and B200."""


def forms(name: str, rows: int, units: int, device: torch.device) -> list[str]:
    """The precisions, and the persistent kernels where they take such a layer."""
    made = ["float32", "bf16"]
    if device.type == "cuda" and name in PERSISTENT:
        index = torch.cuda.current_device() if device.index is None else device.index
        if persistent.fitting(PERSISTENT[name], units, rows, index) is not None:
            made.append("persistent bf16")
    return made


def in_form(form: str, run: Callable[[], object]) -> Callable[[], object]:
    """The same in one of the `forms`."""
    if form in ("float32", "bf16"):
        return in_precision(form, run)

    def with_kernels() -> object:
        with mock.patch.object(policy, "PERSISTENT", True), mock.patch.object(persistent, "LEAST_STEPS", 1):
            return run()

    return in_precision("bf16", with_kernels)


def compiled(options: argparse.Namespace) -> None:
    """Registers, spilled bytes and shared memory of the kernels of both passes, for GPUs that need not be there."""
    if find_spec("cuda") is None or find_spec("cuda.core") is None:
        row("compiled", skipped="needs the package cuda-core: pip install 'elman[gpu]'")
        return
    for architecture, (memory, blocks) in CHIPS.items():
        for name, cell in PERSISTENT.items():
            for _, rows, _, units in LAYERS[name][: 1 if options.tiny else None]:
                layout = persistent.layout(cell, units, rows, memory=memory << 10, blocks=blocks)
                what = f"compiled {cell} {units} x {rows} for {architecture}"
                if layout is None:
                    row(what, skipped="does not fit")
                    continue
                with attempt(what):
                    report = io.StringIO()
                    persistent.code_of(layout, architecture, report)
                    registers, spilled = (
                        [int(number) for number in re.findall(form, report.getvalue())]
                        for form in (r"Used (\d+) registers", r"(\d+) bytes spill stores")
                    )
                    backward, forward = zip(registers, spilled, strict=True)
                    facts = {"blocks": layout.blocks, "shared_kb": layout.shared_bytes / 1024}
                    row(what, forward=list(forward), backward=list(backward), **facts)


def values(options: argparse.Namespace) -> None:
    """Errors of outputs, states and gradients for random inputs, biases and carried states: of three the worst."""
    shapes, wide = ([(5, 2, 8, 16)], []) if options.tiny else (SHAPES, [WIDE])
    pieces = [(name, shape) for shape in (*shapes, *wide) for name in FIRST]
    pieces += [(name, shape) for shape in shapes for name in cells.CELLS if name not in FIRST]
    for name, shape in pieces:
        what = f"{name}, T x B x I x H = {' x '.join(map(str, shape))}"
        if not in_time(what, options):
            continue
        with attempt(what):
            worst: dict[str, tuple[float, str]] = {}
            for _ in range(1 if options.tiny else 3):
                for precision, error, part in _errors(name, shape, options.device):
                    worst[precision] = max(worst.get(precision, (0.0, "")), (error, part))
            for precision, (error, part) in worst.items():
                more = {"worst": part, "fails": True} if not error <= TOLERANCE[precision] else {"worst": part}
                row(f"{what}, {precision}", TOLERANCE[precision], error, **more)


def _errors(name: str, shape: tuple[int, int, int, int], device: torch.device) -> Iterator[tuple[str, float, str]]:
    """For each precision the largest relative error of a tensor, and which tensor has it."""
    steps, rows, inputs, units = shape
    layer = cells.Layer(cells.CELLS[name], inputs, units)
    layer.initialise(config.Initialisation())
    exact = copy.deepcopy(layer).double()
    xs, pull = torch.randn(steps, rows, inputs), torch.randn(steps, rows, units)
    with torch.no_grad():  # a state that the cell can reach
        before = torch.randn(5, rows, inputs, dtype=torch.float64)
        state = [part.float() for part in unroll(exact.cell.step, exact.weights(), before, exact.begin(rows))[1]]

    def results(model: nn.Module, run: Callable[..., tuple[Tensor, tuple[Tensor, ...]]]) -> dict[str, Tensor]:
        one = next(model.parameters())
        leaves = [part.detach().to(one.device, one.dtype).requires_grad_() for part in (xs, *state)]
        outputs, after = run(leaves[0], tuple(leaves[1:]))
        loss = (pull.to(outputs) * outputs).sum() + sum(part.sin().sum() for part in after)
        named = {"inputs": leaves[0]} | {f"state {index}": leaf for index, leaf in enumerate(leaves[1:])}
        named |= dict(model.named_parameters())
        found = torch.autograd.grad(loss, list(named.values()), allow_unused=True)
        gradients = {f"gradient of {n}": g for n, g in zip(named, found, strict=True) if g is not None}
        ends = {f"last state {index}": part for index, part in enumerate(after)}
        return {k: t.detach().cpu().double() for k, t in ({"outputs": outputs} | ends | gradients).items()}

    reference = results(exact, lambda x, s: unroll(exact.cell.step, exact.weights(), x, s))
    moved = layer.to(device)
    for precision in forms(name, rows, units, device):
        found: dict[str, Tensor] = {}
        in_form(precision, lambda found=found: found.update(results(moved, moved)))()
        pairs = ((found[n], one, n) for n, one in reference.items() if n in found and one.norm() > 1e-6)
        errors = [(((other - one).norm() / one.norm()).item(), n) for other, one, n in pairs]
        yield precision, *max((error if error < 1e9 else 1e9, n) for error, n in errors)  # also where it is no number


def layers(options: argparse.Namespace) -> None:
    for name, shapes in LAYERS.items():
        for shape in [(5, 2, 8, 16)] if options.tiny else shapes:
            what = f"layer {name}, T x B x I x H = {' x '.join(map(str, shape))}"
            if in_time(what, options):
                with attempt(what):
                    _compare(what, {**_library(name, shape, options), **_ours(name, shape, options)}, options)
    _compare("one token, LSTM of 3 x 1150", _stream(options), options)


def _compare(what: str, candidates: timing.Candidates, options: argparse.Namespace) -> None:
    """A row for elman in each precision beside every other candidate of that precision; TF32 is beside float32."""
    found = milliseconds(what, candidates, options)
    for other, theirs in found.items():
        for precision in ("bf16", "persistent bf16") if other.endswith("bf16") else ("float32",):
            if not other.startswith("elman") and f"elman {precision}" in found:
                row(f"{what}: elman {precision} beside {other}", theirs, found[f"elman {precision}"])


def _training(module: nn.Module, run: Callable[[Tensor], Tensor], xs: Tensor, like: Tensor) -> Callable[[], object]:
    leaves = [xs, *module.parameters()]
    return lambda: torch.autograd.grad(run(xs), leaves, like)


def _ours(name: str, shape: tuple[int, int, int, int], options: argparse.Namespace) -> timing.Candidates:
    steps, rows, inputs, units = shape
    layer = cells.layer_of(cells.CELLS[name], inputs, units).to(options.device)
    xs = torch.randn(steps, rows, inputs, device=options.device, requires_grad=True)
    step = _training(layer, lambda x: layer(x, layer.begin(rows))[0], xs, torch.randn(steps, rows, units).to(xs))
    return {f"elman {form}": in_form(form, step) for form in forms(name, rows, units, options.device)}


def _library(name: str, shape: tuple[int, int, int, int], options: argparse.Namespace) -> timing.Candidates:
    """The layer of torch in three precisions, which is cuDNN's on a GPU, and flashrnn's LSTM where it is installed."""
    steps, rows, inputs, units = shape
    made: timing.Candidates = {}
    for kind, dtype in (("float32", torch.float32), ("TF32", torch.float32), ("bf16", torch.bfloat16)):
        library = (nn.LSTM if name == "lstm" else nn.GRU)(inputs, units).to(options.device, dtype)
        xs = torch.randn(steps, rows, inputs, device=options.device, dtype=dtype, requires_grad=True)
        step = _training(library, lambda x, layer=library: layer(x)[0], xs, xs.new_ones(steps, rows, units))

        def run(step: Callable[[], object] = step, tf32: bool = kind == "TF32") -> object:
            with torch.backends.cudnn.flags(enabled=True, allow_tf32=tf32):
                return step()

        made[f"torch {kind}"] = run
    if name == "lstm" and options.device.type == "cuda":
        with contextlib.suppress(ImportError):
            made["flashrnn bf16"] = _flashrnn(shape, options)
    return made


def _flashrnn(shape: tuple[int, int, int, int], options: argparse.Namespace) -> Callable[[], object]:
    """FlashRNN's fused LSTM with the product of the inputs; units rounded up to multiples of 64, which it needs."""
    from flashrnn import flashrnn

    steps, rows, inputs, units = shape
    units = -(-units // 64) * 64
    how = {"device": options.device, "dtype": torch.bfloat16, "requires_grad": True}
    xs, w = torch.randn(rows, steps, inputs, **how), torch.randn(4 * units, inputs, **how)
    r, b = torch.randn(4, 1, units, units, **how), torch.randn(4, 1, units, **how)
    backend = "cuda_fused"

    def run() -> object:
        drive = (xs @ w.t()).view(rows, steps, 4, 1, units)
        return torch.autograd.grad(flashrnn(drive, r, b, function="lstm", backend=backend)[0][0].sum(), [xs, w, r, b])

    return run


def _stream(options: argparse.Namespace) -> timing.Candidates:
    size = 16 if options.tiny else 1150
    ours = [cells.layer_of(cells.CELLS["lstm"], size, size).to(options.device) for _ in range(3)]
    theirs = nn.LSTM(size, size, 3).to(options.device)
    x = torch.randn(1, 1, size, device=options.device)

    @torch.inference_mode()
    def through() -> None:
        y = x
        for layer in ours:
            y, _ = layer(y, layer.begin(1))

    def library(model: nn.Module, x: Tensor) -> Callable[[], object]:
        return torch.inference_mode()(lambda: model(x))

    made = {"torch float32": library(theirs, x), "torch bf16": library(copy.deepcopy(theirs).bfloat16(), x.bfloat16())}
    return made | {f"elman {one}": in_precision(one, through) for one in ("float32", "bf16")}
