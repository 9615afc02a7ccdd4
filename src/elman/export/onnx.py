"""ONNX: a step as a graph of standard operators, its forms of fewer bits, and onnxruntime, which runs them.

Needs onnx, onnxscript and onnxruntime (pip install 'elman[onnx]'). The exporter's own simplifications are left out:
they drop the addition of numbers as small as the 1e-8 of the ReLU output. onnxruntime simplifies when it loads a graph.
"""

import inspect
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from elman.errors import UserError, first_line
from elman.export.step import Beginning, Packed, Step, tracing
from elman.files import replacing

OPSET = 18
"""Of the standard operators."""

Axes = Mapping[int, str]
"""The names of the axes of a tensor that may have any size; axes of one name have one size."""

BATCH: Axes = {0: "batch"}
"""Sequences side by side, on the first axis."""

NEEDS = "ONNX needs the packages onnx, onnxscript and onnxruntime: pip install 'elman[onnx]'"


class OnnxGraph:
    """A graph that onnxruntime runs on the CPU, with `threads` threads; its metadata as a dictionary."""

    def __init__(self, path: Path, threads: int = 1) -> None:
        runtime = require_onnx()
        options = runtime.SessionOptions()
        options.intra_op_num_threads, options.log_severity_level = threads, 3
        self.session = runtime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        self.inputs = [one.name for one in self.session.get_inputs()]
        self.metadata: dict[str, str] = self.session.get_modelmeta().custom_metadata_map

    def __call__(self, *inputs: npt.NDArray[Any]) -> list[npt.NDArray[Any]]:
        found: list[npt.NDArray[Any]] = self.session.run(None, dict(zip(self.inputs, inputs, strict=True)))
        return found


class OnnxStep(Beginning):
    """A graph with the inputs and outputs of `Step`."""

    def __init__(self, path: Path, step: Step) -> None:
        super().__init__(step)
        self.graph = OnnxGraph(path)

    def __call__(self, symbols: npt.NDArray[np.integer], *state: npt.NDArray[Any]) -> list[npt.NDArray[Any]]:
        return self.graph(symbols, *state)


class PackedOnnxStep:
    """A graph with the inputs and outputs of `Packed`; its states are its two tensors, [1, B, S]."""

    def __init__(self, path: Path) -> None:
        self.graph = OnnxGraph(path)

    def begin(self, width: int) -> list[npt.NDArray[Any]]:
        """Return the zeros with which `width` sequences begin."""
        zeros = np.zeros((1, width, int(self.graph.metadata["hidden_size"])), np.float32)
        return [zeros, zeros]

    def __call__(self, symbols: npt.NDArray[np.integer], *state: npt.NDArray[Any]) -> list[npt.NDArray[Any]]:
        log_probs, *after = self.graph(symbols[:, None], *state)
        return [log_probs[:, 0], *after]


def write_step(
    step: nn.Module,
    beginning: Sequence[Tensor],
    path: Path,
    metadata: Mapping[str, object],
    outputs: Sequence[str] = ("log_probs",),
) -> None:
    """Write a step from symbols and a state to `outputs` and the next state, as `OnnxStep` reads it."""
    inputs = {"symbols": (torch.tensor([0, 1]), BATCH), **states_of(beginning)}
    write_onnx(step, path, inputs, [*outputs, *(f"next_state_{place}" for place in range(len(beginning)))], metadata)


def states_of(beginning: Sequence[Tensor]) -> dict[str, tuple[Tensor, Axes]]:
    """The tensors [1, ...] of a state as inputs of a graph, of any number of sequences."""
    return {
        f"state_{place}": (tensor.repeat(2, *[1] * (tensor.ndim - 1)), BATCH) for place, tensor in enumerate(beginning)
    }


def write_packed(packed: Packed, path: Path, metadata: Mapping[str, object]) -> None:
    """Write a step as `PackedOnnxStep` reads it; `metadata` has its `hidden_size`."""
    zeros = torch.zeros(1, 2, packed.size)
    inputs = {"x": (torch.tensor([[0], [1]]), BATCH), "h": (zeros, {1: "batch"}), "c": (zeros.clone(), {1: "batch"})}
    write_onnx(packed, path, inputs, ["log_probs", "next_h", "next_c"], metadata)


