"""A small treebank that can be learnt, and recipes for it."""

import numpy as np

from elman import config

WORDS = {"DT": ["the", "a"], "NN": ["cat", "dog", "fish"], "VB": ["sees", "likes"], "IN": ["near", "under"]}


def tree(draw):
    """A sentence of 4 to 11 words, in brackets."""

    def word(tag):
        return f"({tag} {draw.choice(WORDS[tag])})"

    def phrase(depth):
        plain = f"(NP {word('DT')} {word('NN')})"
        below = depth and draw.random() < 0.4
        return f"(NP {plain} (PP {word('IN')} {phrase(depth - 1)}))" if below else plain

    return f"(ROOT (S {phrase(1)} (VP {word('VB')} {phrase(1)}) (. .)))"


def write(path, count=120, seed=0):
    draw = np.random.default_rng(seed)
    path.write_text("".join(f"{tree(draw)}\n" for _ in range(count)), encoding="utf-8")
    return path


def recipe(*, parser=True, composition="binary-lstm", epochs=3, encoder=None, data=None, **core):
    raw = {
        "title": "toy treebank",
        "seed": 2,
        "data": {"kind": "trees", "valid": 12, "test": 12, "min_count": 1, **(data or {})},
        "model": {
            "encoder": encoder or {"kind": "lookup", "size": 8},
            "core": {"kind": "recursive", "size": 8, "parser": parser, "composition": {"kind": composition}, **core},
        },
        "training": {
            "epochs": epochs,
            "batch_size": 6,
            "optimiser": {"kind": "adam", "lr": 0.03},
            "log_every": 5,
            **({"margin": {"kappa": 0.5}} if parser else {}),
        },
    }
    return config.parse_recipe(raw, "toy")
