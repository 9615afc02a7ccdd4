"""The figures that most claims compare: perplexity, bits per character or nats per step of each split."""

import dataclasses
import math
from pathlib import Path

from elman.reproduce.arm import Measurement
from elman.reproduce.claim import ClaimMeasure
from elman.reproduce.planned import rows_by_split
from elman.reproduce.tokens import BLOCKS, run_by_block

FIGURES = {"perplexity": "perplexity", "bits per character": "bits_per_character", "nats per step": "nll"}
"""Figures of results.json, by their names here."""


def results(folder: Path) -> Measurement:
    """The figures of each split in results.json; measures of the test output, and `MEASURE, baseline` beside them."""
    rows = rows_by_split(folder)
    figures = {
        f"{split} {name}": float(row[key])
        for split, row in rows.items()
        for name, key in FIGURES.items()
        if row.get(key) is not None
    }
    output = rows["test"].get("output", {})
    figures |= {one["name"]: float(one["value"]) for one in output.get("measures", [])}
    figures |= {f"{one['name']}, baseline": float(one["value"]) for one in output.get("baseline", [])}
    return Measurement(figures, {})


def by_split(name: str, figure: str) -> ClaimMeasure:
    """One of `FIGURES` on the validation and the test split."""
    metrics = {f"{split} {figure}": f"{figure}, {split}" for split in ("valid", "test")}
    return ClaimMeasure(name, metrics, results, diverged=dict.fromkeys(metrics, math.inf))


def with_test_text(folder: Path, block: int, streams: int) -> Measurement:
    """As `results`, with the nats of the test text by block."""
    found, text = results(folder), run_by_block(folder, block, streams)
    return Measurement(found.figures | text.figures, found.curves | text.curves)


PERPLEXITY = dataclasses.replace(
    by_split("perplexity", "perplexity"),
    function=with_test_text,
    constants=BLOCKS,
    minutes=0.1,
)
BITS = by_split("bits", "bits per character")
