"""A recurrent layer over a whole window in one kernel: the weights stay on the chip, its parts exchange states.

The vendor's kernel starts again at every step, and reads the recurrent matrix again. Here one launch computes a whole
window: each block of threads keeps the rows of 16 units, in bf16, in registers and shared memory, and publishes their
states in bf16 at every step; sums, gates, cells and gradients are float32. `persistent.cu` has the equations and the
order of events. Sums are added in a fixed order, so that a training has the same bits each time.

It is compiled when it is first used, by NVRTC through cuda-core (`pip install 'elman[gpu]'`), for the sizes at hand.
ELMAN_PERSISTENT=1 switches it on, for bf16 products on GPUs of CUDA from compute capability 8.0: it has been compiled
for these, and its source computes the right values on a CPU (`tests/network/test_persistent.py`), but it has not run
on a GPU yet. Layers that do not fit, more blocks than multiprocessors or too much memory, are the vendor's.
"""

import ctypes
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import IO, Any, NamedTuple, Protocol, runtime_checkable

import torch
from torch import Tensor

from elman.errors import UserError
from elman.network.fast import matmul, precision
from elman.network.fast.matmul import Arrays, State, differentiable_once

GATES = {"lstm": 4, "gru-after": 3, "tanh": 1, "relu": 1, "gru-before": 3}
"""The equations that the kernel knows, in its numbering, and the number of products of each unit."""

SAVED = {"lstm": 5, "gru-after": 5, "tanh": 1, "relu": 1, "gru-before": 4}
"""Numbers that a unit keeps of a step for the backward pass."""

TILE = 16
"""Units of a block: the columns of a product of tensor cores."""

HELD = 112
"""Registers of a thread that hold weights; the other weights of its warp are in shared memory."""

LEAST_STEPS = 4
"""Shorter windows are the vendor's: the kernel first reads all weights."""


