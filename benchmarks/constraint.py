"""What the spectral constraint costs a step: `python benchmarks/constraint.py [deltas] [adversarial]`.

Processor time, so that a busy machine does little harm. Parts:
`deltas`, every method for delta in 0.2 ... 1.4 from an orthogonal matrix, the updates being those of a real training;
`adversarial`, 500 steps with spikes of rank one outside what is tracked: the largest sigma_1, deviation from the SVD.
"""

import argparse
import json
import time
from pathlib import Path
from statistics import mean, median

import torch

from elman import config
from elman.build import build_model, build_objective
from elman.cores.blocks import candidate_hidden
from elman.data.corpus import open_corpus
from elman.data.windows import TrainingWindows
from elman.kernels.allocator import use_large_pages
from elman.learning.bptt import bptt
from elman.learning.constraint import spectral_projector
from elman.learning.optimisers import build_optimiser, clip_gradients
from elman.learning.projections.exact import BySVD
from elman.learning.projections.projector import Projector
from elman.state import restart

DELTAS = (0.2, 0.5, 0.8, 1.1, 1.4)
METHODS = ("subspace", "eigh", "svd", "truncated")


def projectors(delta: float) -> dict[str, Projector]:
    made = {name: spectral_projector(config.Spectral(delta=delta, method=name), 2 - delta) for name in METHODS}
    tight = config.Spectral(delta=delta, method="truncated", step_norm="spectral")
    return made | {"truncated, spectral norm": spectral_projector(tight, 2 - delta)}


class Training:
    """The recipe's training, a step at a time, timed; without constraint of its own."""

    def __init__(self, recipe: config.Recipe, data: str) -> None:
        corpus = open_corpus(data, recipe.data.text)
        torch.manual_seed(recipe.seed)
        self.recipe, training = recipe, recipe.training
        self.model = build_model(recipe.model, len(corpus.vocabulary)).train()
        self.windows = TrainingWindows(corpus.split("train").tokens, training.batch_size, training.window.length)
        self.spans = self.windows.spans(0)
        self.parameters = list(self.model.parameters())
        self.optimiser = build_optimiser(training.optimiser, self.parameters, 0.0)
        self.objective = build_objective(training)
        self.state = self.model.begin(training.batch_size)
        self.block = candidate_hidden(self.model.core.layers[0]).detach()
        self.done = 0

    def step(self) -> tuple[float, float]:
        """Seconds of the step, and of clipping, which is done here at a threshold that is never met."""
        batch = self.windows.batch(self.spans[self.done % len(self.spans)])
        self.done += 1
        start = time.process_time()
        self.optimiser.zero_grad()
        before = restart(self.state, batch.fresh, self.model.begin(self.recipe.training.batch_size))
        _, self.state = bptt(self.model, self.objective, batch, before)
        clipping = time.process_time()
        clip_gradients(self.parameters, 1e9)
        clipped = time.process_time()
        self.optimiser.step()
        return time.process_time() - start - (clipped - clipping), clipped - clipping


def at_the_limit(block: torch.Tensor, limit: float, count: int) -> None:
    """W_hh as late in training: `count` values at the limit, the others spread below 0.8 of it."""
    u, values, vh = torch.linalg.svd(torch.randn_like(block))
    values = torch.cat([torch.full((count,), limit), torch.linspace(0.8, 0.05, len(values) - count) * limit])
    block.copy_((u * values) @ vh)


