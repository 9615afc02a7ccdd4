"""From Elman's network to recurrences of today: as many weights, rates tuned alike, and what they cost."""

import dataclasses
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from elman.study.claim import Arm, Claim, ClaimMeasure, Grid, Measurement, Source
from elman.study.claims.grammar import AGREEMENT, agreement
from elman.study.claims.speed import CONSTANTS, COSTS, TRAINING, course, in_time, perplexity_and_costs
from elman.study.comparison import Ratio, no_higher
from elman.study.measures import by_split

LSTM = "LSTM"


class Recurrence(NamedTuple):
    """A cell as TOML, in plain layers, two unless `layers` says otherwise, or in two residual blocks.

    A block is a norm and the cell, then a norm and a gated feed-forward half; `convolved`: its cell reads a convolution
    over four inputs. `widths` are units of a layer, or of the stream of blocks, with which it has as many weights as
    others on words, characters, music and grammar.

    `microseconds` are processor times of a training step for one token of words, one thread of Zen 3, on 2026-11-25, by
    the measure of recurrences-on-words, in a run before the one that docs/claims.md shows, whose times differ by up to
    18 %.
    """

    cell: str
    widths: tuple[int, ...] = ()
    microseconds: int = 0
    blocks: bool = False
    layers: int = 2
    convolved: bool = False

    def core(self, size: int, dropout: float) -> str:
        """The setting `model.core` (TOML) of a width, with dropout between layers or in blocks, and at the end."""
        cell = f"cell={{kind={self.cell}}}"
        if self.blocks:
            more = ", convolution=4" if self.convolved else ""
            masks = f"dropout={dropout}, output_dropout={dropout}"
            return f'model.core={{kind="residual", size={size}, {cell}, {masks}{more}}}'
        masks = f"between_dropout={dropout}, output_dropout={dropout}"
        return f'model.core={{kind="stack", {cell}, sizes={[size] * self.layers}, biases=1, {masks}}}'


RECURRENCES = {
    "Elman": Recurrence('"elman"', (188, 322, 194, 80), 66),
    LSTM: Recurrence('"lstm"', (128, 160, 96, 40), 55),
    "GRU": Recurrence('"gru"', (142, 186, 112, 46), 70),
    "QRNN": Recurrence('"qrnn"', (146, 218, 120, 52), 63),
    "SRU": Recurrence('"sru"', (172, 304, 168, 72), 64),
    "recurrent highway": Recurrence('"highway", depth=4', (148, 198, 122, 50), 80, layers=1),
    "Mogrifier": Recurrence('"mogrifier"', (108, 130, 74, 32), 127),
    "sLSTM": Recurrence('"slstm"', (152, 220, 128, 56), 87),
    "minGRU": Recurrence('"min-gru"', (194, 382, 218, 94), 61),
    "minLSTM": Recurrence('"min-lstm"', (178, 310, 176, 76), 70),
    "LSTM, blocks": Recurrence('"lstm"', (96, 98, 64, 26), 73, blocks=True),
    "minGRU, blocks": Recurrence('"min-gru"', (112, 122, 78, 32), 75, blocks=True, convolved=True),
    "LRU, blocks": Recurrence('"lru"', (104, 108, 68, 28), 93, blocks=True),
    "RG-LRU, blocks": Recurrence('"rg-lru"', (104, 112, 72, 28), 99, blocks=True),
    "mLSTM, blocks": Recurrence('"mlstm", convolution=4', (104, 112, 72, 28), 98, blocks=True),
    "Mamba-2, blocks": Recurrence('"mamba2"', (96, 102, 66, 26), 93, blocks=True),
    "gated DeltaNet, blocks": Recurrence('"deltanet"', (104, 108, 68, 28), 142, blocks=True),
    "RWKV-7, blocks": Recurrence('"rwkv7"', (104, 108, 68, 24), 143, blocks=True),
    "transformer": Recurrence('"local-attention"', (104, 112, 72, 28), 116, blocks=True),
}
"""Those of two layers first; the transformer has the blocks of the others, with attention for a cell.

Where the papers' blocks have a short convolution it is there: inside the cells of RG-LRU, mLSTM, Mamba-2 and DeltaNet,
and before that of minGRU. RWKV-7 reads the input before in another way, and the LRU none.
"""

