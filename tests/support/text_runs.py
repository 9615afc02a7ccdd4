"""A small text and a small recipe for tests that run the whole machine."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from elman import config
from elman.learning import checkpoint

WORDS = 20


def write_corpus(folder: Path, sizes: dict[str, int] | None = None) -> Path:
    """A folder with train.txt, valid.txt, test.txt drawn from a Markov chain over 20 words."""
    folder.mkdir(parents=True, exist_ok=True)
    draw = np.random.default_rng(0)
    chain = draw.dirichlet(np.full(WORDS, 0.1), size=WORDS)
    for split, lines in (sizes or {"train": 120, "valid": 20, "test": 20}).items():
        text, word = [], 0
        for _ in range(lines):
            line = []
            for _ in range(9):
                word = draw.choice(WORDS, p=chain[word])
                line.append(f"w{word}")
            text.append(" ".join(line))
        (folder / f"{split}.txt").write_text("\n".join(text) + "\n")
    return folder


def recipe(**training: Any) -> config.Recipe:
    """An LSTM of 8 units with every kind of dropout, two epochs of random windows."""
    raw = {
        "title": "toy",
        "seed": 3,
        "model": {
            "encoder": {"kind": "lookup", "size": 8, "dropout": 0.1, "word_dropout": 0.1},
            "core": {
                "kind": "stack",
                "sizes": [8, 8],
                "weight_drop": 0.2,
                "between_dropout": 0.1,
                "output_dropout": 0.1,
            },
            "output": {"choice": {"kind": "flat", "tied": True}},
        },
        "training": {
            "epochs": 2,
            "batch_size": 4,
            "optimiser": {"kind": "adam", "lr": 0.01},
            "window": {"length": 10, "random": True},
            "clip": 0.5,
            "penalties": {"ar": 1.0, "tar": 1.0},
            "log_every": 5,
            **training,
        },
        "data": {"kind": "text", "evaluation": {"streams": 4}},
    }
    return config.parse_recipe(raw, "toy")


def metrics(out):
    """The records of a run without what depends on the clock and without resume events."""
    records = map(json.loads, (out / "metrics.jsonl").read_text().splitlines())
    clock = ("seconds", "tokens_per_s")
    return [
        {key: value for key, value in record.items() if key not in clock}
        for record in records
        if record.get("event") != "resume"
    ]


def events(out):
    """The names of the events of a run."""
    records = map(json.loads, (out / "metrics.jsonl").read_text().splitlines())
    return [record["event"] for record in records if record["kind"] == "event"]


def same_files(a, b):
    """Whether two runs have the same checkpoint and the same best model."""
    names = ("checkpoint.safetensors", "model.safetensors")
    digests = [[checkpoint.digest_of(checkpoint.load(out / name)[0]) for name in names] for out in (a, b)]
    return digests[0] == digests[1]
