"""How finished runs are measured: each function takes a run folder."""

import dataclasses
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import torch

from elman.analysis.dynamics import examine
from elman.analysis.rank import find_rank
from elman.config.inference import RULES, CacheRule
from elman.data.windows import Span, TrainingWindows
from elman.learning.bptt import bptt
from elman.network.cores.stack import Stack
from elman.objective.build import build_objective
from elman.report.folder import read_folder
from elman.reproduce.claim import Axes, Measure, Measurement
from elman.tasks.adaptation import Method, method_figures, statistics
from elman.tasks.text.run import load
from elman.tasks.tuning import Tuning


# FOLDED reproduce/output.py: What the output of a finished run on pairs is worth, as its results.json says.
def worth(folder: Path) -> Measurement:
    """Perplexity, every measure of the test output, and the same of the baseline as `MEASURE, baseline`."""
    rows = {row["split"]: row for row in json.loads((folder / "results.json").read_text(encoding="utf-8"))}
    output = rows["test"]["output"]
    figures = {f"{split} perplexity": float(row["perplexity"]) for split, row in rows.items()}
    figures |= {one["name"]: float(one["value"]) for one in output["measures"]}
    figures |= {f"{one['name']}, baseline": float(one["value"]) for one in output["baseline"]}
    return Measurement(figures, {})


def of_output(name: str, baseline: str, *measures: str) -> Measure:
    """The measure of some of the measures; the first one's baseline, called `baseline`, stands beside them."""
    shown = {measure: measure for measure in measures}
    return Measure(
        name,
        {**shown, f"{measures[0]}, baseline": f"{measures[0]} of {baseline}", "test perplexity": "perplexity, test"},
        worth,
    )


# FOLDED reproduce/adapting.py: How much a run gains by adapting to the test text, with settings tuned on the validation text.
WANTED = {
    "dynamic": Method(rule=RULES["rms"]),
    "cache": Method(cache=CacheRule()),
    "dynamic+cache": Method(rule=RULES["rms"], cache=CacheRule()),
}


def adapted(
    folder: Path, methods: Sequence[str], tuning_tokens: int, tokens: int, statistics_tokens: int
) -> Measurement:
    """Perplexity of the first test tokens, static and by some methods, each with its settings tuned.

    Args:
        folder: of the run.
        methods: names in `WANTED`.
        tuning_tokens: of the validation text, which settings are tuned on.
        tokens: of the test text, which are read once for each method.
        statistics_tokens: of the training text, for the mean squared gradients.

    """
    run = load(folder)
    test = run.corpus().split("test")
    test = dataclasses.replace(test, tokens=test.tokens[:tokens])
    found = {"static": method_figures(run, test, Method())}
    for name in methods:
        tuned = Tuning(run, tokens=tuning_tokens, statistics_tokens=statistics_tokens).best(WANTED[name])
        gradients = statistics(run, statistics_tokens) if tuned.rule is not None else None
        found[name] = method_figures(run, test, tuned, gradients)
    return Measurement({name: float(row["perplexity"]) for name, row in found.items()} | _settings(found), {})


def _settings(found: Mapping[str, Mapping[str, Any]]) -> dict[str, float]:
    """The tuned numbers, beside the figures that they gave."""
    return {
        f"{method}, {key}": float(value)
        for method, row in found.items()
        for part in row["settings"].values()
        if part is not None
        for key, value in part.items()
        if isinstance(value, int | float)
    }


def adaptation(name: str, *methods: str, tuning: int = 2_000, tokens: int = 10_000, minutes: float = 3.0) -> Measure:
    """The measure by some methods."""
    words = {"static": "static perplexity"} | {method: f"perplexity, {method}" for method in methods}
    constants = {"methods": methods, "tuning_tokens": tuning, "tokens": tokens, "statistics_tokens": 200_000}
    return Measure(name, words, adapted, constants, minutes=minutes)


# TARGET
def perplexities(folder: Path) -> Measurement:
    """The figures of results.json: perplexity, and bits a character."""
    rows = {row["split"]: row for row in json.loads((folder / "results.json").read_text(encoding="utf-8"))}
    figures = {f"{split} perplexity": float(row["perplexity"]) for split, row in rows.items()}
    bits = {f"{split} bits a character": float(row["bits_per_character"]) for split, row in rows.items()}
    return Measurement(figures | bits, {})


def rank(folder: Path, tokens: int) -> Measurement:
    """Numerical rank of the log-output matrix of the first test tokens, its singular values, and d + 2.

    d + 2 bounds log-softmax: d from the contexts, one from the bias, one from the normaliser (thesis, section 4.1).
    In float64: by the threshold of float32 the outputs of a model that has not converged lose nearly all their rank.
    """
    run = load(folder)
    found = find_rank(run.model.double(), run.corpus().split("test").tokens, run.first, max_tokens=tokens)
    figures = {"rank": float(found.rank), "d + 2": float(found.size + 2), "words": float(found.spectrum.num_words)}
    return Measurement(figures, {"singular values": found.spectrum.singular_values.tolist()})


