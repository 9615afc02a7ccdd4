"""Small tagged sentences in which the tag of a word depends on the word after it, and recipes for them."""

import numpy as np

from elman import config

AFTER = {"p": "N", "q": "V"}
"""The word after `fish`, `duck` or `play`, and their tag before it."""


def sentences(count=160, seed=0):
    """Pairs of words and tags: ambiguous words, each before one that tells what they are."""
    draw = np.random.default_rng(seed)
    made = []
    for _ in range(count):
        words, tags = [], []
        for _ in range(draw.integers(1, 5)):
            after = draw.choice(list(AFTER))
            words += [str(draw.choice(["fish", "duck", "play"])), str(after)]
            tags += [AFTER[after], "X"]
        made.append((words, tags))
    return made


def in_columns(pairs, between="\t"):
    return "\n".join("".join(f"{word}{between}{tag}\n" for word, tag in zip(*one, strict=True)) for one in pairs)


def write(path, **how):
    path.write_text(in_columns(sentences(**how)), encoding="utf-8")
    return path


def write_bank(path, count=120, seed=0):
    """Trees with noun phrases of one or two words before a verb."""
    draw = np.random.default_rng(seed)

    def phrase():
        noun = f"(NN {draw.choice(['cat', 'dog', 'fish'])})"
        return f"(NP (DT {draw.choice(['the', 'a'])}) {noun})" if draw.random() < 0.5 else f"(NP {noun})"

    lines = (f"(ROOT (S {phrase()} (VP (VB sees) {phrase()}) (. .)))\n" for _ in range(count))
    path.write_text("".join(lines), encoding="utf-8")
    return path


def recipe(*, bidirectional=True, epochs=4, encoder=None, data=None, training=None, output=None, **stack):
    raw = {
        "title": "toy tags",
        "seed": 2,
        "data": {"kind": "tags", "valid": 20, "test": 20, "min_count": 1, **(data or {})},
        "model": {
            "encoder": encoder or {"kind": "lookup", "size": 6},
            "core": {"kind": "sentence", "bidirectional": bidirectional, "stack": {"sizes": [8], **stack}},
            **({"output": output} if output else {}),
        },
        "training": {
            "epochs": epochs,
            "batch_size": 8,
            "optimiser": {"kind": "adam", "lr": 0.05},
            "log_every": 5,
            **(training or {}),
        },
    }
    return config.parse_recipe(raw, "toy")
