"""The cost of the spectral constraint per training step: `python benchmarks/constraint.py [deltas] [adversarial]`.

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
from elman.learning.constraint import spectral_projector
from elman.learning.projections.projector import BySVD
from elman.network.device import use_large_pages
from elman.study.claims.projection_cost import TimedProjections, TimedTraining

DELTAS = (0.2, 0.5, 0.8, 1.1, 1.4)


def at_the_limit(block: torch.Tensor, limit: float, count: int) -> None:
    """Make W_hh resemble late training: `count` singular values at the limit, the others spread below 0.8 of it."""
    u, values, vh = torch.linalg.svd(torch.randn_like(block))
    values = torch.cat([torch.full((count,), limit), torch.linspace(0.8, 0.05, len(values) - count) * limit])
    block.copy_((u * values) @ vh)


def compare(recipe: config.Recipe, data: str, delta: float, steps: int, others: int, active: int) -> dict[str, object]:
    """Training under the default projection; the others project a copy of the same matrices, in turns."""
    training = TimedTraining(recipe, data)
    if active:
        at_the_limit(training.block, 2 - delta, active)
    found = TimedProjections(training, delta, others)
    found.run(steps)
    whole = mean(found.seconds["step"])
    costs = {
        name: {
            "ms": round(1e3 * mean(each), 2),
            "median_ms": round(1e3 * median(each), 2),
            "percent_of_step": round(100 * mean(each) / whole, 2),
        }
        for name, each in found.seconds.items()
    }
    columns = training.block.shape[1]
    return {
        "delta": delta, "active": active, "steps": steps, "threads": torch.get_num_threads(),
        "largest_sigma_1": found.largest, "largest_deviation_from_svd": found.deviation,
        "skipped": sum(count == 0 for count in found.default.computed[1:]),
        "all_computed": sum(count == columns for count in found.default.computed[1:]), "costs": costs,
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