def gradients(folder: Path, num_windows: int) -> Measurement:
    """Norm of the loss's gradient by layer, on validation text without dropout, in the mean over the first windows.

    The lowest layer's norm divided by the top's says how much of the signal arrives below.
    """
    run = load(folder)
    training, core = run.recipe.training, run.model.core
    assert isinstance(core, Stack), "the recipes of this measure have recurrent layers"
    windows = TrainingWindows(run.corpus().split("valid").tokens, training.batch_size, training.window.length)
    starts = range(0, windows.steps - training.window.length, training.window.length)
    layers = [list(layer.parameters()) for layer in core.layers]
    sums, state = [0.0] * len(layers), run.model.begin(training.batch_size)
    objective = build_objective(training)
    for start in list(starts)[:num_windows]:
        run.model.zero_grad()
        _, state = bptt(run.model, objective, windows.batch(Span(start, training.window.length)), state)
        for index, parameters in enumerate(layers):
            parts = [parameter.grad.norm() for parameter in parameters if parameter.grad is not None]
            sums[index] += torch.stack(parts).norm().item()
    count = len(list(starts)[:num_windows])
    norms = [total / count for total in sums]
    by_layer = {f"layer {index}": norm for index, norm in enumerate(norms, start=1)}
    return Measurement({"lowest / top": norms[0] / norms[-1], **by_layer}, {"gradient norm": norms})


def training_dynamics(folder: Path, trials: int, steps: int, kick: float) -> Measurement:
    """What training did: whether it succeeded, the largest norm and radius, and how the state decays afterwards."""
    found = examine(folder, torch.device("cpu"), trials=trials, steps=steps, kick=kick)
    figures = {
        "success": float(bool(found.success)),
        "largest gradient norm": found.largest_norm,
        "largest radius": found.largest_radius,
        "decay": found.decay_rate,
    }
    curves = {"state norm": found.norms, "spectral radius": [line.spectral_radius for line in found.lines]}
    return Measurement(figures, curves)


def counts(folder: Path) -> Measurement:
    """s, how many singular values the truncated projection computes: in the first fifth of training and in the last."""
    lines = [line for line in read_folder(folder).metrics.train if line.s]
    by_line = [(sum(line.s), sum(line.s_other)) for line in lines]
    part = max(1, len(by_line) // 5)
    early, late = (fmean(s for s, _ in some) for some in (by_line[:part], by_line[-part:]))
    frobenius, spectral = (fmean(values) for values in zip(*by_line, strict=True))
    figures = {"first": early, "last": late, "frobenius": frobenius, "spectral": spectral}
    return Measurement(figures, {"s": [float(s) for s, _ in by_line]})


def nats(folder: Path) -> Measurement:
    """The figures of results.json for music: nats a step."""
    rows = {row["split"]: row for row in json.loads((folder / "results.json").read_text(encoding="utf-8"))}
    return Measurement({f"{split} nll": float(row["nll"]) for split, row in rows.items()}, {})


PERPLEXITY = Measure(
    "perplexity",
    {"valid perplexity": "perplexity, valid", "test perplexity": "perplexity, test"},
    perplexities,
    diverged={"valid perplexity": math.inf, "test perplexity": math.inf},
)

BITS = Measure(
    "bits",
    {"valid bits a character": "bits a character, valid", "test bits a character": "bits a character, test"},
    perplexities,
    diverged={"valid bits a character": math.inf, "test bits a character": math.inf},
)

RANK = Measure(
    "rank",
    {"rank": "numerical rank", "d + 2": "bound of log-softmax, d + 2", "words": "words"},
    rank,
    {"tokens": 6_000},  # twice the lab scale's vocabulary
    minutes=0.5,
    curve=Axes("singular values", "index"),
)

GRADIENTS = Measure(
    "gradients",
    {"lowest / top": "gradient norm, lowest layer / top", "layer 1": "layer 1", "layer 2": "layer 2"},
    gradients,
    {"num_windows": 20},
    minutes=0.2,
    curve=Axes("gradient norm", "layer"),
)

NATS = Measure(
    "nats",
    {"valid nll": "nats a step, valid", "test nll": "nats a step, test"},
    nats,
    diverged={"valid nll": math.inf, "test nll": math.inf},
)

DYNAMICS = Measure(
    "dynamics",
    {
        "success": "success (1) or failure (0)",
        "largest gradient norm": "largest gradient norm",
        "largest radius": "largest spectral radius of J",
        "decay": "decay of the state a step",
    },
    training_dynamics,
    {"trials": 50, "steps": 200, "kick": 0.1},
    minutes=0.1,
    diverged={"success": 0.0, "largest gradient norm": math.inf, "largest radius": math.inf, "decay": math.nan},
)

COUNTS = Measure(
    "counts",
    {
        "first": "s, first fifth of training",
        "last": "s, last fifth",
        "frobenius": "s by the Frobenius norm",
        "spectral": "s by the spectral norm",
    },
    counts,
    curve=Axes("s", "journal lines", relative=False, logarithmic=False),
)
