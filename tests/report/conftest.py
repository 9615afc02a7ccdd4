"""A run folder as training writes it, made up but with the shapes of real ones."""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tomli_w
from safetensors.numpy import save_file

TRAIN_TOKENS, STEPS_AN_EPOCH, SECONDS_A_STEP = 929_589, 1327, 0.31

PASSAGE = """the baker said her bread would rise by noon <eos> nobody in the village believed a word of it but
the children waited at the window all the same <eos> when the clock struck N the oven sang and every loaf
was gone before the mayor had found his hat <eos>"""

SAMPLE = """the company said it expects to report a loss of $ N million for the third quarter
compared with a profit of $ N million a year earlier
traders said the market was not surprised"""


def recipe(seed: int, title: str, weight_drop: float, expected: bool) -> dict[str, Any]:
    published = {
        "source": "Merity et al. 2018, Table 2",
        "valid": 60.7,
        "test": 58.8,
        "parameters": 24_221_600,
    }
    return {
        "title": title,
        "notes": "Three LSTM layers, tied word vectors, DropConnect on the recurrent weights, NT-ASGD.",
        "citation": "Merity, Keskar & Socher 2018, Regularizing and Optimizing LSTM Language Models",
        "seed": seed,
        "model": {"core": {"kind": "stack", "sizes": [1150, 1150, 400], "weight_drop": weight_drop}},
        "training": {"epochs": 30, "clip": 0.25, "optimiser": {"kind": "sgd", "lr": 30.0}},
        **({"expected": published} if expected else {}),
    }


def metrics(seed: int, epochs: int, floor: float) -> list[dict[str, Any]]:
    """Curves that fall to about `floor`, with averaging from two thirds of the way on."""
    draw = np.random.default_rng(seed)
    lines: list[dict[str, Any]] = []
    averaging, best = max(1, 2 * epochs // 3), math.inf
    for step in range(50, epochs * STEPS_AN_EPOCH + 50, 50):
        epoch, seconds = step / STEPS_AN_EPOCH, step * SECONDS_A_STEP
        for boundary in range(math.floor((step - 50) / STEPS_AN_EPOCH) + 1, math.floor(epoch) + 1):
            bonus = 0.06 if boundary > averaging else 0.0
            nll = math.log(floor) + 1.1 / (boundary + 0.2) ** 0.8 - bonus + draw.normal(0, 0.008)
            place = {"step": boundary * STEPS_AN_EPOCH, "epoch": float(boundary), "phase": 0}
            place["seconds"] = boundary * STEPS_AN_EPOCH * SECONDS_A_STEP
            better, best = nll < best, min(best, nll)
            flags = {"best": better, "averaged": boundary > averaging}
            lines.append({"kind": "valid", **place, "nll": nll, "perplexity": math.exp(nll), **flags})
            if boundary == averaging:
                lines.append({"kind": "event", **place, "event": "averaging", "message": "validation stopped falling"})
        loss = math.log(floor * 0.92) + 1.9 * math.exp(-epoch * 3) + 1.2 / (epoch + 0.9) + draw.normal(0, 0.035)
        scale = draw.normal(70, 5) / 70 if draw.random() < 0.95 else 0.5
        lines.append(
            {
                "kind": "train",
                "step": step,
                "epoch": round(epoch, 4),
                "phase": 0,
                "loss": loss,
                "penalty": 0.04,
                "perplexity": math.exp(loss),
                "lr": 30.0 * scale,
                "grad_norm": 0.17 + 0.5 * math.exp(-epoch) + abs(draw.normal(0, 0.03)),
                "tokens_per_s": draw.normal(4400, 120),
                "seconds": round(seconds, 2),
            }
        )
    return lines


def result(split: str, perplexity: float, tokens: int, unknown: int, characters: int) -> dict[str, Any]:
    nll = math.log(perplexity)
    return {
        "split": split,
        "nll": nll,
        "perplexity": perplexity,
        "bits_per_token": nll / math.log(2),
        "bits_per_character": nll / math.log(2) * tokens / characters,
        "tokens": tokens,
        "unknown": unknown,
        "characters": characters,
        "method": "static",
        "context": "carried",
        "streams": 1,
        "model": "best",
    }


def write_run(
    folder: Path,
    *,
    seed: int = 1,
    title: str = "AWD-LSTM, Penn Treebank",
    weight_drop: float = 0.5,
    epochs: int = 12,
    floor: float = 64.0,
    expected: bool = True,
    digest: str = "07410db6",
) -> Path:
    """Write every file that a run may have."""
    folder.mkdir(parents=True)
    lines = metrics(seed, epochs, floor)
    valid = min(line["perplexity"] for line in lines if line["kind"] == "valid")
    (folder / "recipe.toml").write_text(tomli_w.dumps(recipe(seed, title, weight_drop, expected)))
    (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    words = [
        "the",
        "<unk>",
        "<eos>",
        "N",
        "of",
        "to",
        "a",
        "in",
        "and",
        "'s",
        "that",
        "for",
        "$",
        "is",
        "said",
        "on",
    ]
    table = [f"{word}\t{round(59421 / (rank + 1))}\n" for rank, word in enumerate(words)]
    (folder / "vocabulary.tsv").write_text("".join(table))
    counts = {"train": (TRAIN_TOKENS, 45020, 5017482, 42068), "valid": (73760, 3485, 393042, 3370)}
    counts["test"] = (82430, 4794, 442423, 3761)
    keys = ("tokens", "unknown", "characters", "lines")
    splits = {name: {**dict(zip(keys, row, strict=True)), "sha256": "fcea919f" * 8} for name, row in counts.items()}
    options = {"tokenisation": "words", "lowercase": False, "eos": "line", "min_count": 1}
    facts = {"name": "ptb", "source": "data/ptb", **options, "splits": splits, "digest": digest}
    write(folder / "data.json", facts)
    environment = {"elman": "0.1.0", "python": "3.11.7", "torch": "2.13.0", "platform": "Linux", "threads": 2}
    write(folder / "environment.json", {**environment, "device": "cpu", "started": "2026-01-02T09:30:00+00:00"})
    test = valid * 0.97
    results = [result("valid", valid, 73760, 3485, 393042), result("test", test, 82430, 4794, 442423)]
    write(folder / "results.json", results)
    baselines = [("Kneser-Ney 5-gram", 148.3, 141.2), ("unigram", 664.2, 639.3)]
    write(
        folder / "baselines.json",
        [
            {"name": name, "split": s, "nll": math.log(p), "perplexity": p, "tokens": 82430}
            for name, v, t in baselines
            for s, p in (("valid", v), ("test", t))
        ],
    )
    prompts = [("", 0), ("the market", 1)]
    write(
        folder / "samples.json",
        [{"prompt": prompt, "text": SAMPLE, "temperature": 0.9, "seed": s} for prompt, s in prompts],
    )
    draw = np.random.default_rng(seed)
    bits = draw.gamma(2.0, 3.1, len(PASSAGE.split())).round(3).tolist()
    pairs = zip(PASSAGE.split(), bits, strict=True)
    write(folder / "surprisal.json", {"sentence": [{"word": word, "surprisal": b} for word, b in pairs]})
    save_file(
        {"weight": np.zeros((40, 25), np.float32), "bias": np.zeros(7, np.float32)},
        folder / "model.safetensors",
    )
    return folder


def write(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, indent=1))


@pytest.fixture
def make_run(tmp_path: Path) -> Callable[..., Path]:
    """Write a run folder of this name under a temporary folder; the other arguments are `write_run`'s."""

    def make(name: str = "run", **options: Any) -> Path:
        return write_run(tmp_path / name, **options)

    return make
