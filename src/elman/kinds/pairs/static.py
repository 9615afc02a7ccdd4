"""A model of pairs in a page without a server: a graph that reads a source, one that is a step, and the symbols."""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from elman.config.inference import Beam
from elman.data.text.portable import portable_rules
from elman.decoding.beam import TIE
from elman.errors import UserError, notice
from elman.export.conditional import ConditionalGraphs, compare_conditional, write_conditional
from elman.kinds.pairs.constraint import constraint_of
from elman.kinds.pairs.run import PairRun
from elman.kinds.pairs.serving import LONGEST_TARGET, PairService
from elman.serve.static_graphs import Differences, subword_facts, write_graphs

SOURCES = 20  # sources whose targets are compared


def write_pairs(
    service: PairService, folder: Path, data: str | None, *, int8: bool
) -> tuple[Differences, dict[str, Any]]:
    """Write the graphs; what the page must know of the model. Raises UserError where targets are constrained."""
    run = service.run
    if run.data.evaluation.constrained and constraint_of(run.inputs, "cpu") is not None:
        raise UserError(
            f"{run.path}: its targets are trees over the words of the source, and the page without a server searches"
            " without constraints; open it with `elman serve`"
        )
    model, pairs = run.model, _pairs_of(run, data)
    found = write_graphs(
        folder,
        lambda place: write_conditional(model, place, {"model_type": "elman"}),
        lambda place: compare_conditional(model, ConditionalGraphs(place, model), pairs),
        int8=int8,
    )
    symbols, options = run.inputs, run.options
    return found, {
        "source": symbols.source.words,
        "target": symbols.target.words,
        "source_unk": symbols.source.unk,
        "end": symbols.target.eos,
        "unk": symbols.target.unk,
        "reading": portable_rules(options.source_text),
        "writing": portable_rules(options.target_text),
        "subwords": subword_facts(symbols.tokenisers.source.subwords, options.subwords.kind),
        "reversed": options.reverse_source,
        "most_source": options.max_source,
        "longest": [service.longest(length) for length in range(options.max_source + 1)],
        "length_factors": length_factors(LONGEST_TARGET),
        "tie": TIE,
    }


def length_factors(longest: int) -> list[float]:
    """What the log-probability of a target of 0, 1, ... symbols before its end is multiplied by for its score."""
    return [Beam().score(1.0, np.zeros((length + 1, 0), np.float32)) for length in range(longest + 1)]


def _pairs_of(run: PairRun, data: str | None) -> list[tuple[npt.NDArray[np.integer], list[int]]]:
    """Sources, as the model reads them, and targets after their start symbol: of the valid split, else drawn ones."""
    end = run.inputs.target.eos
    assert end is not None
    try:
        split = run.corpus(data).split("valid")
        texts = [(split.source[at].numpy(), split.target[at].tolist()) for at in range(min(SOURCES, len(split)))]
    except UserError as error:
        if data is not None:
            raise
        notice(f"the valid split cannot be read, so random pairs are compared: {error}")
        draw = np.random.default_rng(0)
        texts = [
            (draw.integers(len(run.inputs.source), size=1 + at % 12), draw.integers(len(run.inputs), size=10).tolist())
            for at in range(SOURCES)
        ]
    backwards = run.options.reverse_source
    return [(source[::-1].copy() if backwards else source, [end, *target]) for source, target in texts]