def compare(recipe: config.Recipe, data: str, delta: float, steps: int, others: int, active: int) -> dict[str, object]:
    """Training under the default projection; the others project a copy of the same matrices, in turns."""
    training, made = Training(recipe, data), projectors(delta)
    if active:
        at_the_limit(training.block, 2 - delta, active)
    main = made.pop("subspace")
    copies = {name: training.block.clone() for name in made}
    seconds: dict[str, list[float]] = {name: [] for name in ("step", "clipping", "subspace", *made)}
    computed, worst, deviation = [], 0.0, 0.0
    main.project_(training.block)
    for projector, copy in zip(made.values(), copies.values(), strict=True):
        projector.project_(copy)
    for number in range(steps):
        before = training.block.clone()
        step, clipping = training.step()
        seconds["step"].append(step)
        seconds["clipping"].append(clipping)
        update = training.block - before
        exact = training.block.clone()
        start = time.process_time()
        main.project_(training.block)
        seconds["subspace"].append(time.process_time() - start)
        computed.append(main.computed)
        if number % max(1, steps // others) == 0:
            worst = max(worst, torch.linalg.matrix_norm(training.block.double(), 2).item())
            BySVD(2 - delta).project_(exact)
            deviation = max(deviation, ((training.block - exact).norm() / exact.norm()).item())
            for name, projector in made.items():
                copies[name] += update
                start = time.process_time()
                projector.project_(copies[name])
                seconds[name].append(time.process_time() - start)
    whole = mean(seconds["step"])
    costs = {
        name: {
            "ms": round(1e3 * mean(each), 2),
            "median_ms": round(1e3 * median(each), 2),
            "percent_of_step": round(100 * mean(each) / whole, 2),
        }
        for name, each in seconds.items()
    }
    columns = training.block.shape[1]
    return {
        "delta": delta, "active": active, "steps": steps, "threads": torch.get_num_threads(), "largest_sigma_1": worst,
        "largest_deviation_from_svd": deviation, "skipped": sum(count == 0 for count in computed),
        "all_computed": sum(count == columns for count in computed), "costs": costs,
    }  # fmt: skip


def adversarial(size: int, steps: int, delta: float) -> dict[str, object]:
    """Updates of low rank and noise, and every seventh a spike orthogonal to the tracked vectors."""
    torch.manual_seed(0)
    matrix = torch.nn.init.orthogonal_(torch.empty(size, size))
    made, exact_way = spectral_projector(config.Spectral(delta=delta), 2 - delta), BySVD(2 - delta)
    worst, deviation, ours, theirs = 0.0, 0.0, [], []
    for number in range(steps):
        matrix += torch.randn(size, 4) @ torch.randn(4, size) / size * 0.05 + torch.randn(size, size) / size * 0.02
        if number % 7 == 0:
            v = torch.randn(size)
            basis = getattr(made, "basis", None)
            if basis is not None:
                basis = torch.linalg.qr(basis)[0]
                v = v - basis @ (basis.t() @ v)
            matrix += 1.5 * torch.outer(torch.randn(size) / size**0.5, v / v.norm())
        exact = matrix.clone()
        for projector, target, times in ((made, matrix, ours), (exact_way, exact, theirs)):
            start = time.process_time()
            projector.project_(target)
            times.append(time.process_time() - start)
        worst = max(worst, torch.linalg.svdvals(matrix)[0].item())
        deviation = max(deviation, ((matrix - exact).norm() / exact.norm()).item())
    return {
        "adversarial": size, "steps": steps, "delta": delta, "largest_excess": worst - (2 - delta),
        "largest_deviation_from_svd": deviation,
        "ms": round(1e3 * mean(ours), 2), "svd_ms": round(1e3 * mean(theirs), 2),
        "time_ratio": round(mean(ours) / mean(theirs), 3),
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", default=["deltas", "adversarial"], metavar="PART")
    parser.add_argument("--recipe", type=Path, default=Path("recipes/ptb/gru-constrained.toml"))
    parser.add_argument("--data", default="ptb", help="a text (default: ptb)")
    parser.add_argument("--deltas", type=float, nargs="+", default=DELTAS)
    parser.add_argument("--steps", type=int, default=1327, help="training steps; 1327 is an epoch of PTB")
    parser.add_argument("--others", type=int, default=20, help="steps at which the other methods are timed too")
    parser.add_argument("--active", type=int, default=0, help="begin with so many values at the limit, not orthogonal")
    parser.add_argument("--adversarial-steps", type=int, default=500)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    options = parser.parse_args()
    use_large_pages()
    torch.set_num_threads(options.threads)
    recipe = config.load_recipe(options.recipe)
    if "deltas" in options.parts:
        for delta in options.deltas:
            found = compare(recipe, options.data, delta, options.steps, options.others, options.active)
            print(json.dumps(found), flush=True)
    if "adversarial" in options.parts:
        for delta in (0.2, 0.8):
            print(json.dumps(adversarial(650, options.adversarial_steps, delta)), flush=True)


main()
