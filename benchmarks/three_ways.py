"""One run, three programs: `python benchmarks/three_ways.py RUN [--data CORPUS] [--split test] [--tokens 1000]`.

The perplexity of the first tokens of a split, read as one stream after the symbol that precedes a text, by elman, by
onnxruntime with the graph of `elman export --to onnx`, and by transformers with the folder of `--to hf`, beside the
largest difference of a log-probability of these tokens from that of elman. Exit status 1 where one is above 1e-3 nats.
Needs elman[onnx] and elman[hf].
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from elman.evaluation.scoring import score_document
from elman.export.folder import export_onnx
from elman.export.hub import export_hub
from elman.export.onnx import OnnxStep
from elman.export.step import TOLERANCE, Step
from elman.objective import perplexity
from elman.tasks.text.run import TextRun

Read = Callable[[TextRun, np.ndarray, Path], np.ndarray]
"""Log-probabilities [n] of tokens [n]; exported files go into the folder."""


def by_elman(run: TextRun, tokens: np.ndarray, folder: Path) -> np.ndarray:  # noqa: ARG001 - nothing is exported
    (log_probs,) = score_document(run.model, [tokens], run.first)
    return log_probs


def by_onnxruntime(run: TextRun, tokens: np.ndarray, folder: Path) -> np.ndarray:
    export_onnx(run, folder / "onnx")
    step = OnnxStep(folder / "onnx" / "model.onnx", Step(run.model))
    state, before, found = step.begin(1), run.first, []
    for token in tokens.tolist():
        log_probs, *state = step(np.array([before]), *state)
        found.append(log_probs[0, token])
        before = token
    return np.array(found)


def by_transformers(run: TextRun, tokens: np.ndarray, folder: Path) -> np.ndarray:
    from transformers import AutoModelForCausalLM

    export_hub(run, folder / "hf")
    model = AutoModelForCausalLM.from_pretrained(folder / "hf").eval()
    ids = torch.tensor([[run.first, *tokens.tolist()]])
    with torch.inference_mode():
        log_probs = model(ids[:, :-1]).logits
    return log_probs[0].gather(1, ids[0, 1:, None]).squeeze(1).numpy()


WAYS: dict[str, Read] = {"elman": by_elman, "onnxruntime": by_onnxruntime, "transformers": by_transformers}


def compared(run: TextRun, tokens: np.ndarray) -> list[dict[str, float | str | int]]:
    """The facts of each way: perplexity, and the largest difference from elman in nats."""
    with tempfile.TemporaryDirectory() as folder:
        found = {name: way(run, tokens, Path(folder)).astype(np.float64) for name, way in WAYS.items()}
    return [
        {
            "way": name,
            "tokens": len(tokens),
            "perplexity": perplexity(-log_probs.mean()),
            "largest_difference": float(np.abs(log_probs - found["elman"]).max()),
        }
        for name, log_probs in found.items()
    ]


def main() -> int:
    """Print a JSON line for each way."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("run", type=Path)
    parser.add_argument("--data", help="a corpus (default: that of the run)")
    parser.add_argument("--split", default="test")
    parser.add_argument("--tokens", type=int, default=1000)
    options = parser.parse_args()
    torch.set_num_threads(1)
    run = TextRun(options.run)
    rows = compared(run, run.corpus(options.data).split(options.split).tokens[: options.tokens])
    for row in rows:
        print(json.dumps(row))
    return int(any(float(row["largest_difference"]) > TOLERANCE for row in rows))


if __name__ == "__main__":
    sys.exit(main())
