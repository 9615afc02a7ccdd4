"""Outputs that avoid the cost of a large vocabulary: hierarchical softmax, adaptive softmax, adaptive sigsoftmax."""

import statistics
import time
from pathlib import Path

import numpy as np
import torch

from elman.network.output.choice import Choice
from elman.study.claim import Arm, Claim, ClaimMeasure, Measurement, Source, rates
from elman.study.comparison import lower, no_higher, times
from elman.study.measures import BLOCKS, PERPLEXITY, with_test_text
from elman.tasks.text.run import TextRun

RECIPE = "reproduce/small-vocabulary.toml"

CHOICES: dict[str, tuple[str, ...]] = {
    "flat softmax": ('model.output.choice={kind = "flat", tied = false}',),
    "tree": ('model.output.choice={kind = "tree", tied = false}',),
    "adaptive softmax": ('model.output.choice={kind = "adaptive", cutoffs = [1000, 4000]}',),
}
CHOICES["adaptive sigsoftmax"] = (*CHOICES["adaptive softmax"], "model.output.activation=sigsoftmax")

RATES = rates(10, 20, 40, shortened=("training.epochs=2", "training.schedule.after=1"))
"""The same three learning rates for every arm, tried for 2 of 4 epochs."""

QUICK = ("data.train_tokens=70000", "training.epochs=3")


def _arm(label: str, paper: str | None = None) -> Arm:
    return Arm(label, Source(RECIPE, CHOICES[label], QUICK, RATES), None if paper is None else Source(paper))


def perplexity_and_cost(folder: Path, positions: int, repetitions: int, block: int, streams: int) -> Measurement:
    """Perplexities, and the cost of the output layer for one context: multiply-adds, counted, and time, measured.

    Both are for targets as frequent as the words of the training text. The time is the median of `repetitions` forward
    and backward passes over `positions` random contexts, in microseconds for one of them; it decides nothing.
    """
    run = TextRun(folder)
    tokens, choice = torch.from_numpy(np.array(run.corpus().split("train").tokens)).long(), run.model.output.choice
    assert isinstance(choice, Choice), "a recipe of words chooses among words"
    counts = torch.bincount(tokens, minlength=len(run.vocabulary)).double()
    found = with_test_text(folder, block, streams)
    cost = {
        "multiply-adds per token": choice.multiply_adds(counts / counts.sum()),
        "microseconds per token": 1e6 * _seconds(choice, tokens[:positions], repetitions) / min(positions, len(tokens)),
    }
    return Measurement(found.figures | cost, found.curves)


def _seconds(choice: Choice, targets: torch.Tensor, repetitions: int) -> float:
    size = next(parameter.shape[1] for parameter in choice.parameters() if parameter.ndim > 1)
    contexts = torch.randn(len(targets), 1, size, requires_grad=True)
    seconds = []
    for _ in range(repetitions):
        begun = time.perf_counter()
        choice.log_prob(contexts, targets).sum().backward()
        seconds.append(time.perf_counter() - begun)
    return statistics.median(seconds)


HIERARCHICAL_SOFTMAX = Claim(
    name="hierarchical-softmax",
    sentence="hierarchical and adaptive softmax keep the quality of a flat softmax at less than a fifth of its cost",
    source="Mikolov et al. 2011, Table 3; Grave et al. 2017, Table 1",
    arms=tuple(map(_arm, ("flat softmax", "tree", "adaptive softmax"))),
    measure=ClaimMeasure(
        "perplexity-and-cost",
        {
            **PERPLEXITY.metrics, "multiply-adds per token": "multiply-adds of the output layer per token, forward",
            "microseconds per token": "time of the output layer per token, forward and backward, in microseconds",
        },
        perplexity_and_cost, {"positions": 700, "repetitions": 7, **BLOCKS}, minutes=0.1, timed=True,
    ),
    comparisons=(
        no_higher("test perplexity", "tree", "flat softmax", 0.11),
        no_higher("test perplexity", "adaptive softmax", "flat softmax", 0.03),
        *(times("multiply-adds per token", "flat softmax", label, 5) for label in ("tree", "adaptive softmax")),
    ),
    published={
        "flat softmax": "123 (Mikolov), 144 (Grave)", "tree": "136 (Mikolov), 166 (Grave)",
        "adaptive softmax": "147 (Grave)",
    },
    notes="The margins are the losses that the papers report, rounded up: 136 against 123 (classes by frequency; Grave"
    " et al. found 166 against 144) and 147 against 144. The cost is that of the output layer, counted for words as"
    " frequent as in the training text; its time is shown and decides nothing. Small scale: 7,038 words over contexts"
    " of 64, and for each arm the best of three rates by validation text.",
)  # fmt: skip

ADAPTIVE_SIGSOFTMAX = Claim(
    name="adaptive-sigsoftmax", sentence="adaptive sigsoftmax has a lower perplexity than adaptive softmax",
    source="Kanai's thesis, Table 4.5",
    arms=(
        _arm("adaptive softmax", "one-billion-word/adaptive-softmax.toml"),
        _arm("adaptive sigsoftmax", "one-billion-word/adaptive-sigsoftmax.toml"),
    ),
    measure=PERPLEXITY, comparisons=(lower("test perplexity", "adaptive sigsoftmax", "adaptive softmax"),),
    published={"adaptive softmax": "33.80 ± 0.04", "adaptive sigsoftmax": "33.62 ± 0.05"},
    notes="Small scale: 7,038 words cut at 1,000 and 4,000, SGD halved as in the thesis, and for each arm the best of"
    " three rates by validation text. The published difference is .5 % after five epochs of 800 million words.",
)  # fmt: skip
