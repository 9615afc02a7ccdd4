"""Shared by several claims: measures read from results.json, and the arms of claims on output layers."""

import json
import math
from pathlib import Path

from elman.reproduce.claim import Arm, ClaimMeasure, Measurement, Source

FIGURES = {"perplexity": "perplexity", "bits per character": "bits_per_character", "nats per step": "nll"}
"""Figures of results.json, by their names here."""


def results(folder: Path) -> Measurement:
    """The figures of each split in results.json; measures of the test output, and `MEASURE, baseline` beside them."""
    rows = {row["split"]: row for row in json.loads((folder / "results.json").read_text(encoding="utf-8"))}
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


PERPLEXITY = by_split("perplexity", "perplexity")
BITS = by_split("bits", "bits per character")

# One network and one budget at small scale, so only the output layer differs.
WORDS, CHARACTERS = "reproduce/small-words.toml", "reproduce/small-characters.toml"

ACTIVATIONS = {"softmax": "MoS", "sigsoftmax": "MoSS", "relu": "MoR", "sigmoid": "MoSig", "softplus": "MoSp"}
"""Activations, and the names of mixtures of each (Kanai's thesis, section 4.4)."""


def words(*settings: str) -> Source:
    """The small network of words, with settings laid over it."""
    return Source(WORDS, settings)


def heads(*counts: tuple[int, int]) -> str:
    """A setting: (level, components) of the small network, whose layers are 1 and 2; level 0 is the word vector."""
    inner = ", ".join(f"{level} = {count}" for level, count in counts)
    return f'model.output.contexts={{kind = "mixture", size = 64, heads = {{{inner}}}}}'


def activation(name: str) -> Arm:
    """One output function without a mixture."""
    settings = () if name == "softmax" else (f"model.output.activation={name}",)
    return Arm(name, words(*settings), Source(f"ptb/awd-lstm-{name}.toml"))


def mixture_of(name: str) -> Arm:
    """A mixture of 3 components at small scale, 15 at paper scale; sigsoftmax also weighs its components (4.43)."""
    settings = [heads((2, 3))] + ([] if name == "softmax" else [f"model.output.activation={name}"])
    if name == "sigsoftmax":
        settings.append("model.output.contexts.prior=same")
    label = ACTIVATIONS[name]
    paper = "ptb/awd-lstm-mos.toml" if name == "softmax" else f"ptb/awd-lstm-{label.lower()}.toml"
    return Arm(label, words(*settings), Source(paper))


def components(label: str, paper: str, *counts: tuple[int, int], more: tuple[str, ...] = ()) -> Arm:
    """Direct output connection: components by level, at small scale one for every five of the paper."""
    return Arm(label, words(heads(*counts), *more), Source(f"ptb/{paper}.toml"))


MOS, MOS_MORE = mixture_of("softmax"), components("MoS, a third more", "awd-lstm-mos-20", (2, 4))
DOC = components("DOC", "awd-lstm-doc-15-5-0-0", (2, 3), (1, 1))
DOC_SHALLOW = components("DOC, shallow", "awd-lstm-doc-15-0-0-5", (2, 3), (0, 1))
DOC_BALANCED = components("DOC, balanced", "awd-lstm-doc", (2, 3), (1, 1), more=("training.penalties.balance=0.001",))
