"""What benchmarks of whole steps share: a network on words drawn by Zipf's law, its FLOPs, one JSON object out."""

import argparse
import resource
import statistics
import sys
from collections.abc import Callable
from pathlib import Path

import torch

import timing
from elman.config.recipe import Recipe
from elman.config.toml import load_recipe
from elman.data.batches import Batch
from elman.files import json_text
from elman.learning.update import build_update
from elman.network.build import build_model
from elman.network.cores.stack import StackCore
from elman.network.device import use_large_pages
from elman.network.model import LanguageModel
from elman.network.output.choice import zipf
from elman.network.output.contexts import MixtureContexts


def arguments(description: str) -> argparse.Namespace:
    """RECIPE and the options of both benchmarks."""
    use_large_pages()
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("recipe", type=Path)
    parser.add_argument("--words", type=int, default=10_000, help="size of the vocabulary (default: 10,000)")
    parser.add_argument("--length", type=int, default=70, help="steps per window (default: 70)")
    parser.add_argument("--batch-size", type=int, help="columns (default: the recipe's; 10 for evaluation)")
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--json", action="store_true", help="one JSON object (the default form)")
    parser.add_argument("--profile", action="store_true", help="print what the time goes to on stderr")
    parser.add_argument("--cpu-time", action="store_true", help="processor time; with --threads 1, for a busy machine")
    timing.add_device(parser)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    return options


def model_of(options: argparse.Namespace) -> tuple[Recipe, LanguageModel]:
    """The recipe and its network for random words, on the device."""
    recipe = load_recipe(options.recipe)
    return recipe, build_model(recipe.model, options.words).to(options.device)


def forward_gflop(model: LanguageModel, words: int, positions: int) -> float:
    """The matrix products of a forward pass, 2 FLOP a multiply-add; a training step has three times as many.

    The words are those of `draw`, on which the products of an adaptive or hierarchical choice depend.
    """
    core, contexts, choice = model.core, model.output.contexts, model.output.choice
    assert isinstance(core, StackCore)
    weights = sum(layer.weight_ih.numel() + layer.weight_hh.numel() for layer in core.layers)
    components = 1
    if isinstance(contexts, MixtureContexts):
        weights += sum(linear.weight.numel() for linear in (*contexts.projections.values(), contexts.prior))
        components = sum(contexts.heads.values())
    scored = choice.multiply_adds(zipf(words))
    return 2 * positions * (weights + components * scored) / 1e9


def draw(options: argparse.Namespace, length: int, batch_size: int) -> torch.Tensor:
    """Words [length + 1, batch_size] on the device, drawn independently by Zipf's law, which networks assume here."""
    drawn = zipf(options.words).multinomial((length + 1) * batch_size, replacement=True)
    return drawn.view(length + 1, batch_size).to(options.device)


def training_step(model: LanguageModel, recipe: Recipe, batch: Batch) -> Callable[[], None]:
    """The step of a recipe on one batch, always from the same state: forward, backward, clipping, update."""
    update, batch = build_update(recipe, model), batch.to(model.device)

    def step() -> None:
        update.state = None
        update(batch, recipe.training.optimiser.lr)

    return step


def peak_mb(device: torch.device) -> int:
    """The greatest memory of this process so far, MB: that of the GPU for a GPU."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated() // 1_000_000
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1000


def measure(step: Callable[[], None], positions: int, gflop: float, options: argparse.Namespace) -> None:
    """Time a step after a warm-up, the machine's peak in the same run, and print the result."""
    step()
    seconds = []
    for _ in range(options.repetitions):
        start = timing.waited(options)
        step()
        seconds.append(timing.waited(options) - start)
    used = peak_mb(options.device)
    if options.profile:
        profile(step, on_gpu=options.device.type == "cuda")
    gemm = timing.peak(options, quiet=True)
    step_s = statistics.median(seconds)
    result = {
        "recipe": str(options.recipe),
        "threads": options.threads,
        "device": str(options.device),
        "tokens_per_s": round(positions / step_s, 1),
        "step_s": round(step_s, 4),
        "step_s_min": round(min(seconds), 4),
        "step_s_max": round(max(seconds), 4),
        "peak_mb": used,
        "model_gflop": round(gflop, 1),
        "gemm_gflops": round(gemm, 1),
        "fraction_of_peak": round(gflop / step_s / gemm, 3),
    }
    print(json_text(result))


def profile(step: Callable[[], None], times: int = 3, *, on_gpu: bool = False) -> None:
    """Milliseconds per step by torch operation, of the GPU where there is one, and their share, the largest first."""
    kinds = torch.profiler.ProfilerActivity
    with torch.profiler.profile(activities=[kinds.CPU, kinds.CUDA] if on_gpu else [kinds.CPU]) as profiler:
        for _ in range(times):
            step()
        if on_gpu:
            torch.cuda.synchronize()

    def microseconds(event: torch.autograd.profiler_util.FunctionEventAvg) -> float:
        return event.self_device_time_total if on_gpu else event.self_cpu_time_total

    events = sorted(profiler.key_averages(), key=microseconds, reverse=True)
    total = sum(map(microseconds, events))
    for event in events[:12]:
        share = microseconds(event) / total
        print(f"{microseconds(event) / times / 1e3:9.1f} ms {share:6.1%}  {event.key}", file=sys.stderr)
