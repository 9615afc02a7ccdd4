"""Languages of automata and counters: Reber's grammar, embedded, a^n b^n and a^n b^n c^n."""

from collections.abc import Sequence
from functools import partial

import numpy as np
import torch

from elman.data.batches import Batch
from elman.data.classic.task import Sample, task

LETTERS = "BTPSXVE"
GRAMMAR: tuple[tuple[tuple[str, int], ...], ...] = (
    (("B", 1),),
    (("T", 2), ("P", 3)),
    (("S", 2), ("X", 4)),
    (("T", 3), ("V", 5)),
    (("X", 3), ("S", 6)),
    (("P", 4), ("V", 6)),
    (("E", 7),),
)
"""Reber's automaton (Reber 1967; Cleeremans et al. 1989): for each state its letters and the states they lead to."""

Step = tuple[str, str]  # a letter, and those that were possible in its place


def reber_strings(rng: np.random.Generator, span: int) -> list[Step]:
    """Whole strings one after another, of `span` letters or more; each way out of a state has equal chance."""
    state, steps = 0, list[Step]()
    while len(steps) < span or state:
        ways = GRAMMAR[state]
        letter, state = ways[int(rng.integers(len(ways)))]
        steps.append((letter, "".join(way for way, _ in ways)))
        state %= len(GRAMMAR)  # behind the last state a string has ended
    return steps


@task(
    "reber",
    "what may follow in strings of Reber's grammar; the span is their length together",
    "Reber 1967; Cleeremans et al. 1989",
    inputs=len(LETTERS),
    chance="about 0.3, knowing the last letter alone",
    solved=0.001,
    span=16,
)
def reber(rng: np.random.Generator, columns: int, span: int) -> Sample:
    """Wrong is a letter that the grammar does not allow."""
    strings = [reber_strings(rng, span) for _ in range(columns)]
    return predict(strings, LETTERS, [range(1, len(steps)) for steps in strings])


@task(
    "embedded-reber",
    "the letter that returns after a string of Reber's grammar, or several, of at least the span",
    "Hochreiter & Schmidhuber 1997, experiment 1",
    inputs=len(LETTERS),
    chance="0.5",
)
def embedded_reber(rng: np.random.Generator, columns: int, span: int) -> Sample:
    """B T (strings) T E or B P (strings) P E, judged where the second letter returns as the last but one.

    Inside are as many whole strings as give `span` letters or more; the classic form has one.
    """
    strings = []
    for _ in range(columns):
        key = "TP"[int(rng.integers(2))]
        strings.append([("B", "B"), (key, "TP"), *reber_strings(rng, max(1, span)), (key, key), ("E", "E")])
    return predict(strings, LETTERS, [[len(steps) - 2] for steps in strings])


@task(
    "anbn",
    "a^n b^n with n up to the span: how many b are due, and then the end",
    "Gers & Schmidhuber 2001",
    inputs=4,
    chance="1 / n at best",
    span=4,
)
def counting(rng: np.random.Generator, columns: int, span: int, *, letters: str = "ab") -> Sample:
    """`[a^n b^n]`, n from 1 to `span`; judged from the second letter's first place on, where all is determined.

    That place itself cannot be predicted (Gers & Schmidhuber 2001).
    """
    first = letters[0]
    strings, judged = [], []
    for n in rng.integers(1, span + 1, columns):
        body = [(letter, letter) for letter in letters[1:] for _ in range(n)]
        heads = [("[", "["), (first, first), *[(first, letters[:2])] * (n - 1)]
        strings.append([*heads, (letters[1], letters[:2]), *body[1:], ("]", "]")])
        judged.append(range(n + 2, len(letters) * n + 2))
    return predict(strings, letters + "[]", judged)


task(
    "anbncn",
    "a^n b^n c^n with n up to the span: how many b and c are due, and then the end",
    "Gers & Schmidhuber 2001",
    inputs=5,
    chance="1 / n at best",
    span=4,
)(partial(counting, letters="abc"))


def predict(strings: Sequence[Sequence[Step]], alphabet: str, judged: Sequence[Sequence[int]]) -> Sample:
    """The next letter of each string, padded to one length; `judged` are places in the strings, from 1 on."""
    steps, columns = max(map(len, strings)) - 1, len(strings)
    inputs = np.zeros((steps, columns), dtype=np.int64)
    targets, mask = inputs.copy(), np.zeros((steps, columns), dtype=bool)
    allowed = np.zeros((steps, columns, len(alphabet)), dtype=bool)
    for column, (string, places) in enumerate(zip(strings, judged, strict=True)):
        ids = [alphabet.index(letter) for letter, _ in string]
        inputs[: len(ids) - 1, column], targets[: len(ids) - 1, column] = ids[:-1], ids[1:]
        mask[: len(ids) - 1, column] = True
        for place in places:
            allowed[place - 1, column, [alphabet.index(letter) for letter in string[place][1]]] = True
    batch = Batch(torch.from_numpy(inputs), torch.from_numpy(targets), torch.from_numpy(mask))
    return Sample(batch, torch.from_numpy(allowed))
