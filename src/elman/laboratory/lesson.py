"""The ladder from Elman's network to the LSTM as a lesson: one gate more at each rung, and what it buys."""

from typing import NamedTuple

from elman.laboratory.conduct import Chain
from elman.laboratory.trial import Trial


class Rung(NamedTuple):
    """A rung: the network's name in the laboratory, its equations, and what is new."""

    cell: str
    equations: str
    lesson: str


LADDER = (
    Rung(
        "elman",
        "h' = tanh(W x + U h + b)",
        "The state is made anew at every step. An error that goes back is multiplied by U' and tanh' each time, so it"
        " fades or grows with distance, and what was heard long ago is not learnt.",
    ),
    Rung(
        "rung-forget",
        "f = sigm(...);  c' = f c + tanh(W x + U y + b);  y' = tanh(c')",
        "The forget gate keeps the state: where f is near 1 the error passes as it is. But every step is added to what"
        " is kept, wanted or not.",
    ),
    Rung(
        "rung-input",
        "i, f = sigm(...);  c' = f c + i tanh(W x + U y + b);  y' = tanh(c')",
        "The input gate says what is worth keeping: distractors stay outside.",
    ),
    Rung(
        "lstm",
        "i, f, o = sigm(...);  c' = f c + i tanh(W x + U y + b);  y' = o tanh(c')",
        "The output gate hides what is kept until it is of use, so that it disturbs neither answer nor gates. This is"
        " the LSTM.",
    ),
)

TASKS = (("recall", 32), ("adding", 32))
"""One symbol among distractors, and two values among others; and the first span."""


def chains(seeds: int, budget: float, longest: int) -> list[Chain]:
    """Every rung on both tasks."""
    return [
        Chain(Trial(task=task, cell=rung.cell, span=span, seed=seed, budget=budget), longest)
        for task, span in TASKS
        for rung in LADDER
        for seed in range(seeds)
    ]
