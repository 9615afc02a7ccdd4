"""What networks are good at: Jordan's and Elman's by what is fed back, and LSTMs by where their dropout is."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from elman.analysis.grammar import examine, options_of
from elman.data.classic import TASKS
from elman.study.claim import Arm, Claim, ClaimMeasure, Computation, Measurement, Source, rates
from elman.study.claims.grammar import divergence
from elman.study.comparison import lower
from elman.study.lab.networks import build_network, learning_rule
from elman.study.lab.trial import error_of, fresh_step
from elman.study.measures import METRIC, PERPLEXITY
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
        torch.manual_seed(seed)
        model, learner = build_network(MOVEMENT, self.cell, self.units), learning_rule(self.rule)
        learner.check(model, self.columns)
        draw, step = np.random.default_rng(seed), fresh_step(model, learner, lr=self.lr, clip=self.clip)
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
_MOVERS = {JORDAN: ("jordan", "forced"), ELMAN: ("elman", "bptt-1"), "Elman, whole sequences": ("elman", "bptt")}
_SPEECH = Source(
    "grammar/srn.toml", ('training.rule={kind="bptt", steps=1}', "data.grammar.sentences=10000", "training.epochs=10"),
    ("training.epochs=6",),
)  # fmt: skip

JORDAN_AND_ELMAN = Claim(
    name="jordan-and-elman",
    sentence="Jordan's network, which feeds back its output, learns movements better; Elman's, which feeds back its"
    " state, learns language better",
    source="Jordan 1986; Elman 1990, 1991",
    arms=(
        *(Arm(f"{label}, movement", Computation(Movement(*how), 0.1)) for label, how in _MOVERS.items()),
        _SPEECH.arm(f"{JORDAN}, language", 'model.core={kind="jordan", size=70, feedback="target", decay=0.8}'),
        _SPEECH.arm(f"{ELMAN}, language"),
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

_LONGER = Source(
    "reproduce/small-lstm.toml",
    ("data.train_tokens=60000", "model.encoder.size=200", "model.core.sizes=[200, 200]", "training.optimiser.lr=2e-3"),
    ("data.train_tokens=8000",),
)
_FORWARD = "model.encoder.dropout", "model.core.between_dropout", "model.core.output_dropout"
NONE, FORWARD, EVERYWHERE = "none", "between layers", "between layers and between steps"


def _dropped(*keys: str) -> Source:
    return _LONGER._replace(grid=rates(0.3, 0.5, 0.65, of=keys, shortened=("training.epochs=8",)))


DROPOUT = Claim(
    name="dropout", published_text="Penn Treebank",
    sentence="dropout helps an LSTM on the connections between layers, and harms it on those between steps",
    source="Zaremba, Sutskever & Vinyals 2014, section 3 and Table 1",
    arms=(
        _LONGER.arm(NONE, *(f"{key}=0" for key in _FORWARD)), _dropped(*_FORWARD).arm(FORWARD),
        _dropped(*_FORWARD, "model.core.recurrent_dropout").arm(EVERYWHERE),
    ),
    measure=PERPLEXITY, comparisons=(lower(METRIC, FORWARD, NONE), lower(METRIC, FORWARD, EVERYWHERE)),
    published={NONE: "114.5 (2 x 200 units)", FORWARD: "82.7 (2 x 650), 78.4 (2 x 1,500)"}, seeds=4,
    notes="The first 60,000 tokens of Shakespeare, two layers of 200 LSTM units, the best of the rates .3, .5, .65 for"
    " each arm, wherever it has dropout, by validation loss; all masks drawn afresh at every step as in the paper, the"
    " best of 12 epochs on validation text: a text so small that a network without dropout overfits within a few"
    " epochs. The paper shows no figure of dropout between steps; it gives the reason why it leaves it out.",
)  # fmt: skip
