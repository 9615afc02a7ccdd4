"""The persistent kernel's own source, compiled for a CPU: values and gradients beside the plain steps in float64."""

import ctypes
import io
import re
import shutil
import subprocess
from pathlib import Path
from unittest import mock

import pytest
import torch
from torch import Tensor

from elman.network.cells.cell import Weights, unroll
from elman.network.cells.elman import Elman
from elman.network.cells.gru import GRU
from elman.network.cells.lstm import LSTM
from elman.network.fast import persistent, policy
from elman.network.fast.persistent import Layout, layout

CELLS = {"lstm": LSTM(), "gru-after": GRU(), "tanh": Elman(), "relu": Elman(nonlinearity="relu")}
CELLS["gru-before"] = GRU(reset="before")
ENTRY = """
extern "C" void launch(int backwards, int blocks, int threads, int shared, unsigned seed, int steps, void** a) {
  if (backwards)
    run(blocks, threads, shared, seed, [&] { backward(steps, (float*)a[0], (float*)a[1], (float*)a[2], (float*)a[3],
      (float*)a[4], (float*)a[5], (float*)a[6], (float*)a[7], (word*)a[8], (float2*)a[9], (int*)a[10]); });
  else
    run(blocks, threads, shared, seed, [&] { forward(steps, (float*)a[0], (float*)a[1], (float*)a[2], (float*)a[3],
      (float*)a[4], (float*)a[5], (float*)a[6], (float*)a[7], (word*)a[8], (int*)a[9]); });
}
"""
needs_compiler = pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")


class OnCPU:
    """The kernels by a compiler for the CPU, their threads in an order by chance."""

    def __init__(self, layout: Layout, folder: Path, text: str | None = None) -> None:
        self.layout, self.seed = layout, 0
        header = Path(__file__).parents[1] / "support" / "cuda_on_cpu.h"
        code = folder / "kernel.cpp"
        code.write_text(f'#include "{header}"\n{text or persistent.source(layout.cell)}\n{ENTRY}')
        options = [f"-D{name}={value}" for name, value in layout.constants().items()]
        library = folder / "kernel.so"
        command = ["g++", "-std=c++17", "-O1", "-shared", "-fPIC", "-w", *options, str(code), "-o", str(library)]
        subprocess.run(command, check=True)
        self.library = ctypes.CDLL(str(library))

    def launch(self, name: str, steps: int, *arrays: Tensor | None) -> None:
        assert all(array is None or array.is_contiguous() for array in arrays)
        places = (ctypes.c_void_p * len(arrays))(*(None if array is None else array.data_ptr() for array in arrays))
        size, self.seed = self.layout, self.seed + 1
        self.library.launch(
            name == "backward", size.blocks, 32 * size.warps, size.shared_bytes, self.seed, steps, places
        )


def settings(cell: str, steps: int, rows: int, inputs: int, units: int) -> tuple[Weights, Tensor, tuple[Tensor, ...]]:
    gates = persistent.GATES[cell]
    shapes = (gates * units, inputs), (gates * units, units), (gates * units,), (gates * units,)
    torch.manual_seed(3)
    arrays = [(torch.randn(shape) / shape[-1] ** 0.5).requires_grad_() for shape in shapes]
    state = tuple(torch.randn(rows, units).requires_grad_() for _ in range(2 if cell == "lstm" else 1))
    return Weights(*arrays), torch.randn(steps, rows, inputs).requires_grad_(), state


def results(outputs: Tensor, after: tuple[Tensor, ...], leaves: list[Tensor]) -> list[Tensor]:
    """Outputs, the last state, and the gradients of a loss that every number has its own part in."""
    generator = torch.Generator().manual_seed(5)
    pull = torch.randn(outputs.shape, generator=generator).to(outputs)
    loss = (pull * outputs).sum() + sum(part.sin().sum() for part in after)
    return [outputs, *after, *torch.autograd.grad(loss, leaves)]


