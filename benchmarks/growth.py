"""How the cost of a training step grows, one size at a time, beside the theory: `python benchmarks/growth.py`.

A one-layer LSTM with a mixture over its output; each point is timed in a fresh process, so that its memory is its
own. The theory is the matrix products alone; what stays above it at small sizes is what every step pays.
"""

import argparse
import dataclasses
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

import matplotlib as mpl
import numpy as np
import torch
from matplotlib.figure import Figure

from elman import config
from elman.config.text import TextOptions
from elman.data.batches import Batch
from elman.data.text.corpus import open_corpus
from elman.data.windows import EvaluationWindows
from elman.evaluation.perplexity import evaluate
from elman.learning.bptt import bptt
from elman.learning.optimisers import Optimiser
from elman.network.build import build_model
from elman.network.device import use_large_pages
from elman.objective.loss import build_objective


@dataclasses.dataclass(frozen=True)
class Sizes:
    """V symbols, K components, D context and word vector, H units, T steps, B columns; `corpus` words evaluated."""

    V: int = 10_000
    K: int = 1
    D: int = 256
    H: int = 512
    T: int = 35
    B: int = 20
    corpus: int = 0

    def gflop(self) -> float:
        """The matrix products of a training step, or of an evaluation."""
        layer = 4 * self.H * (self.D + self.H)
        output = self.K * self.D * self.H + self.K * self.H + self.K * self.D * self.V
        return 2e-9 * (layer + output) * (self.corpus or 3 * self.T * self.B)


BASE = Sizes()
AXES: dict[str, tuple[int, ...]] = {
    "V": (1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 800_000),
    "K": (1, 2, 5, 10, 15, 20, 30),
    "D": (32, 64, 128, 256, 512, 1024),
    "H": (64, 128, 256, 512, 1024, 2048),
    "T": (5, 10, 20, 35, 70, 140, 280),
    "B": (1, 2, 5, 10, 20, 40, 80, 160),
    "corpus": (10_000, 30_000, 100_000, 300_000, 1_000_000),
    "text": (30_000, 100_000, 300_000, 1_000_000, 3_000_000),
}


def network(sizes: Sizes) -> config.Model:
    contexts = config.Mixture(heads={1: sizes.K}, size=sizes.D)
    core = config.Stack(sizes=(sizes.H,))
    output = config.Output(contexts=contexts, choice=config.Flat(tied=True))
    return config.Model(encoder=config.Lookup(size=sizes.D), core=core, output=output)


def train(sizes: Sizes) -> float:
    """Seconds of a training step: forward, backward, update."""
    model = build_model(network(sizes), sizes.V).train()
    optimiser = Optimiser(config.SGD(lr=0.1), list(model.parameters()))
    objective = build_objective(config.Training(epochs=1, optimiser=config.SGD(lr=0.1)))
    words = torch.randint(sizes.V, (sizes.T + 1, sizes.B))
    batch, state = Batch(words[:-1], words[1:]), model.begin(sizes.B)

    def step() -> None:
        optimiser.zero_grad()
        bptt(model, objective, batch, state)
        optimiser.step()

    return timed(step)


def read(sizes: Sizes) -> float:
    """Seconds of evaluating `corpus` words, 64 columns side by side."""
    model = build_model(network(sizes), sizes.V)
    tokens = np.random.default_rng(0).integers(0, sizes.V, sizes.corpus, dtype=np.int32)
    started = time.process_time()
    evaluate(model, EvaluationWindows(tokens, 0, streams=64))
    return time.process_time() - started


def prepare(num_words: int) -> float:
    """Seconds of turning a text of random words into a mapped corpus."""
    draw = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        text = Path(folder) / "text.txt"
        with text.open("w") as file:
            for _ in range(num_words // 20):
                file.write(" ".join(f"w{word}" for word in draw.zipf(1.3, 20) % 50_000) + "\n")
        started = time.process_time()
        open_corpus(text, TextOptions(min_count=2), cache=Path(folder) / "cache")
        return time.process_time() - started


def timed(step: object) -> float:
    assert callable(step)
    step()
    seconds: list[float] = []
    while len(seconds) < 3 or (sum(seconds) < 2 and len(seconds) < 20):
        started = time.process_time()
        step()
        seconds.append(time.process_time() - started)
    return statistics.median(seconds)


def measure(axis: str, value: int) -> None:
    """One point, in this process."""
    use_large_pages()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    sizes = BASE if axis == "text" else dataclasses.replace(BASE, **{axis: value})
    started = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    seconds = prepare(value) if axis == "text" else read(sizes) if sizes.corpus else train(sizes)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    gflop = None if axis == "text" else round(sizes.gflop(), 3)
    point = {"axis": axis, "value": value, "seconds": round(seconds, 5), "gflop": gflop}
    print(json.dumps(point | {"start_mb": round(started), "peak_mb": round(peak)}), flush=True)


def plot(points: Iterable[dict[str, float | str]], path: Path) -> None:
    """Seconds and megabytes against each size; the theory is drawn through the point all axes share."""
    by_axis: dict[str, list[dict[str, float]]] = {}
    for point in points:
        by_axis.setdefault(str(point["axis"]), []).append(point)  # type: ignore[arg-type]
    figure = Figure(figsize=(12, 5.6), layout="constrained")
    panels = list(figure.subplots(2, -(-len(by_axis) // 2)).flat)
    for empty in panels[len(by_axis) :]:
        empty.set_axis_off()
    for panel, (axis, found) in zip(panels, by_axis.items(), strict=False):
        x, seconds = [p["value"] for p in found], [p["seconds"] for p in found]
        panel.loglog(x, seconds, "o-", color="#1f6f9f", label="seconds")
        work = [p["gflop"] or p["value"] for p in found]
        shared = x.index(getattr(BASE, axis)) if axis in "VKDHTB" else len(x) - 1
        theory = [seconds[shared] * w / work[shared] for w in work]
        panel.loglog(x, theory, "--", color="#1f6f9f", alpha=0.5, label="products alone")
        panel.set_xlabel({"corpus": "words evaluated", "text": "words prepared"}.get(axis, axis))
        memory = panel.twinx()
        memory.plot(x, [p["peak_mb"] for p in found], "s-", color="#c8553d", markersize=3, alpha=0.7)
        memory.set_ylim(0)
        memory.tick_params(axis="y", colors="#c8553d")
        panel.grid(alpha=0.3)
    figure.legend(*figure.axes[0].get_legend_handles_labels(), loc="outside upper left", ncols=2, frameon=False)
    figure.suptitle("seconds of a training step, one thread (left); peak memory, MB (squares, right)", fontsize=10)
    with mpl.rc_context({"svg.fonttype": "none"}):
        figure.savefig(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("axes", nargs="*", default=tuple(AXES), help=f"of {', '.join(AXES)}")
    parser.add_argument("--plot", type=Path, help="draw the JSON lines of FILE into this picture", metavar="PICTURE")
    parser.add_argument("--lines", type=Path, default=Path("growth.jsonl"), metavar="FILE", help="with --plot")
    parser.add_argument("--point", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.point:
        measure(options.point[0], int(options.point[1]))
    elif options.plot:
        plot(map(json.loads, options.lines.read_text().splitlines()), options.plot)
    else:
        for axis in options.axes:
            for value in AXES[axis]:
                subprocess.run([sys.executable, __file__, "--point", axis, str(value)], check=True)


if __name__ == "__main__":
    main()
