"""Chains of trials at growing spans, whose results are kept so that none is run twice; their summary and the lesson."""

import math
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import msgspec

from elman.files import write_atomic
from elman.formats import parse_json, with_nan
from elman.jobs import Kept
from elman.jobs.launching import Launch, Tell
from elman.study.lab.trial import Trial, TrialResult, train_trial
from elman.study.runner import Programme, Work, carry_out


class Chain(msgspec.Struct, frozen=True):
    """A network, a rule and a task, from the `first` trial at spans that double up to `longest` while it learns."""

    first: Trial
    longest: int

    def after(self, results: Sequence[TrialResult]) -> Trial | None:
        if not results:
            return self.first
        last, span = results[-1], 2 * results[-1].trial.span
        return msgspec.structs.replace(last.trial, span=span) if last.solved and span <= self.longest else None


Results = Mapping[Chain, list[TrialResult]]


def kept_result(folder: Path, trial: Trial) -> Kept[TrialResult, Trial]:
    def load(path: Path) -> tuple[TrialResult, Trial]:
        result = msgspec.convert(with_nan(parse_json(path.read_bytes())), TrialResult)
        return result, result.trial

    def save(path: Path, result: TrialResult, _: Trial) -> None:
        write_atomic(path, msgspec.json.encode(result))

    return Kept(folder / "trials" / f"{trial.name}.json", trial, load, save)


def run_and_keep(trial: Trial, folder: Path) -> TrialResult:
    """Run a trial, unless its result is kept, and keep the result; raises UserError as `train_trial`."""
    return kept_result(folder, trial).made(lambda: train_trial(trial)[0])


class Climb(Programme[Trial]):
    """The trials of chains that are not kept yet; each is followed by the next of its chain."""

    def __init__(self, chains: Sequence[Chain], folder: Path) -> None:
        super().__init__()
        self.found: dict[Chain, list[TrialResult]] = {chain: [] for chain in chains}
        self.folder, self._results = folder.absolute(), dict[Trial, TrialResult]()
        self._chains_of = dict[Trial, list[Chain]]()
        for chain in chains:
            self._advance(chain)

    def _advance(self, chain: Chain) -> None:
        while (trial := chain.after(self.found[chain])) is not None:
            if (result := kept_result(self.folder, trial).find()) is None:
                if trial not in self._chains_of:
                    self.left.append(trial)
                self._chains_of.setdefault(trial, []).append(chain)
                return
            self.found[chain].append(result)

    def work(self, trial: Trial) -> Work[Trial]:
        def outcome(_: float) -> str:
            result = self._results[trial]
            learnt = "learnt" if result.solved else "not learnt"
            return f"{learnt}, error {result.error:.3g}, {result.seconds:.0f} s"

        return Work(
            trial, trial.name, kept_result(self.folder, trial).path, trial.name, (run_and_keep, trial, self.folder),
            is_open=lambda: trial not in self._results, take=partial(self._results.__setitem__, trial), ends=outcome,
        )  # fmt: skip

    def ended(self, trial: Trial, failure: str | None) -> None:
        assert failure is None
        for chain in self._chains_of.pop(trial):
            self.found[chain].append(self._results[trial])
            self._advance(chain)


def conduct(chains: Sequence[Chain], folder: Path, launch: Launch, tell: Tell) -> dict[Chain, list[TrialResult]]:
    """Run the trials that are not kept yet, as many at a time as the launch permits, each with one thread.

    Results are kept in one file per trial under `trials/` of the folder; `tell` is called with a line for each. Raises
    UserError for a name that does not exist, parts that do not fit together, a folder that cannot be written, or a
    trial that failed; Stopped where a signal arrived.
    """
    climb = Climb(chains, folder)
    carry_out(climb, climb.work, launch, tell)
    return climb.found


def reach(results: Sequence[TrialResult]) -> int:
    return max((result.trial.span for result in results if result.solved), default=0)


class Summary(msgspec.Struct, frozen=True):
    """A network and a rule on a task, over seeds.

    `spans` are the longest learnt, by seed, and `median` is theirs; `first` is the shortest. `steps` and `error` are
    medians at the shortest span, `steps` over the seeds that learnt it; an error that is not finite counts as infinite.
    `seconds` is processor time in total.
    """

    task: str
    cell: str
    rule: str
    first: int
    spans: list[int]
    median: float
    steps: float | None
    error: float
    parameters: int
    seconds: float


def summarise(results: Results) -> list[Summary]:
    groups: dict[tuple[str, str, str], list[list[TrialResult]]] = {}
    for chain, outcomes in results.items():
        groups.setdefault((chain.first.task, chain.first.cell, chain.first.rule), []).append(outcomes)
    found = list[Summary]()
    for names, chains in groups.items():
        firsts, spans = [trials[0] for trials in chains], list(map(reach, chains))
        steps = [first.steps for first in firsts if first.solved]
        seconds = round(sum(trial.seconds for trials in chains for trial in trials), 1)
        found.append(
            Summary(
                *names, firsts[0].trial.span, spans, median(spans), median(steps) if steps else None,
                median(math.inf if math.isnan(first.error) else first.error for first in firsts),
                firsts[0].parameters, seconds,
            )
        )  # fmt: skip
    return found


def to_builtins(results: Results) -> dict[str, Any]:
    trials = [
        msgspec.to_builtins(found.trial)
        | {"solved": found.solved, "error": found.error, "steps": found.steps, "seconds": found.seconds}
        for chain in results.values()
        for found in chain
    ]
    return {"rows": msgspec.to_builtins(summarise(results)), "trials": trials}


class Rung(NamedTuple):
    """A rung of the ladder from Elman's network to the LSTM: its name in the laboratory, equations, and what is new."""

    cell: str
    equations: str
    lesson: str


LADDER = (
    Rung(
        "elman", "h' = tanh(W x + U h + b)",
        "The state is computed afresh at every step. An error propagated back is multiplied by U' and tanh' each time,"
        " so it fades or grows with distance: what was read some sixty steps ago is learnt late or never.",
    ),
    Rung(
        "rung-forget", "f = sigm(...);  c' = f c + tanh(W x + U y + b);  y' = tanh(c')",
        "The forget gate preserves the state: where f is near 1 the error passes unchanged. But every step is added to"
        " the state, relevant or not, so that what is to be kept drowns among what is not.",
    ),
    Rung(
        "rung-input", "i, f = sigm(...);  c' = f c + i tanh(W x + U y + b);  y' = tanh(c')",
        "The input gate selects what is stored: distractors stay outside.",
    ),
    Rung(
        "rung-output", "i, f, o = sigm(...);  c' = f c + i tanh(W x + U y + b);  y' = o tanh(c')",
        "The output gate hides the state until it is needed, so that it disturbs neither the output nor the gates."
        " This is the LSTM.",
    ),
)  # fmt: skip

TASKS = (("recall", 64), ("adding", 64))
"""The tasks of the lesson, one symbol among distractors and two values among others, with their first spans."""


def chains(seeds: int, budget: float, longest: int) -> list[Chain]:
    return [
        Chain(Trial(task=task, cell=rung.cell, span=span, seed=seed, budget=budget), longest)
        for task, span in TASKS
        for rung in LADDER
        for seed in range(seeds)
    ]
