"""A model of targets given sources as two graphs: one that reads a source of any length, and a step of its targets.

The state of a target is what changes at every step, [K, ...] for K hypotheses, and the memory of the source, [1, ...],
which all of them share.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, final

import numpy as np
import numpy.typing as npt
import torch
from jaxtyping import Int
from torch import Tensor, nn
from torch._higher_order_ops.scan import scan

from elman.data.batches import Source
from elman.errors import UserError
from elman.export.onnx import BATCH, Axes, OnnxGraph, states_of, write_onnx
from elman.export.step import Comparison, difference, plain, table
from elman.network.cells.cell import LayerState, Scan, Step, Weights
from elman.network.cores.attentive import AttentiveCore
from elman.network.cores.deep_memory import DeepMemory
from elman.network.cores.layer import Layer, NoPadding
from elman.network.encoders.characters import CharactersEncoder
from elman.network.seq2seq import SequenceToSequence
from elman.network.state import State, leaves, rebuild

SOURCE, TARGET = "source.onnx", "target.onnx"
"""The two graphs, in a folder."""

LENGTH = "length"
"""The name of the axes of the source."""


@final
class SourceReading(nn.Module):
    """The state of a target that has not begun, given its source.

    Outputs: the tensors [1, ...] that change, and the memory's, [1, S, ...], if there is attention.
    """

    def __init__(self, model: SequenceToSequence) -> None:
        super().__init__()
        self.model = _plain(model)
        for part in self.model.reader.modules():
            if isinstance(part, Layer):
                part.scan = _scanned(part.cell.step)

    def forward(self, symbols: Int[Tensor, " S"]) -> tuple[Tensor, ...]:
        changing, memory = _parts(self.model, _read(self.model, symbols))
        return *(one.clone() for one in changing), *(one.clone() for one in memory)  # keys may be the vectors


@final
class TargetStep(nn.Module):
    """One step of K targets of one source.

    Outputs: log-probabilities [K, V], the weights of attention [K, S] if there is any, and the tensors that change.
    """

    def __init__(self, model: SequenceToSequence) -> None:
        super().__init__()
        self.model = _plain(model)
        self.template = _read(self.model, torch.zeros(2, dtype=torch.int64))
        self.changing, self.memory = _parts(self.model, self.template)

    @property
    def names(self) -> list[str]:
        return ["log_probs", *(["attention"] if self.model.attends else [])]

    def forward(self, symbols: Int[Tensor, " K"], *state: Tensor) -> tuple[Tensor, ...]:
        """Read a symbol of each target; `state` are the tensors that change and the memory's."""
        changing, memory = state[: len(self.changing)], state[len(self.changing) :]
        trace, after = self.model.trace(symbols.unsqueeze(0), self._joined(changing, memory))
        looks = () if trace.attention is None else (trace.attention[0],)
        return self.model.output.log_probs(trace)[0], *looks, *_parts(self.model, after)[0]

    def _joined(self, changing: Sequence[Tensor], memory: Sequence[Tensor]) -> State:
        if not isinstance(self.model.core, AttentiveCore):
            return rebuild(self.template, iter(changing))
        layers, _, fed = self.template
        tensors = iter(changing)
        everywhere = torch.ones_like(memory[0][..., 0], dtype=torch.bool)
        return rebuild(layers, tensors), (*memory, everywhere), rebuild(fed, tensors)


def write_conditional(model: SequenceToSequence, folder: Path, metadata: Mapping[str, object]) -> None:
    """Write both graphs into a folder; raises UserError where an operation cannot be in a graph."""
    if any(
        one.reading is not None or one.writing is not None
        for one in model.reader.memories
        if isinstance(one, DeepMemory)
    ):
        raise UserError(
            "this network cannot be written as ONNX: a memory that is read or written by content takes as many steps as"
            " its source has symbols"
        )
    step = TargetStep(model)
    memory: dict[str, tuple[Tensor, Axes]] = {
        f"memory_{place}": (tensor, {1: LENGTH}) for place, tensor in enumerate(step.memory)
    }
    states = states_of(step.changing)
    source = {"symbols": (torch.zeros(2, dtype=torch.int64), {0: LENGTH})}
    write_onnx(SourceReading(model), folder / SOURCE, source, [*states, *memory], metadata)
    inputs = {"symbols": (torch.tensor([0, 1]), BATCH), **states, **memory}
    write_onnx(step, folder / TARGET, inputs, [*step.names, *(f"next_{name}" for name in states)], metadata)


class ConditionalGraphs:
    """Both graphs of a folder, for the model that they were written from."""

    def __init__(self, folder: Path, model: SequenceToSequence) -> None:
        step = TargetStep(model)
        self.changing, self.looks = len(step.changing), len(step.names)
        self.source, self.target = OnnxGraph(folder / SOURCE), OnnxGraph(folder / TARGET)

    def along(self, source: npt.NDArray[np.integer], symbols: Sequence[int]) -> npt.NDArray[Any]:
        """Log-probabilities [T, V] after each of the symbols [T] of a target."""
        state, found = self.source(source.astype(np.int64)), []
        for symbol in symbols:
            after = self.target(np.array([symbol]), *state)
            found.append(after[0][0])
            state = [*after[self.looks :], *state[self.changing :]]
        return np.stack(found)


@torch.inference_mode()
def compare_conditional(
    model: SequenceToSequence, graphs: ConditionalGraphs, pairs: Sequence[tuple[npt.NDArray[np.integer], Sequence[int]]]
) -> Comparison:
    """Read pairs of a source, as the model reads it, and a target after its start symbol, with both."""
    largest, count = 0.0, 0
    for source, symbols in pairs:
        column = torch.from_numpy(source.astype(np.int64)).to(model.device).unsqueeze(1)
        state = model.read(Source(column, torch.ones_like(column, dtype=torch.bool)))
        right, _ = model.log_probs(torch.tensor(symbols, device=model.device).unsqueeze(1), state)
        largest = max(largest, difference(graphs.along(source, symbols), right[:, 0].float().numpy(force=True)))
        count += len(symbols)
    return Comparison(largest, count)


def _plain(model: SequenceToSequence) -> SequenceToSequence:
    copied = plain(model)
    assert isinstance(copied, SequenceToSequence)
    if isinstance(copied.reader.encoder, CharactersEncoder):
        with torch.no_grad():
            copied.reader.encoder = table(copied.reader.encoder).requires_grad_(False)
    return copied


def _read(model: SequenceToSequence, symbols: Tensor) -> State:
    column = symbols.unsqueeze(1)
    return model.read(Source(column, torch.ones_like(column, dtype=torch.bool)), NoPadding())


def _parts(model: SequenceToSequence, state: State) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
    """The tensors of a state that change, and the memory's; its mask is all true."""
    if not isinstance(model.core, AttentiveCore):
        return tuple(leaves(state)), ()
    layers, memory, fed = state
    vectors, keys, _ = leaves(memory)
    return (*leaves(layers), *leaves(fed)), (vectors, keys)


def _scanned(step: Step) -> Scan:

    def over(weights: Weights, xs: Tensor, state: LayerState) -> tuple[Tensor, LayerState]:
        def one(before: tuple[Tensor, ...], x: Tensor) -> tuple[tuple[Tensor, ...], Tensor]:
            after = tuple(step(weights, x, before))
            return tuple(part.clone() for part in after), after[0].clone()

        after, outputs = scan(one, tuple(state), xs)
        return outputs, tuple(after)

    return over
