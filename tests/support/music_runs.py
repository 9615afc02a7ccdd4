"""Music in which every chord follows from the one before it, and a small recipe for it."""

import numpy as np

from elman import config


def rolls(pieces, seed):
    """Pieces in which every chord follows from the one before it, as [steps, 88]."""
    draw = np.random.default_rng(seed)
    lengths = draw.integers(3, 20, size=pieces)
    roll = np.zeros((lengths.sum(), 88), np.uint8)
    at = 0
    for length in lengths:
        for step in range(length):
            roll[at + step, [30 + 2 * (step % 4), 37 + 2 * (step % 4)]] = 1
        at += length
    return roll, lengths.astype(np.int32)


def arrays():
    return {
        f"{split}_{key}": array
        for seed, (split, pieces) in enumerate({"train": 30, "valid": 6, "test": 6}.items())
        for key, array in zip(("roll", "len"), rolls(pieces, seed), strict=True)
    }


def recipe(choice="nade", **training):
    raw = {
        "title": "toy music",
        "seed": 3,
        "data": {"kind": "music", "pitches": 93, "evaluation": {"streams": 4}},
        "model": {
            "encoder": {"kind": "frames", "size": 8, "dropout": 0.1},
            "core": {"kind": "stack", "sizes": [12], "output_dropout": 0.1},
            "output": {"choice": {"kind": choice}},
        },
        "training": {
            "epochs": 3,
            "batch_size": 4,
            "optimiser": {"kind": "adam", "lr": 0.02},
            "window": {"length": 6},
            "log_every": 5,
            **training,
        },
    }
    return config.parse_recipe(raw, "toy")
