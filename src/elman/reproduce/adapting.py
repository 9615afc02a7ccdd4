"""How much a run gains by adapting to the test text, with settings tuned on the validation text."""

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from elman.adaptation import Method, method_figures, statistics
from elman.evaluation.cache import CacheRule
from elman.evaluation.dynamic import DEFAULTS
from elman.reproduce.claim import Measure, Measurement
from elman.run import load
from elman.tuning import Tuning

WANTED = {
    "dynamic": Method(rule=DEFAULTS["rms"]),
    "cache": Method(cache=CacheRule()),
    "dynamic+cache": Method(rule=DEFAULTS["rms"], cache=CacheRule()),
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