FREQUENCIES = 'model.initialisation.output_bias="unigram"'
OUTPUTS = FREQUENCIES, 'model.initialisation.output_bias="zeros"'
"""Outputs that begin at the frequencies of symbols favour networks of small outputs, such as LSTMs; zeros, minGRUs."""

SOURCE = "Melis, Dyer & Blunsom 2018, Table 1 (of the LSTM, recurrent highway networks and searched cells)"

NOTES = (
    "Melis et al. tuned three recurrences for days each; here eighteen and a small transformer, of as many weights"
    " within {within} %, have one grid for each, of learning rates, two ways to begin and two of the outputs' biases"
    " (0, or the frequencies of symbols), since cells differ more by how they begin than from each other. Two layers,"
    " or two residual blocks with a norm and a gated feed-forward half, with which the linear recurrences are"
    " published; dropout in the same places; Adam, whose rate falls to 0 along a cosine. {text} Times are processor"
    " times of one thread; what is reached in a given time is read off the validations: the slower have had fewer"
    " epochs by then, at rates that have not fallen yet. The margin of 1 % was fixed beforehand. The recurrences of"
    " 2023 and later were made for long texts and wide networks on GPUs, of which this says nothing."
)
ANNEALED = 'training.schedule={kind="cosine"}'
"""With rates halved by the validation loss, which is noisy, seeds of an LSTM on words differ three times as much."""


def no_better(metric: str) -> tuple[Ratio, ...]:
    """That by a metric of which less is better no other recurrence is better than the LSTM, within 1 %."""
    return tuple(no_higher(metric, LSTM, label, margin=0.01) for label in RECURRENCES if label != LSTM)


class Setting(NamedTuple):
    """Data on which recurrences are compared: the recipe, what is laid over it, and how it is measured.

    `place` is that of the widths on such data.
    """

    recipe: str
    settings: tuple[str, ...]
    quick: tuple[str, ...]
    grid: Grid
    dropout: float
    place: int
    unit: str
    seconds: float
    within: int = 4

    def arm(self, label: str) -> Arm:
        """One of `RECURRENCES`."""
        return self.of(label, RECURRENCES[label], RECURRENCES[label].widths[self.place])

    def of(self, label: str, recurrence: Recurrence, size: int) -> Arm:
        """A recurrence of a width."""
        settings = (*self.settings, ANNEALED, FREQUENCIES, recurrence.core(size, self.dropout))
        return Arm(label, Source(self.recipe, settings, self.quick, self.grid))

    @property
    def measure(self) -> ClaimMeasure:
        """The losses of both splits, the costs, and what is reached in the time."""
        constants = {"seconds": self.seconds, **CONSTANTS}
        return ClaimMeasure(
            "perplexity-and-costs",
            {
                **by_split("", self.unit).metrics,
                in_time(self.unit): f"{self.unit}, valid, in {self.seconds:.0f} s of processor time",
                **COSTS,
            },
            perplexity_and_costs,
            constants if self.unit == "perplexity" else {**constants, "unit": self.unit},
            minutes=0.2,
            timed=True,
            cost=TRAINING,
            course=course(self.unit),
        )

    def claim(
        self, name: str, sentence: str, text: str, measure: ClaimMeasure, metric: str, source: str = SOURCE
    ) -> Claim:
        """That by `metric` no other recurrence is better than the LSTM."""
        return Claim(
            name=name,
            sentence=f"at as many weights no other recurrence {sentence}",
            source=source,
            arms=tuple(map(self.arm, RECURRENCES)),
            measure=measure,
            comparisons=no_better(metric),
            metric=metric,
            notes=NOTES.format(text=text, within=self.within),
        )

    def prediction(self, name: str, what: str, text: str) -> Claim:
        """That no other recurrence predicts `what` better than the LSTM."""
        sentence = f"predicts {what} better than a regularised LSTM"
        return self.claim(name, sentence, text, self.measure, f"test {self.unit}")