def write_onnx(
    module: nn.Module,
    path: Path,
    inputs: Mapping[str, tuple[Tensor, Axes]],
    outputs: Sequence[str],
    metadata: Mapping[str, object],
) -> None:
    """Write a module as a graph; every input is an example and the names of those axes of it that may have any size.

    Raises UserError where the module has an operation that the graph cannot have.
    """
    with tracing():
        examples, axes = zip(*inputs.values(), strict=True)
        sizes = {name: torch.export.Dim(name, min=1) for one in axes for name in one.values()}
        first, *rest = ({axis: sizes[name] for axis, name in one.items()} for one in axes)
        try:
            program = torch.onnx.export(
                module,
                examples,
                dynamo=True,
                optimize=False,
                verbose=False,
                opset_version=OPSET,
                input_names=list(inputs),
                output_names=list(outputs),
                dynamic_shapes=_as_parameters(module, first, rest),
            )
        except torch.onnx.errors.OnnxExporterError as error:
            raise UserError(
                "this network has an operation that ONNX cannot have; --to torch writes it as a program of torch"
                f" ({first_line(error.__cause__ or error)})"
            ) from error
        assert program is not None
        program.model.metadata_props.update({key: str(value) for key, value in metadata.items()})
        with replacing(path) as temporary:
            program.save(str(temporary))


def _as_parameters(module: nn.Module, first: Any, rest: list[Any]) -> tuple[Any, ...]:
    """The shapes in the form of the parameters of `forward`, the last of which may gather all others."""
    gathers = any(one.kind is one.VAR_POSITIONAL for one in inspect.signature(module.forward).parameters.values())
    return (first, tuple(rest)) if gathers else (first, *rest)


def write_int8(path: Path, out: Path) -> None:
    """Write a graph with weights of eight bits, its inputs being rounded to eight bits as they come."""
    runtime = require_onnx()
    with tracing(), tempfile.TemporaryDirectory(dir=out.parent) as folder:
        import onnx
        from onnxruntime.quantization import QuantType, quantize_dynamic

        simple = Path(folder) / "simple.onnx"
        options = runtime.SessionOptions()
        options.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_ENABLE_BASIC
        options.optimized_model_filepath, options.log_severity_level = str(simple), 3
        try:
            runtime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        except Exception as error:  # of its own kinds, which have no number as OSError has
            raise UserError(
                f"{out}: onnxruntime cannot write the graph to be rounded ({first_line(error)}); free some space there"
            ) from error
        graph = onnx.load(simple)
        del graph.graph.value_info[:]  # shapes that were inferred before no longer agree
        onnx.save(graph, simple)
        rounded = Path(folder) / "rounded.onnx"
        # Weights of seven bits: a sum of two products of eight bits overflows 16 bits on processors without VNNI.
        quantize_dynamic(simple, rounded, weight_type=QuantType.QInt8, reduce_range=True)
        written, exact = onnx.load(rounded), onnx.load(path, load_external_data=False)
        onnx.helper.set_model_props(written, {one.key: one.value for one in exact.metadata_props})
        # Without the shapes of sequences that are cut unevenly the runtime takes their first parts' shapes for all.
        del written.graph.value_info[:]
        made = {name for node in written.graph.node for name in node.output}
        written.graph.value_info.extend(one for one in exact.graph.value_info if one.name in made)
        with replacing(out) as temporary:
            onnx.save(written, temporary)


def write_half(path: Path, out: Path) -> None:
    """Write a graph that computes in float16, its inputs and outputs unchanged."""
    require_onnx()
    with tracing():
        import onnx
        from onnxruntime.transformers.float16 import convert_float_to_float16

        with replacing(out) as temporary:
            onnx.save(convert_float_to_float16(onnx.load(path), keep_io_types=True), temporary)


def require_onnx() -> Any:
    """onnxruntime; raises UserError where a package is missing."""
    try:
        import onnx  # noqa: F401
        import onnxruntime
        import onnxscript  # noqa: F401
    except ImportError:
        raise UserError(NEEDS) from None
    return onnxruntime
