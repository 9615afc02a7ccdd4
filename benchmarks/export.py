"""One token of an exported model: `python benchmarks/export.py [PART ...] --threads 1 --repetitions 20`.

`step`: a step of AWD-LSTM (three layers of 1,150, 1,150 and 400, 10,000 words, random weights) for one sequence: elman
itself, in float32 and in eight bits, and onnxruntime with a graph of each. A repetition is 20 steps. Needs elman[onnx].
"""

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
from elman.network.precision import products_in

RECIPE = Path(__file__).resolve().parents[1] / "recipes" / "ptb" / "awd-lstm.toml"
WORDS, STEPS = 10_000, 20


def main() -> None:
    """Print the machine's peak, and milliseconds per token of every way."""
    options = timing.arguments(__doc__ or "", ("step",))
    timing.peak(options)
    model = build_model(load_recipe(RECIPE).model, WORDS, range(WORDS, 0, -1)).eval()
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
            facts = {"part": "step", "threads": options.threads, "candidate": name, "bytes": sizes.get(name)}
            times = {"min_ms": milliseconds[0], "median_ms": median(milliseconds), "max_ms": milliseconds[-1]}
            print(json.dumps(facts | {key: round(value, 3) for key, value in times.items()}), flush=True)


if __name__ == "__main__":
    main()