def agreement_and_costs(folder: Path, sentences: int, **costs: Any) -> Measurement:
    """How close a model is to its grammar (`claims.grammar.agreement`), beside what `perplexity_and_costs` measures."""
    found, others = agreement(folder, sentences), perplexity_and_costs(folder, **costs)
    return Measurement(others.figures | found.figures, others.curves | found.curves)


STARTS = (
    "model.initialisation={}",
    'model.initialisation={embedding={kind="uniform", bound=0.3}, input={kind="glorot"}, hidden={kind="orthogonal"},'
    ' bias={kind="zeros"}, forget_bias=1.0}',
)
"""AWD-LSTM's, whose signals are small at first, and one whose signals and memories are large."""


def _grid(*rates: float, epochs: int) -> Grid:
    """The same learning rates, initial weights and initial biases of outputs for every arm, tried for a few epochs.

    Each start replaces the rules of the recipe, so that the biases of outputs come after it.
    """
    tried = product((f"training.optimiser.lr={rate}" for rate in rates), STARTS, OUTPUTS)
    return Grid(tuple(tried), (f"training.epochs={epochs}",))


WORD_TOKENS = 100_000

WORDS = Setting(
    recipe="reproduce/small-lstm.toml",
    settings=(
        f"data.train_tokens={WORD_TOKENS}", "data.max_vocabulary=2000", "model.encoder.size=96",
        "training.batch_size=20", "training.epochs=6", "training.patience=6",
    ),
    quick=("data.train_tokens=20000", "training.epochs=4"), grid=_grid(4e-3, 1e-2, epochs=3), dropout=0.3,
    place=0, unit="perplexity", seconds=45.0,
)  # fmt: skip

CHARACTERS = Setting(
    recipe="reproduce/small-characters.toml",
    settings=("data.train_tokens=200000", "data.evaluation.streams=40", "training.epochs=4"),
    quick=("data.train_tokens=60000", "training.epochs=3"), grid=_grid(4e-3, 1e-2, epochs=2), dropout=0.1,
    place=1, unit="bits per character", seconds=40.0,
)  # fmt: skip

MUSIC = Setting(
    recipe="music/nottingham-gru.toml",
    settings=(
        'model.encoder={kind="frames", size=64}', 'training.optimiser={kind="adam", lr=0.004}', 'training.loss="mean"',
        "training.clip=5.0", "training.epochs=8",
    ),
    quick=("training.epochs=2",), grid=_grid(4e-3, 1e-2, epochs=3), dropout=0.2,
    place=2, unit="nats per step", seconds=40.0,
)  # fmt: skip

GRAMMAR = Setting(
    recipe="grammar/srn.toml", settings=("data.grammar.sentences=10000",),
    quick=("data.grammar.sentences=2000", "training.epochs=6"), grid=_grid(1e-2, 3e-2, 6e-2, epochs=4), dropout=0.0,
    place=3, unit="perplexity", seconds=15.0, within=7,
)  # fmt: skip

RECURRENCES_ON_WORDS = WORDS.prediction(
    "recurrences-on-words", "words", "100,000 tokens of Shakespeare, 2,000 words, 6 epochs, dropout .3."
)
RECURRENCES_ON_CHARACTERS = CHARACTERS.prediction(
    "recurrences-on-characters",
    "characters",
    "The first 200,000 characters of Shakespeare, 4 epochs, dropout .1.",
)
RECURRENCES_ON_MUSIC = MUSIC.prediction(
    "recurrences-on-music",
    "music",
    "Nottingham, notes that are independent given the past, 8 epochs, dropout .2.",
)
RECURRENCES_ON_GRAMMAR = GRAMMAR.claim(
    "recurrences-on-grammar",
    "comes closer to a grammar of embedded clauses than an LSTM",
    "Elman's grammar, 10,000 sentences, 15 epochs, no dropout. The divergence of the grammar's"
    " next words from the model's decides.",
    dataclasses.replace(
        GRAMMAR.measure,
        name="agreement-and-costs",
        metrics={**AGREEMENT.metrics, **GRAMMAR.measure.metrics},
        function=agreement_and_costs,
        constants={**AGREEMENT.constants, **GRAMMAR.measure.constants},
        minutes=0.4,
    ),
    "divergence",
    "Melis, Dyer & Blunsom 2018, asked of the grammar of Elman 1991",
)
