"""Many trials: chains of growing spans, several at once, each outcome kept as JSON so that nothing is done twice."""

import multiprocessing
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from pathlib import Path
from typing import NamedTuple

import msgspec

from elman.files import write_atomic
from elman.laboratory.trial import Outcome, Trial, run_trial


class Chain(msgspec.Struct, frozen=True):
    """A network, a rule and a task at spans that double as long as it learns.

    Attributes:
        first: the trial at the shortest span.
        longest: spans end here.

    """

    first: Trial
    longest: int

    def after(self, outcomes: Sequence[Outcome]) -> Trial | None:
        """The next trial, given those so far."""
        if not outcomes:
            return self.first
        last = outcomes[-1]
        span = 2 * last.trial.span
        if not last.solved or span > self.longest:
            return None
        return msgspec.structs.replace(last.trial, span=span)


def reach(outcomes: Sequence[Outcome]) -> int:
    """The longest span that was learnt, 0 for none."""
    return max((outcome.trial.span for outcome in outcomes if outcome.solved), default=0)


def conduct(
    chains: Sequence[Chain], folder: Path, jobs: int, tell: Callable[[str], None]
) -> dict[Chain, list[Outcome]]:
    """Run what is not there yet, `jobs` trials at a time, each in a process with one thread.

    Args:
        chains: what to try.
        folder: outcomes lie under `trials/`, one file each; those of the same trial are taken from there.
        jobs: processes.
        tell: told a line for each outcome.

    Raises:
        UserError: names that do not exist, parts that do not fit together, or a folder that cannot be written.

    """
    found: dict[Chain, list[Outcome]] = {chain: [] for chain in chains}
    # A process that is spawned has no locks or threads of its parent's torch.
    executor = ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn"))
    running: dict[Future[Outcome], Chain] = {}

    def go_on(chain: Chain) -> None:
        while (trial := chain.after(found[chain])) is not None:
            kept = _kept(folder, trial)
            if kept is None:
                running[executor.submit(run_trial, trial)] = chain
                return
            found[chain].append(kept)

    try:
        for chain in chains:
            go_on(chain)
        while running:
            done, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                chain, outcome = running.pop(future), future.result()
                write_atomic(_place(folder, outcome.trial), msgspec.json.encode(outcome))
                found[chain].append(outcome)
                word = "learnt" if outcome.solved else "not learnt"
                tell(f"{outcome.trial.name}: {word}, error {outcome.error:.3g}, {outcome.seconds:.0f} s")
                go_on(chain)
    finally:
        executor.shutdown(cancel_futures=True)
    return found


def _place(folder: Path, trial: Trial) -> Path:
    return folder / "trials" / f"{trial.name}.json"


def _kept(folder: Path, trial: Trial) -> Outcome | None:
    try:
        outcome = msgspec.json.decode(_place(folder, trial).read_bytes(), type=Outcome)
    except (OSError, msgspec.DecodeError):
        return None
    return outcome if outcome.trial == trial else None


# FOLDED laboratory/lesson.py: The ladder from Elman's network to the LSTM as a lesson: one gate more at each rung, and what it buys.
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
