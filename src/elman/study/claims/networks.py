"""Jordan's network and Elman's: what is fed back decides what a network is good at."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from elman.analysis.grammar import examine, options_of
from elman.data.classic import TASKS
from elman.study.claim import Arm, Claim, ClaimMeasure, Computation, Measurement, Source
from elman.study.claims.grammar import divergence
from elman.study.comparison import lower
from elman.study.lab.networks import build_network, learning_rule
from elman.study.lab.trial import error_of, fresh_step
from elman.tasks.text.run import TextRun

MOVEMENT = TASKS["movement"]


@dataclass(frozen=True)
class Movement:
    """How well a network moves round a ring by itself, after a number of updates by Adam.

    Each update reads `columns` new sequences of `span` steps; `tested` others are measured, in which every network
    is fed back only what it computed.
    """

    cell: str
    rule: str
    span: int = 24
    units: int = 32
    updates: int = 400
    columns: int = 32
    lr: float = 0.01
    clip: float = 1.0
    tested: int = 200

    def __call__(self, seed: int, _: str | None) -> Measurement:
        """Train and test."""
        torch.manual_seed(seed)
        model, learner = build_network(MOVEMENT, self.cell, self.units), learning_rule(self.rule)
        learner.check(model, self.columns)
        draw = np.random.default_rng(seed)
        step = fresh_step(model, learner, lr=self.lr, clip=self.clip)
        for _step in range(self.updates):
            step(MOVEMENT.draw(draw, self.columns, self.span).batch, self.lr)
        sample = MOVEMENT.draw(np.random.default_rng([seed, 1]), self.tested, self.span)
        with torch.no_grad():
            log_probs = model.log_probs(sample.batch.inputs, model.begin(self.tested))[0]
        nats = -log_probs.gather(-1, sample.batch.targets.unsqueeze(-1)).mean().item()
        return Measurement({"excess": nats, "errors": error_of(model, MOVEMENT, sample)}, {})


def language(folder: Path, sentences: int) -> Measurement:
    """The divergence from the grammar, and the share of verbs of the wrong number across embedded clauses."""
    run = TextRun(folder)
    found = examine(run, options_of(run, None), count=sentences)
    across = [line.accuracy for line in found.by_levels if line.label != "0 levels"]
    right = sum(one.successes for one in across) / sum(one.count for one in across)
    return Measurement({"excess": divergence(run), "errors": 1 - right}, {})


JORDAN, ELMAN = "Jordan", "Elman"

SPEECH = 'training.rule={kind="bptt", steps=1}', "data.grammar.sentences=10000", "training.epochs=10"
FED_BACK = 'model.core={kind="jordan", size=70, feedback="target", decay=0.8}'


def _speaker(label: str, *settings: str) -> Arm:
    return Arm(f"{label}, language", Source("grammar/srn.toml", (*SPEECH, *settings), ("training.epochs=6",)))


def _mover(label: str, cell: str, rule: str) -> Arm:
    return Arm(f"{label}, movement", Computation(Movement(cell, rule), 0.1))


JORDAN_AND_ELMAN = Claim(
    name="jordan-and-elman",
    sentence="Jordan's network, which feeds back its output, learns movements better; Elman's, which feeds back its"
    " state, learns language better",
    source="Jordan 1986; Elman 1990, 1991",
    arms=(
        _mover(JORDAN, "jordan", "forced"), _mover(ELMAN, "elman", "bptt-1"),
        _mover("Elman, whole sequences", "elman", "bptt"), _speaker(JORDAN, FED_BACK), _speaker(ELMAN),
    ),
    measure=ClaimMeasure(
        "fed-back",
        {"excess": "nats per symbol above the best possible", "errors": "share of wrong places, or of wrong verbs"},
        language, {"sentences": 2_000}, minutes=0.1,
    ),
    comparisons=(
        lower("excess", f"{JORDAN}, movement", f"{ELMAN}, movement"),
        lower("excess", f"{ELMAN}, language", f"{JORDAN}, language"),
    ),
    seeds=4,
    notes="Both learn by their authors' rule, plain back-propagation through one step, Jordan's network with the true"
    " outputs fed back; tested on movements, each is fed back only what it computed. Movements: 32 units, 400"
    " updates by Adam at .01, of .003, .01 and .03 the best rate for Elman's network, which learns them too when"
    " errors go back over whole sequences (third arm). Language: Elman's grammar, 70 units,"
    " recipes/grammar/srn.toml with 10,000 sentences and 10 epochs; Jordan's context keeps .8 of itself per word,"
    " the best of .5, .8 and .9 on validation text. Four seeds, since the differences of a pilot were many times"
    " their spread. The sources show what each network can do, not this comparison.",
)  # fmt: skip
