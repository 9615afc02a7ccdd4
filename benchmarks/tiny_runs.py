"""Tiny runs of every kind of data, trained in about a second each, for benchmarks that open runs many times."""

from pathlib import Path
from typing import Any

import numpy as np

from elman import config
from elman.tasks.experiment import Experiment

TRAINING = {"epochs": 2, "optimiser": {"kind": "adam", "lr": 0.02}, "clip": 1.0, "log_every": 5}
LSTM = {"kind": "stack", "sizes": [8], "output_dropout": 0.1}
MODELS: dict[str, dict[str, Any]] = {
    "text": {
        "encoder": {"kind": "lookup", "size": 8, "dropout": 0.1},
        "core": LSTM,
        "output": {"choice": {"kind": "flat", "tied": True}},
    },
    "music": {
        "encoder": {"kind": "frames", "size": 8},
        "core": LSTM,
        "output": {"choice": {"kind": "nade", "size": 8}},
    },
    "pairs": {
        "encoder": {"kind": "lookup", "size": 8},
        "source": {"encoder": {"kind": "lookup", "size": 8}, "stack": {"sizes": [4]}},
        "core": {"kind": "attentive", "stack": {"sizes": [8]}},
    },
    "series": {"encoder": {"kind": "values", "size": 4}, "core": LSTM, "output": {"choice": {"kind": "gaussian"}}},
    "trees": {
        "encoder": {"kind": "lookup", "size": 8, "dropout": 0.1},
        "core": {"kind": "recursive", "size": 8, "parser": True, "output_dropout": 0.1},
    },
    "tags": {
        "encoder": {"kind": "lookup", "size": 8, "dropout": 0.1},
        "core": {"kind": "sentence", "stack": {"sizes": [8], "output_dropout": 0.1}},
    },
}
DATA: dict[str, dict[str, Any]] = {
    "text": {"min_count": 2, "evaluation": {"streams": 4}},
    "music": {"pitches": 88, "evaluation": {"streams": 4}},
    "pairs": {"valid": 20, "test": 20, "max_source": 8},
    "series": {},
    "trees": {"valid": 10, "test": 10},
    "tags": {"form": "trees", "valid": 10, "test": 10},
}
WINDOWS: dict[str, dict[str, Any]] = {kind: {"batch_size": 4, "window": {"length": 10}} for kind in ("text", "series")}
WINDOWS |= {
    "music": {"batch_size": 4, "window": {"length": 6}},
    "pairs": {"batch_size": 20},
    "trees": {"batch_size": 10, "margin": {}},
    "tags": {"batch_size": 10},
}


def recipe(kind: str) -> config.Recipe:
    """A network of 8 units for one kind of data."""
    training, data = {**TRAINING, **WINDOWS[kind]}, {"kind": kind, **DATA[kind]}
    raw = {"title": f"tiny {kind}", "seed": 3, "model": MODELS[kind], "training": training, "data": data}
    return config.parse_recipe(raw, kind)


def write_data(kind: str, folder: Path) -> Path:
    """A small learnable set of one kind: what --data is given."""
    folder.mkdir(parents=True, exist_ok=True)
    draw = np.random.default_rng(0)
    if kind == "text":
        lines = [" ".join(f"w{word}" for word in draw.zipf(1.5, 8) % 20) for _ in range(160)]
        for split, part in (("train", lines[:120]), ("valid", lines[120:140]), ("test", lines[140:])):
            (folder / f"{split}.txt").write_text("\n".join(part) + "\n")
        return folder
    if kind == "pairs":
        path = folder / "pairs.tsv"
        sources = [draw.choice(list("abcdefgh"), draw.integers(1, 7)) for _ in range(200)]
        path.write_text("".join(f"{' '.join(one)}\t{' '.join(one[::-1]).upper()}\n" for one in sources))
        return path
    if kind in ("trees", "tags"):
        path = folder / "trees.ptb"
        path.write_text("".join(f"(ROOT {_tree(draw, 3)})\n" for _ in range(80)))
        return path
    if kind == "series":
        path, time = folder / "series.csv", np.arange(400)
        values = np.sin(time / 3) + draw.normal(0, 0.05, len(time))
        path.write_text("value\n" + "".join(f"{one!r}\n" for one in values.tolist()))
        return path
    path, arrays = folder / "rolls.npz", {}
    for split, pieces in (("train", 30), ("valid", 6), ("test", 6)):
        lengths = draw.integers(3, 20, pieces)
        roll = np.zeros((lengths.sum(), 88), np.uint8)
        roll[np.arange(len(roll)), 30 + 2 * (np.arange(len(roll)) % 4)] = 1
        arrays |= {f"{split}_roll": roll, f"{split}_len": lengths.astype(np.int32)}
    np.savez(path, **arrays)
    return path


def _tree(draw: np.random.Generator, depth: int) -> str:
    """A tree of two to eight words, in brackets."""
    if depth == 0:
        return f"({draw.choice(['DT', 'NN', 'VB'])} {draw.choice(list('abcdefgh'))})"
    below = " ".join(_tree(draw, depth - 1 - int(draw.integers(depth))) for _ in range(2))
    return f"({draw.choice(['NP', 'VP'])} {below})"


def train(kind: str, data: Path, out: Path, *, stopped: bool = False) -> None:
    """A finished run, with its results, or one stopped after its first step."""
    experiment = Experiment(recipe(kind), out, data=data)
    experiment.train(max_minutes=0 if stopped else None)
    if not stopped:
        experiment.finish()