def errors(cell: str, size: Layout, steps: int, inputs: int, kernels: OnCPU) -> list[float]:
    weights, xs, state = settings(cell, steps, size.rows, inputs, size.units)
    arrays = [weights.weight_ih, weights.weight_hh, weights.bias_ih, weights.bias_hh]
    used = mock.Mock(return_value=kernels)
    asked = mock.patch.object(policy, "persistent", return_value=persistent)
    with asked, mock.patch.multiple(persistent, chosen=lambda *_: size, compiled=used):
        outputs, after = CELLS[cell].scan(weights, xs, state)
        ours = results(outputs, after, [xs, *state, *arrays])
    used.assert_called_once()
    exact = [leaf.detach().double().requires_grad_() for leaf in (xs, *state, *arrays)]
    count = 1 + len(state)
    outputs, after = unroll(CELLS[cell].step, Weights(*exact[count:]), exact[0], tuple(exact[1:count]))
    reference = results(outputs, after, exact)
    return [((one - other).norm() / other.norm()).item() for one, other in zip(ours, reference, strict=True)]


SHAPES = [  # cell, steps, rows, units, warps, tiles of a warp in registers
    ("lstm", 5, 5, 40, 2, None),  # a group with rows and units that are not there
    ("lstm", 3, 19, 130, 4, 1),  # several groups of columns, weights in shared memory, tiles of no block
    ("gru-after", 4, 9, 50, 2, 0),
    ("tanh", 4, 9, 33, 2, None),
    ("relu", 1, 1, 16, 2, None),
    ("gru-before", 4, 9, 50, 2, 0),
    ("gru-before", 5, 35, 70, 4, None),
]


@needs_compiler
@pytest.mark.parametrize(("cell", "steps", "rows", "units", "warps", "registers"), SHAPES)
def test_values_and_gradients_of_the_plain_steps_to_the_same_bits_in_every_order(
    cell, steps, rows, units, warps, registers, tmp_path
):
    size = layout(cell, units, rows, memory=1 << 18, blocks=64, warps=warps)
    if registers is not None:
        size = size._replace(registers=registers)
    kernels = OnCPU(size, tmp_path)
    first = errors(cell, size, steps, 7, kernels)
    assert max(first) < 0.01
    assert errors(cell, size, steps, 7, kernels) == first
    assert kernels.seed == 4


@pytest.mark.parametrize("architecture", ["sm_80", "sm_90", "sm_100"])
@pytest.mark.parametrize(
    ("cell", "units", "rows"), [("lstm", 1150, 20), ("gru-after", 650, 80), ("gru-before", 650, 20), ("tanh", 400, 1)]
)
def test_compiles_for_gpus_that_are_not_here(cell, units, rows, architecture):
    pytest.importorskip("cuda.core", reason="needs the extra gpu")
    size = layout(cell, units, rows, memory=163 << 10, blocks=108)
    report = io.StringIO()
    code = persistent.code_of(size, architecture, report)
    assert len(code.code) > 10_000
    spilled = [int(number) for number in re.findall(r"(\d+) bytes spill stores", report.getvalue())]
    assert len(spilled) == 2
    assert max(spilled) <= 256


@pytest.mark.parametrize(
    ("cell", "units", "rows", "memory", "blocks"),
    [("lstm", 2400, 20, 227, 132), ("lstm", 1150, 129, 227, 132), ("lstm", 1500, 20, 90, 132)],
)
def test_layers_that_do_not_fit_are_the_vendors(cell, units, rows, memory, blocks):
    assert layout(cell, units, rows, memory=memory << 10, blocks=blocks) is None


@pytest.mark.parametrize(
    ("cell", "units", "rows", "blocks", "per", "registers", "columns", "wide"),
    [("lstm", 1150, 20, 72, 9, 7, 3, 3), ("gru-after", 640, 33, 42, 6, 6, 5, 3), ("tanh", 400, 1, 25, 4, 4, 1, 1)],
)
def test_a_layer_is_laid_out_in_as_few_tiles_as_hold_it(cell, units, rows, blocks, per, registers, columns, wide):
    found = layout(cell, units, rows, memory=1 << 20, blocks=300)
    assert found == (cell, units, rows, blocks, 8, per, registers, columns, wide)