class Layout(NamedTuple):
    """How a layer lies on the chip: the constants of the kernel."""

    cell: str
    units: int
    rows: int
    blocks: int
    warps: int
    per: int
    """Tiles of 16 columns of a warp."""
    registers: int
    """Of these, in registers."""
    columns: int
    """Tiles of 8 rows of the batch."""
    wide: int
    """Tiles of 8 rows that are multiplied at once."""

    @property
    def gates(self) -> int:
        return GATES[self.cell]

    @property
    def groups(self) -> int:
        return -(-self.columns // self.wide)

    @property
    def items(self) -> int:
        return self.wide * 64

    @property
    def tile_words(self) -> int:
        """Words of all published tiles, with the tiles that no block owns."""
        return self.warps * self.per * self.columns * 64

    @property
    def shared_bytes(self) -> int:
        return 512 * self.warps * self.gates * (self.per - self.registers + 2 * self.wide)

    def constants(self) -> dict[str, int]:
        """What the source leaves to the compiler's options."""
        given = self._asdict() | {"cell": list(GATES).index(self.cell), "gates": self.gates, "groups": self.groups}
        return {name.upper(): value for name, value in given.items()}


def layout(cell: str, units: int, rows: int, *, memory: int, blocks: int, warps: int = 8) -> Layout | None:
    """The layout for `units` and `rows` in at most this much shared memory and this number of blocks, or None."""
    gates = GATES[cell]
    needed = gates * -(-units // (TILE * gates))
    per, columns = -(-needed // warps), -(-rows // 8)
    registers = min(per, HELD // (4 * gates))
    for most in (3, 2, 1) if needed <= blocks and rows <= 128 else ():
        wide = -(-columns // -(-columns // min(most, warps // 2, columns)))
        found = Layout(cell, units, rows, needed, warps, per, registers, columns, wide)
        if found.shared_bytes <= memory:
            return found
    return None


@runtime_checkable
class Kernels(Protocol):
    """Both passes, compiled for a layout."""

    def launch(self, name: str, steps: int, *arrays: Tensor | None) -> None:
        """Start `forward` or `backward` on the device of the arrays, which are contiguous; None is a null pointer."""


class _Compiled:
    """By NVRTC, for one device."""

    def __init__(self, layout: Layout, device: int) -> None:
        core = _cuda()
        chip = core.Device(device)
        chip.set_current()
        code = code_of(layout, f"sm_{chip.arch}")
        self.kernels = {name: code.get_kernel(name) for name in ("forward", "backward")}
        for kernel in self.kernels.values():
            kernel.attributes[chip].max_dynamic_shared_size_bytes = layout.shared_bytes
        self.core, self.device = core, device
        self.config = core.LaunchConfig(
            grid=layout.blocks, block=32 * layout.warps, shmem_size=layout.shared_bytes, is_cooperative=True
        )

    def launch(self, name: str, steps: int, *arrays: Tensor | None) -> None:
        stream = self.core.Stream.from_handle(torch.cuda.current_stream(self.device).cuda_stream)
        places = (0 if array is None else array.data_ptr() for array in arrays)
        self.core.launch(stream, self.config, self.kernels[name], ctypes.c_int(steps), *places)


def code_of(layout: Layout, architecture: str, report: IO[str] | None = None) -> Any:
    """Both kernels compiled for an architecture, `sm_90`; `report` gets the registers and spilled bytes."""
    core = _cuda()
    macros = [(name, str(value)) for name, value in layout.constants().items()]
    more = {} if report is None else {"ptxas_options": ["-v"]}
    options = core.ProgramOptions(std="c++17", arch=architecture, define_macro=macros, **more)
    return core.Program(source(layout.cell), "c++", options).compile("cubin", logs=report)


def _cuda() -> Any:
    try:
        return import_module("cuda.core")
    except ImportError:
        raise UserError("ELMAN_PERSISTENT=1 needs the package cuda-core: pip install 'elman[gpu]'") from None


@cache
def source(cell: str) -> str:
    folder = Path(__file__).parent
    names = "persistent_product.cu", "persistent_reset_before.cu" if cell == "gru-before" else "persistent.cu"
    return "\n".join((folder / name).read_text(encoding="utf-8") for name in names)


@cache
def compiled(layout: Layout, device: int) -> Kernels:
    return _Compiled(layout, device)


@cache
def fitting(cell: str, units: int, rows: int, device: int) -> Layout | None:
    """The layout on this device, or None where the layer does not fit or the device is too old."""
    chip = torch.cuda.get_device_properties(device)
    if chip.major < 8:
        return None
    memory = getattr(chip, "shared_memory_per_block_optin", 0)
    return layout(cell, units, rows, memory=memory, blocks=chip.multi_processor_count)


def chosen(cell: str, xs: Tensor, units: int) -> Layout | None:
    """The layout for inputs [T, B, I] where the kernel knows the cell and fits, or None."""
    if cell not in GATES or len(xs) < LEAST_STEPS:
        return None
    if xs.dtype != torch.float32 or precision.chosen() != "bf16":
        return None
    return fitting(cell, units, xs.shape[1], xs.device.index)


def scan(cell: str, w: Arrays, xs: Tensor, state: State) -> tuple[Tensor, State] | None:
    """Outputs [T, B, H] over xs [T, B, I] and the state after them, differentiable once; None: not the kernel's."""
    layout = chosen(cell, xs, state[0].shape[1])
    if layout is None:
        return None
    given = layout, torch.is_grad_enabled(), xs, *(*state, None)[:2]
    arrays = w.weight_ih, w.weight_hh, w.bias_ih, w.bias_hh
    outputs, last = _Scan.apply(*given, *arrays, w.exact)  # type: ignore[no-untyped-call]
    return outputs, (outputs[-1].clone(), last)[: len(state)]


class _Scan(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        layout: Layout,
        keep: bool,
        xs: Tensor,
        h: Tensor,
        c: Tensor | None,
        w_x: Tensor,
        w_h: Tensor,
        bias_x: Tensor | None,
        bias_h: Tensor | None,
        exact: bool,
    ) -> tuple[Tensor, Tensor]:
        (steps, rows, _), size = xs.shape, layout.units
        within = bias_h  # added outside the product
        extra = None
        if layout.cell == "gru-after":
            extra = xs.new_zeros(size) if bias_h is None else bias_h[2 * size :].contiguous()
            within = None if bias_h is None else torch.cat([bias_h[: 2 * size], xs.new_zeros(size)])
        drive = matmul.multiply(xs.flatten(0, 1), w_x, matmul.sum_biases(bias_x, within), exact=exact)
        w_h, h = w_h.contiguous(), h.contiguous()
        outputs = xs.new_empty(steps, rows, size)
        last = torch.empty_like(outputs if layout.cell == "gru-before" else h)  # of an LSTM c, of this GRU r h
        shape = steps, layout.blocks, layout.groups, 2, SAVED[layout.cell], layout.items
        saved = xs.new_empty(shape) if keep else None
        tiles = torch.zeros(2 * layout.tile_words, dtype=torch.int32, device=xs.device)
        flags = torch.zeros(layout.blocks, dtype=torch.int32, device=xs.device)
        cells = h if c is None else c.contiguous()
        arrays = drive.contiguous(), w_h, extra, h, cells, outputs, last, saved, tiles, flags
        kernels = compiled(layout, xs.device.index)
        kernels.launch("forward", steps, *arrays)
        ctx.layout, ctx.kernels = layout, kernels
        resets = last if layout.cell == "gru-before" else None
        matmul.keep(ctx, xs, h, w_x, w_h, saved, resets, outputs)
        return outputs, last[-1] if last is resets else last

    @staticmethod
    @differentiable_once
    def backward(ctx: Any, d_outputs: Tensor, d_last: Tensor) -> tuple[Tensor | None, ...]:
        xs, h, w_x, w_h, saved, resets, outputs = ctx.saved_tensors
        layout: Layout = ctx.layout
        (steps, rows, _), gates, device = xs.shape, layout.gates, xs.device
        d_x = xs.new_empty(steps * rows, gates * layout.units)
        d_u = torch.empty_like(d_x) if layout.cell == "gru-after" else d_x
        d_h, d_c = torch.empty_like(h), torch.empty_like(h)
        tiles = torch.zeros(2 * gates * layout.tile_words, dtype=torch.int32, device=device)
        sums = xs.new_empty(2, layout.blocks, gates, layout.groups, layout.items, 2)
        flags = torch.zeros(2 * layout.blocks, dtype=torch.int32, device=device)
        given = d_outputs.contiguous(), d_last.contiguous(), w_h, saved
        ctx.kernels.launch("backward", steps, *given, d_x, d_u, d_h, d_c, tiles, sums, flags)
        needs = dict(zip(("xs", "h", "c", "w_x", "w_h", "b_x", "b_h"), ctx.needs_input_grad[2:9], strict=True))
        before = torch.cat([h[None], outputs[:-1]]).flatten(0, 1)
        low = matmul.rounded(d_x, min(xs.shape[2], layout.units))
        low_u = low if d_u is d_x else matmul.rounded(d_u, layout.units)
        if resets is None:
            d_w_h = matmul.multiply(low_u.t(), before.t())
        else:
            parts = (low_u[:, : 2 * layout.units], before), (low_u[:, 2 * layout.units :], resets.flatten(0, 1))
            d_w_h = torch.cat([matmul.multiply(d.t(), x.t()) for d, x in parts])
        return (
            None,
            None,
            matmul.multiply(low, w_x.t()).view_as(xs) if needs["xs"] else None,
            d_h,
            d_c if needs["c"] else None,
            matmul.multiply(low.t(), xs.flatten(0, 1).t()),
            d_w_h,
            d_x.sum(0) if needs["b_x"] else None,
            d_u.sum(0) if needs["b_h"] else None,
            None,
        )
