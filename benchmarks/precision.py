"""Training steps, evaluation and streaming in each precision, in turns: `python benchmarks/precision.py [RECIPE ...]`.

One JSON line for each recipe, work and precision, with the model FLOPs per second, and first the peaks of the machine.
With `--run RUN` the gradient of a trained run over 8 x 70 tokens of its training text is compared instead with that in
float64: the relative error and the cosine, also with the inputs of the first layer rounded, which elman does not do.
"""

import argparse
import json
import statistics
from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec
import numpy as np
import torch

import timing
import whole
from elman.config.recipe import Recipe
from elman.config.toml import find, load_recipe
from elman.data.batches import Batch
from elman.files import json_text
from elman.learning.bptt import bptt
from elman.network.build import build_model
from elman.network.cores.stack import layers_of
from elman.network.device import use_large_pages
from elman.network.fast import preference
from elman.network.fast.precision import Precision, products_in
from elman.network.model import LanguageModel
from elman.network.state import State
from elman.objective.loss import build_objective
from elman.tasks.open import open_run
from elman.tasks.text.run import TextRun

RECIPES = "ptb/awd-lstm.toml", "ptb/awd-lstm-mos.toml", "ptb/awd-lstm-doc.toml", "shakespeare/demo.toml"
LENGTH, EVALUATED_COLUMNS = 70, 10
TRAINED: tuple[Precision, ...] = ("float32", "bf16")
EVALUATED: tuple[Precision, ...] = (*TRAINED, "int8")


def arguments() -> argparse.Namespace:
    use_large_pages()
    parser = argparse.ArgumentParser(description="Float32 beside bf16 and int8.")
    parser.add_argument("recipes", nargs="*", default=RECIPES, metavar="RECIPE")
    parser.add_argument("--parts", default="train,evaluate,stream", help="of train, evaluate, stream")
    parser.add_argument("--run", type=Path, help="a run on text: compare its gradient with that in float64")
    parser.add_argument("--words", type=int, default=10_000, help="size of the vocabulary (default: 10,000)")
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--cpu-time", action="store_true", help="processor time; with --threads 1, for a busy machine")
    timing.add_device(parser)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    return options


def in_precision(precision: Precision, work: Callable[[], object]) -> Callable[[], object]:
    def run() -> None:
        with products_in(precision):
            work()

    return run


def training(recipe: Recipe, options: argparse.Namespace, precisions: Iterable[Precision]) -> timing.Candidates:
    """A step of each precision on models of their own, with equal weights."""
    words = whole.draw(options, LENGTH, recipe.training.batch_size)
    candidates: timing.Candidates = {}
    for precision in precisions:
        chosen = msgspec.structs.replace(recipe.training, precision=precision)
        torch.manual_seed(0)
        model = build_model(recipe.model, options.words).to(options.device)
        given = msgspec.structs.replace(recipe, training=chosen)
        candidates[precision] = whole.training_step(model, given, Batch(words[:-1], words[1:]))
    return candidates


def evaluation(model: LanguageModel, options: argparse.Namespace, precisions: Iterable[Precision]) -> timing.Candidates:
    """The log-probabilities of one window in each precision, by one model."""
    words = whole.draw(options, LENGTH, EVALUATED_COLUMNS)
    state = model.eval().begin(EVALUATED_COLUMNS)

    @torch.inference_mode()
    def window() -> None:
        model.log_prob(words[:-1], words[1:], state)

    return {precision: in_precision(precision, window) for precision in precisions}


def streaming(model: LanguageModel) -> timing.Candidates:
    """Ten tokens one at a time: the log-probabilities of the next."""
    begun, symbol = model.eval().begin(1), torch.tensor([1], device=model.device)

    @torch.inference_mode()
    def tokens() -> None:
        state: State = begun
        for _ in range(10):
            _, state = model.step(symbol, state)

    other: Precision = "int8" if model.device.type == "cpu" else "bf16"
    return {precision: in_precision(precision, tokens) for precision in ("float32", other)}


def compare_gradients(path: Path) -> None:
    """Print the error of the gradient of one window, without dropout, in each precision."""
    run = open_run(path)
    assert isinstance(run, TextRun), "a run on text"
    model, columns = run.model.requires_grad_(True), EVALUATED_COLUMNS - 2
    tokens = np.asarray(run.corpus().split("train").tokens[: (LENGTH + 1) * columns], dtype=np.int64)
    words = torch.from_numpy(tokens).view(columns, -1).t().contiguous()
    objective, found = build_objective(run.recipe.training), {}
    for name in ("float64", "float32", "bf16", "bf16, first layer too"):
        model.to(torch.float64 if name == "float64" else torch.float32).zero_grad()
        for layer in layers_of(model.core):
            layer.first = layer is model.core.layers[0] and not name.endswith("too")
        with products_in("bf16" if name.startswith("bf16") else "float32"):
            bptt(model, objective, Batch(words[:-1], words[1:]), model.begin(columns))
        found[name] = torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None]).double()
    exact = found.pop("float64")
    for name, gradient in found.items():
        error = ((gradient - exact).norm() / exact.norm()).item()
        cosine = torch.nn.functional.cosine_similarity(gradient, exact, dim=0).item()
        print(json.dumps({"run": str(path), "precision": name, "relative": error, "cosine": cosine}), flush=True)


def main() -> None:
    options = arguments()
    if options.run is not None:
        compare_gradients(options.run)
        return
    measured = preference.measure(options.device)
    facts = {
        "threads": options.threads,
        "peaks": [peak._asdict() for peak in measured],
        "gain": preference.gain(measured),
    }
    print(json.dumps(facts), flush=True)
    parts = options.parts.split(",")
    evaluated = EVALUATED if options.device.type == "cpu" else TRAINED  # int8 is for CPUs.
    for name in options.recipes:
        path = Path(name) if Path(name).exists() else find(name)
        recipe = load_recipe(path)
        torch.manual_seed(0)
        model = build_model(recipe.model, options.words).to(options.device)
        positions = LENGTH * recipe.training.batch_size
        work = {
            "train": (
                lambda recipe=recipe: training(recipe, options, TRAINED),
                3 * whole.forward_gflop(model, options.words, positions),
            ),
            "evaluate": (
                lambda model=model: evaluation(model, options, evaluated),
                whole.forward_gflop(model, options.words, LENGTH * EVALUATED_COLUMNS),
            ),
            "stream": (lambda model=model: streaming(model), whole.forward_gflop(model, options.words, 10)),
        }
        for part, (candidates, gflop) in work.items():
            if part not in parts:
                continue
            seconds = timing.in_turns(candidates(), options)
            for precision, values in seconds.items():
                line = {
                    "recipe": name,
                    "part": part,
                    "precision": precision,
                    **timing.spread([1e3 * s for s in values]),
                }
                gain = statistics.median(seconds["float32"]) / statistics.median(values)
                rate = gflop / statistics.median(values)
                print(json_text(line | {"times_float32": round(gain, 3), "gflops": round(rate, 1)}), flush=True)


if __name__ == "__main__":
    main()
