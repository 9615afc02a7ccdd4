"""How much a run gains by adapting to the test text, with settings tuned on the validation text."""

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from elman.adaptation import Method, method_figures, statistics
from elman.evaluation.cache import CacheRule
from elman.evaluation.dynamic import DEFAULTS
from elman.reproduce.claim import Measure, Measurement
from elman.run import load
from elman.tuning import Tuning

STATISTICS_TOKENS = 200_000
"""Of the training text, for the mean squared gradients."""

WANTED = {
    "dynamic": Method(rule=DEFAULTS["rms"]),
    "cache": Method(cache=CacheRule()),
    "dynamic+cache": Method(rule=DEFAULTS["rms"], cache=CacheRule()),
}


@dataclasses.dataclass(frozen=True)
class Adaptation:
    """Perplexity of the first test tokens, static and by some methods.

    Attributes:
        methods: names in `WANTED`.
        tuning: validation tokens that settings are tuned on.
        tokens: test tokens that are read.

    """

    methods: tuple[str, ...]
    tuning: int
    tokens: int

    def __call__(self, folder: Path) -> Measurement:
        """Tune, then read the test text once for each method."""
        run = load(folder)
        test = run.corpus().split("test")
        test = dataclasses.replace(test, tokens=test.tokens[: self.tokens])
        found = {"static": method_figures(run, test, Method())}
        for name in self.methods:
            tuned = Tuning(run, tokens=self.tuning, statistics_tokens=STATISTICS_TOKENS).best(WANTED[name])
            gradients = statistics(run, STATISTICS_TOKENS) if tuned.rule is not None else None
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
    return Measure(name, words, Adaptation(methods, tuning, tokens), minutes=minutes)
