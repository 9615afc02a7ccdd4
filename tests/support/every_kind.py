"""Small data and recipes of every kind that can be cut into slices."""

import numpy as np

from elman import config
from support import music_runs, tagged, text_runs

AVERAGED = {
    "epochs": 2,
    "averaging": {"kind": "non-monotone", "interval": 1},
    "validate_every": 13,
    "fine_tune": {"lr": 1.0, "epochs": 1, "interval": 2},
}

FEW = {"train": 60, "valid": 12, "test": 12}
"""Lines of a text: two windows of steps for `AVERAGED` to validate in an epoch."""

PAIRS = """
title = "toy pairs"
seed = 3
[model]
encoder = { kind = "lookup", size = 8, dropout = 0.1 }
source = { encoder = { kind = "lookup", size = 8 }, stack = { sizes = [8], output_dropout = 0.1 } }
core = { kind = "attentive", stack = { sizes = [16], weight_drop = 0.1 }, output_dropout = 0.1 }
[model.output]
contexts = { kind = "mixture", heads = { 1 = 2 }, size = 8 }
choice = { kind = "flat", tied = true }
[training]
epochs = 2
batch_size = 20
slices = 4
optimiser = { kind = "adam", lr = 0.01 }
[data]
kind = "pairs"
valid = 20
test = 20
"""

SERIES = """
title = "toy series"
seed = 3
[model]
encoder = { kind = "values", size = 6 }
core = { kind = "stack", sizes = [12], output_dropout = 0.05 }
output = { choice = { kind = "gaussian" } }
[training]
epochs = 1
batch_size = 4
slices = 4
optimiser = { kind = "adam", lr = 0.02 }
window = { length = 10 }
[data]
kind = "series"
evaluation = { streams = 4 }
"""


def write_pairs(folder):
    """A file of lines `c a b TAB B A C`; the last batch has fewer pairs than slices."""
    draw = np.random.default_rng(0)
    lines = [list(draw.choice(list("abcdefgh"), draw.integers(1, 7))) for _ in range(143)]
    path = folder / "pairs.tsv"
    path.write_text("".join(f"{' '.join(one)}\t{' '.join(one[::-1]).upper()}\n" for one in lines))
    return path


def write_series(folder):
    """A random walk."""
    steps = np.random.default_rng(0).normal(size=400).cumsum()
    path = folder / "walk.csv"
    path.write_text("walk\n" + "".join(f"{step!r}\n" for step in steps.tolist()))
    return path


def parsed(folder, text):
    (folder / "toy.toml").write_text(text)
    return config.load_recipe(folder / "toy.toml")


def write_music(folder):
    np.savez(folder / "music.npz", **music_runs.arrays())
    return folder / "music.npz"


KINDS = {
    "text": (
        lambda folder: text_runs.write_corpus(folder / "corpus", FEW),
        lambda _: text_runs.recipe(slices=4, **AVERAGED),
    ),
    "music": (write_music, lambda _: music_runs.recipe(slices=4, epochs=1)),
    "pairs": (write_pairs, lambda folder: parsed(folder, PAIRS)),
    "series": (
        write_series,
        lambda folder: parsed(folder, SERIES),
    ),
    "tags": (
        lambda folder: tagged.write(folder / "tags.tsv"),
        lambda _: tagged.recipe(epochs=1, training={"slices": 4}),
    ),
}
