"""One token of an exported model: `python benchmarks/export.py [PART ...] --threads 1 --repetitions 20`.

`step`: a step of AWD-LSTM (three layers of 1,150, 1,150 and 400, 10,000 words, random weights) for one sequence: elman
itself, in float32 and in eight bits, and onnxruntime with a graph of each. A repetition is 20 steps. `demo`: the same
of the network of `elman demo` (recipes/shakespeare/demo.toml, 15,000 words). Perplexities before and after rounding
are those of a trained run: `elman export RUN --out FOLDER --int8 --half` prints them. Needs elman[onnx].
"""

import argparse
import json
import tempfile
from pathlib import Path
from statistics import median

import numpy as np
import torch

import timing
from elman.config.toml import load_recipe
from elman.export.onnx import OnnxStep, write_int8, write_step
from elman.export.step import Step
from elman.network.build import build_model
from elman.network.fast.precision import products_in

RECIPES = Path(__file__).resolve().parents[1] / "recipes"
NETWORKS = {
    "step": (RECIPES / "ptb" / "awd-lstm.toml", 10_000),
    "demo": (RECIPES / "shakespeare" / "demo.toml", 15_000),
}
"""By part: the recipe of a network and the size of its vocabulary."""

STEPS = 20


def main() -> None:
    """Print the machine's peak, and the parts."""
    options = timing.arguments(__doc__ or "", tuple(NETWORKS))
    timing.peak(options)
    for part in options.parts:
        measure(part, options)


def measure(part: str, options: argparse.Namespace) -> None:
    """Print milliseconds per token of every way for one network."""
    recipe, words = NETWORKS[part]
    model = build_model(load_recipe(recipe).model, words, range(words, 0, -1)).eval()
    step, symbol = Step(model), torch.tensor([3])

    @torch.inference_mode()
    def ours(precision: str) -> None:
        with products_in(precision):  # type: ignore[arg-type]
            model.step(symbol, model.begin(1))

    with tempfile.TemporaryDirectory() as folder:
        whole, small = Path(folder) / "model.onnx", Path(folder) / "model.int8.onnx"
        write_step(step, whole, {})
        write_int8(whole, small)
        graphs = {path.stem: OnnxStep(path, step) for path in (whole, small)}
        begun = [tensor.numpy() for tensor in step.beginning]
        candidates: timing.Candidates = {
            "elman, float32": lambda: ours("float32"),
            "elman, int8": lambda: ours("int8"),
            "onnxruntime, float32": lambda: graphs["model"](np.array([3]), *begun),
            "onnxruntime, int8": lambda: graphs["model.int8"](np.array([3]), *begun),
        }
        sizes = {"onnxruntime, float32": whole.stat().st_size, "onnxruntime, int8": small.stat().st_size}
        for name, seconds in timing.in_turns(timing.repeated(candidates, STEPS), options).items():
            milliseconds = [1e3 * value / STEPS for value in seconds]
            facts = {"part": part, "threads": options.threads, "candidate": name, "bytes": sizes.get(name)}
            times = {"min_ms": milliseconds[0], "median_ms": median(milliseconds), "max_ms": milliseconds[-1]}
            print(json.dumps(facts | {key: round(value, 3) for key, value in times.items()}), flush=True)


if __name__ == "__main__":
    main()
