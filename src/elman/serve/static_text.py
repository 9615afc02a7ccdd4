"""A model of text in a page without a server: its graph, its words, and what the panels show of it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from elman.analysis.embedding import word_vectors
from elman.analysis.mixture import levels_of
from elman.data.text.portable import portable_rules
from elman.export.folder import text_of
from elman.export.onnx import OnnxGraph, write_step
from elman.export.step import Beginning, LookStep, Step, compare
from elman.learning.constraint import spectral_radii
from elman.serve.static_graphs import Differences, beginning_facts, subword_facts, write_graphs
from elman.serve.text import TextService
from elman.serve.worker import done

GRAPH, VECTORS = "model.onnx", "vectors.bin"


class _Look(Beginning):
    """A graph of `LookStep` as a step that is compared."""

    def __init__(self, path: Path, step: Step, extra: int) -> None:
        super().__init__(step)
        self.graph, self.extra = OnnxGraph(path), extra

    def __call__(self, symbols: npt.NDArray[np.integer], *state: npt.NDArray[Any]) -> list[npt.NDArray[Any]]:
        log_probs, *others = self.graph(symbols, *state)
        return [log_probs, *others[self.extra :]]


def write_text(
    service: TextService, folder: Path, data: str | None, *, int8: bool
) -> tuple[Differences, dict[str, Any]]:
    """Write the graph and the word vectors; what the page must know of the model."""
    run = service.run
    step, text = Step(run.model), text_of(run, data)
    look = LookStep(step)
    found = write_graphs(
        folder,
        lambda place: write_step(look, step.beginning, place / GRAPH, {"model_type": "elman"}, look.names),
        lambda place: compare(run.model, _Look(place / GRAPH, step, len(look.names) - 1), text.tokens, run.first),
        int8=int8,
    )
    vectors = word_vectors(run, "input").float().numpy(force=True)
    (folder / VECTORS).write_bytes(in_eight_bits(vectors).tobytes())
    bases = [done(service.basis(layer)) for layer in range(service.num_layers)]
    return found, {
        "words": run.vocabulary.words,
        "first": run.first,
        "eos": run.vocabulary.eos,
        "unk": run.vocabulary.unk,
        "reading": portable_rules(run.options),
        "subwords": subword_facts(run.tokeniser.subwords, run.options.subwords.kind),
        "vectors": vectors.shape[1],
        "states": beginning_facts(step.beginning),
        "component_layers": levels_of(run.model) if look.mixes else [],
        "bases": [
            {"mean": _short(one.mean), "axes": [_short(axis) for axis in one.axes], "shares": one.shares.tolist()}
            for one in bases
        ],
        "radii": spectral_radii(run.model.core),
    }


def in_eight_bits(vectors: npt.NDArray[np.float32]) -> npt.NDArray[np.int8]:
    """Vectors [V, E] as whole numbers up to 127, each with a scale of its own, which cosines do not depend on."""
    largest = np.abs(vectors).max(axis=1, keepdims=True)
    return np.rint(vectors / np.where(largest > 0, largest, 1) * 127).astype(np.int8)


def _short(values: Sequence[float] | npt.NDArray[np.floating]) -> list[float]:
    return [float(f"{one:.6g}") for one in values]
