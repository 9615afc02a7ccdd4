"""Many trials, several at once: chains of growing spans, whose results are kept so that none is run twice."""

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from elman.errors import UserError
from elman.files import write_atomic
from elman.formats import parse_json
from elman.jobs import Kept
from elman.jobs.launching import Crew, Launch
from elman.laboratory.trial import Trial, TrialResult, run_trial


class Chain(msgspec.Struct, frozen=True):
    """A network, a rule and a task, from the `first` trial at spans that double up to `longest` while it learns."""

    first: Trial
    longest: int

    def after(self, results: Sequence[TrialResult]) -> Trial | None:
        """The next trial after those so far."""
        if not results:
            return self.first
        last, span = results[-1], 2 * results[-1].trial.span
        return msgspec.structs.replace(last.trial, span=span) if last.solved and span <= self.longest else None


def reach(results: Sequence[TrialResult]) -> int:
    """The longest span that was learnt, 0 for none."""
    return max((result.trial.span for result in results if result.solved), default=0)


def conduct(
    chains: Sequence[Chain], folder: Path, launch: Launch, tell: Callable[[str], None]
) -> dict[Chain, list[TrialResult]]:
    """Run the trials that are not kept yet, as many at a time as the launch permits, each with one thread.

    Results are kept in one file per trial under `trials/` of the folder; `tell` is called with a line for each. Raises
    UserError for a name that does not exist, parts that do not fit together, a folder that cannot be written, or a
    trial that failed.
    """
    found: dict[Chain, list[TrialResult]] = {chain: [] for chain in chains}
    folder = folder.absolute()
    with Crew[Trial](launch, tell, lambda trial: trial.name) as crew:
        chains_of, ready = dict[Trial, list[Chain]](), list[Trial]()

        def advance(chain: Chain) -> None:
            while (trial := chain.after(found[chain])) is not None:
                result = kept_result(folder, trial).find()
                if result is None:
                    if trial not in chains_of:
                        ready.append(trial)
                    chains_of.setdefault(trial, []).append(chain)
                    return
                found[chain].append(result)

        for chain in chains:
            advance(chain)
        while ready or crew.running:
            while ready and crew.room:
                trial = ready.pop(0)
                crew.start(trial, trial.name, run_and_keep, trial, folder)
            time.sleep(0.02)
            for trial, outcome in crew.ended():
                result = kept_result(folder, trial).find()
                if result is None:
                    raise UserError(f"{trial.name}: {outcome.failure or 'its result is missing'}")
                word = "learnt" if result.solved else "not learnt"
                tell(f"{trial.name}: {word}, error {result.error:.3g}, {result.seconds:.0f} s")
                for chain in chains_of.pop(trial):
                    found[chain].append(result)
                    advance(chain)
    return found


def run_and_keep(trial: Trial, folder: Path) -> None:
    """Run a trial, unless its result is kept, and keep the result; raises UserError as `run_trial`."""
    kept_result(folder, trial).made(lambda: run_trial(trial))


def kept_result(folder: Path, trial: Trial) -> Kept[TrialResult, Trial]:
    """Where the result of a trial is kept."""
    path = folder / "trials" / f"{trial.name}.json"
    return Kept(path, trial, _load, lambda path, result, _: write_atomic(path, msgspec.json.encode(result)))


def _load(path: Path) -> tuple[TrialResult, Trial]:
    result = msgspec.convert(parse_json(path.read_bytes()), TrialResult)
    return result, result.trial


class Rung(NamedTuple):
    """A rung of the ladder from Elman's network to the LSTM: its name in the laboratory, equations, and what is new."""

    cell: str
    equations: str
    lesson: str


LADDER = (
    Rung(
        "elman",
        "h' = tanh(W x + U h + b)",
        "The state is computed afresh at every step. An error propagated back is multiplied by U' and tanh' each time,"
        " so it fades or grows with distance, and the network does not learn what it read long ago.",
    ),
    Rung(
        "rung-forget",
        "f = sigm(...);  c' = f c + tanh(W x + U y + b);  y' = tanh(c')",
        "The forget gate preserves the state: where f is near 1 the error passes unchanged. But every step is added to"
        " the state, relevant or not.",
    ),
    Rung(
        "rung-input",
        "i, f = sigm(...);  c' = f c + i tanh(W x + U y + b);  y' = tanh(c')",
        "The input gate selects what is stored: distractors stay outside.",
    ),
    Rung(
        "lstm",
        "i, f, o = sigm(...);  c' = f c + i tanh(W x + U y + b);  y' = o tanh(c')",
        "The output gate hides the state until it is needed, so that it disturbs neither the output nor the gates."
        " This is the LSTM.",
    ),
)

TASKS = (("recall", 32), ("adding", 32))
"""The tasks of the lesson, one symbol among distractors and two values among others, with their first spans."""


def chains(seeds: int, budget: float, longest: int) -> list[Chain]:
    """The lesson: every rung of the ladder on both tasks."""
    return [
        Chain(Trial(task=task, cell=rung.cell, span=span, seed=seed, budget=budget), longest)
        for task, span in TASKS
        for rung in LADDER
        for seed in range(seeds)
    ]
