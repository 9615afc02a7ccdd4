"""How large a model of a text of the user's own is, and how long it is trained: rules from facts to settings."""

import math
from typing import Any, NamedTuple

from elman.tasks.proposal.proposal import SHARE, Proposal, Speed, changed, epochs_reason, epochs_that_fit

CHARACTERS_PER_WORD = 3  # characters that count as one word where the size of a text is compared with the tables


class Size(NamedTuple):
    """Units of the word vectors and of the wider layer, and the `tokens` from which on a text has a model of this size.

    `rate` is the learning rate of batches of up to 20 columns, `brief_rate` the rate for at most `BRIEF` epochs.
    """

    embedding: int
    hidden: int
    rate: float
    brief_rate: float
    tokens: int

    def cost(self, scored: float) -> float:
        """Multiply-adds per token in the two layers and the output, which scores `scored` symbols."""
        return (4 * (self.hidden + self.embedding) ** 2) + self.embedding * scored


SIZES = (
    Size(64, 128, 5e-3, 1.6e-2, 0),
    Size(128, 256, 5e-3, 1.6e-2, 20_000),
    Size(192, 384, 5e-3, 1.2e-2, 50_000),
    Size(320, 640, 4e-3, 6e-3, 150_000),
    Size(480, 960, 3e-3, 4.5e-3, 1_000_000),
    Size(640, 1280, 2e-3, 3e-3, 5_000_000),
)

QUARTERED = SIZES[:3]
"""Sizes of which a quarter of the needed epochs is enough, of characters a sixth, by trials; of wider ones half."""

BRIEF = 2  # epochs of words up to which a model is trained without dropout and penalties, and at a higher rate
FEW = 0.6  # share of the needed epochs up to which characters are read at a higher rate
ADAPTIVE = 5_000  # words from which on the softmax is adaptive, with the word vectors and biases
ADAPTIVE_SHARE = 0.25  # of the words, about what an adaptive softmax scores per token
LONG = 500_000
"""Words to train on from which batches are wider, and an adaptive softmax is a mixture (DOC) if there is time."""

AVERAGE_POWER = 3  # power of the average of a mixture's weights, of which the last 16 % of the steps have half
MIDDLE = 3  # the size that is measured first, where the text allows it
DROPOUT = (
    (50_000, 0.6, 0.6), (100_000, 0.55, 0.5), (500_000, 0.5, 0.45), (2_000_000, 0.25, 0.2), (10_000_000, 0.1, 0.1),
)  # fmt: skip
"""Tokens, and for shorter texts the dropout of the output and of the recurrent weights; elsewhere shares of the latter.

With few epochs each is lower, by the square root of their share: too little harms a short text more than too much, and
on a busy machine more epochs may fit than were timed. By trials with texts of 25,000, 126,000 and 930,000 words and of
214,000 and 320,000 characters.
"""


def needed_epochs(tokens: float) -> int:
    """Epochs after which a text of this length gains little more: 6 at a million, fewer where it is longer."""
    return max(1, min(40, round(6 * math.sqrt(1e6 / tokens))))


class Extent(NamedTuple):
    """The tokens of the training split, the symbols of the vocabulary, and whether these are words."""

    tokens: int
    symbols: int
    words: bool

    @property
    def in_words(self) -> float:
        """The tokens, characters counted as parts of words."""
        return self.tokens if self.words else self.tokens / CHARACTERS_PER_WORD

    @property
    def adaptive(self) -> bool:
        return self.words and self.symbols >= ADAPTIVE

    def enough_epochs(self, size: Size) -> float:
        """Epochs that make a size worth it: half of the needed ones; of `QUARTERED` fewer, but at least `BRIEF`."""
        needed = needed_epochs(self.in_words)
        share = 1 / 4 if self.words else 1 / 6
        return min(needed / 2, max(BRIEF, share * needed)) if size in QUARTERED else needed / 2

    def regularised(self, share: float) -> float:
        """The share of `DROPOUT` that a model of a share of the needed epochs has."""
        whole = 0.5 if not self.words else 1.4 if self.tokens < LONG else 0.8
        return min(1.0, whole * math.sqrt(share))

    @property
    def columns(self) -> int:
        if self.in_words < 100_000:
            return 10
        return 20 if self.in_words < (LONG if self.words else 1_000_000) else 32

    def rate(self, size: Size) -> float:
        """The learning rate of many epochs; of words in proportion to the columns that are above 20."""
        return round(size.rate * max(1.0, self.columns / 20 if self.words else 1.0), 6)

    @property
    def mixes(self) -> bool:
        """Whether the text is long enough for a mixture of adaptive softmaxes, a context of each layer."""
        return self.adaptive and self.tokens >= LONG

    @property
    def scored(self) -> float:
        return self.symbols * (ADAPTIVE_SHARE if self.adaptive else 1)


class Plan(NamedTuple):
    """A size, the epochs of it, the minutes that one takes, and whether its softmaxes are mixed."""

    size: Size
    epochs: int
    epoch: float
    mixes: bool

    def fits(self, minutes: float) -> bool:
        return self.epochs * self.epoch <= SHARE * minutes


def sized(proposal: Proposal, extent: Extent, minutes: float, speed: Speed) -> Proposal:
    """The proposal with the largest model of which enough epochs fit into the minutes.

    The epochs are as many as fit, at most those that are needed. Where only few epochs fit, the time is measured once
    more without dropout, which is faster. Long texts of words are read by a mixture of softmaxes if two epochs of it
    fit in any size, or as many as of one softmax. Where the user has set the layers, the rates of the nearest size
    apply; epochs that are set are neither raised nor lowered.
    """
    proposal = proposal.adding(changed(proposal.recipe, {_PREDICTS: True}))
    plan = _plan(proposal, extent, minutes, speed)
    found = _of_size(proposal, plan.size, extent, plan.epochs, mixes=plan.mixes)
    found = found.adding(changed(proposal.recipe, {_EPOCHS: plan.epochs}))
    units = f"{extent.tokens:,} training tokens: layers of {plan.size.hidden} and {plan.size.embedding} units"
    found = found.because(units, _LAYERS)
    if extent.adaptive:
        found = found.because(f"{extent.symbols:,} words: an adaptive softmax", "model.output.choice")
    if plan.mixes:
        found = found.because("a mixture of two, a context of each layer (DOC); the weights are averaged", _AVERAGING)
    found = found.adding((), epochs_reason(plan.epochs, plan.epoch, minutes, needed_epochs(extent.in_words)))
    if _brief(extent, plan.epochs):
        found = found.because("so few epochs: no dropout, a higher rate", _RATE, *_DROPOUTS)
    if _few(extent, plan.epochs):
        found = found.because("so few epochs: a higher rate", _RATE)
    return found.because("after an eighth and a quarter of the steps the loss at the end is predicted", _PREDICTS)


def _plan(proposal: Proposal, extent: Extent, minutes: float, speed: Speed) -> Plan:
    """The plan with a mixture where the text, the user's settings and the time allow one; else with one softmax."""
    if not extent.mixes or proposal.is_given(_LAYERS, "model.encoder.size", _CONTEXTS):
        return _largest(proposal, extent, minutes, speed, mixes=False)
    mixed = _largest(proposal, extent, minutes, speed, mixes=True)
    if mixed.fits(minutes) and mixed.epochs >= min(BRIEF, needed_epochs(extent.in_words)):
        return mixed
    single = _largest(proposal, extent, minutes, speed, mixes=False)
    return mixed if mixed.fits(minutes) and mixed.epochs >= single.epochs else single


_LAYERS, _EPOCHS, _RATE = "model.core.sizes", "training.epochs", "training.optimiser.lr"
_CONTEXTS, _AVERAGING, _PREDICTS = "model.output.contexts", "training.averaging", "training.predict_loss"
_DROPOUTS = (
    "model.encoder.dropout", "model.core.weight_drop", "model.core.between_dropout", "model.core.output_dropout",
    "model.encoder.word_dropout",
)  # fmt: skip


def _largest(proposal: Proposal, extent: Extent, minutes: float, speed: Speed, *, mixes: bool) -> Plan:
    """The plan of the largest size of which enough epochs fit, or of the user's own.

    The time is measured at a middle size first; from the nearest measured size it is extrapolated by the cost, until
    the size that is chosen has been measured.
    """
    allowed, own = _allowed(proposal, extent), _own_epochs(proposal)
    chosen, plans = allowed[:MIDDLE][-1], dict[Size, Plan]()
    while chosen not in plans:
        plans[chosen] = _measured(proposal, extent, minutes, speed, chosen, mixes=mixes)
        measured = {size: plan.epoch for size, plan in plans.items()}
        per_epoch = {size: _extrapolated(measured, size, extent.scored * (1 + mixes)) for size in allowed}
        enough = {size: own or extent.enough_epochs(size) for size in allowed}
        fitting = [size for size in allowed if SHARE * minutes / per_epoch[size] >= enough[size]]
        chosen = (fitting or allowed[:1])[-1]
    return plans[chosen]


def _measured(proposal: Proposal, extent: Extent, minutes: float, speed: Speed, size: Size, *, mixes: bool) -> Plan:
    """The plan of a size, of which as many epochs are trained as fit, at most those that are needed.

    Where few fit, the time is measured once more without dropout, which is faster; on a busy machine it may be more.
    """
    needed, own = needed_epochs(extent.in_words), _own_epochs(proposal)
    epoch = speed(_of_size(proposal, size, extent, mixes=mixes))
    epochs = own or epochs_that_fit(minutes, epoch, needed)
    if _brief(extent, epochs):
        epoch = min(epoch, speed(_of_size(proposal, size, extent, epochs, mixes=mixes)))
        epochs = own or epochs_that_fit(minutes, epoch, min(BRIEF, needed - 1))
    return Plan(size, epochs, epoch, mixes)


def _own_epochs(proposal: Proposal) -> int | None:
    return proposal.load().training.epochs if proposal.is_given(_EPOCHS) else None


def _allowed(proposal: Proposal, extent: Extent) -> list[Size]:
    """The sizes to choose from; the one nearest to the layers where the user has set them."""
    if proposal.is_given(_LAYERS) and (layers := getattr(proposal.load().model.core, "sizes", ())):
        return [min(SIZES, key=lambda size: abs(math.log(size.hidden / max(layers))))]
    return [size for size in SIZES if extent.in_words >= size.tokens]


def _extrapolated(measured: dict[Size, float], size: Size, scored: float) -> float:
    """The minutes of an epoch, measured or extrapolated by the cost from the measured size that is nearest to it."""
    nearest = min(measured, key=lambda other: abs(math.log(other.hidden / size.hidden)))
    return measured[nearest] * size.cost(scored) / nearest.cost(scored)


def _brief(extent: Extent, epochs: int) -> bool:
    return extent.words and epochs <= BRIEF and epochs < needed_epochs(extent.in_words)


def _few(extent: Extent, epochs: int) -> bool:
    return not extent.words and epochs <= FEW * needed_epochs(extent.in_words)


def most_epochs(extent: Extent, planned: int) -> int:
    """Epochs that are trained at most where `planned` were: the needed ones, few without dropout."""
    needed = needed_epochs(extent.in_words)
    return min(needed, BRIEF + 1) if _brief(extent, planned) else needed


def _of_size(proposal: Proposal, size: Size, extent: Extent, epochs: int | None = None, *, mixes: bool) -> Proposal:
    """The proposal with a size for `epochs` (None: as many as are needed), and perhaps with a mixture (DOC)."""
    tokens, needed = extent.in_words, needed_epochs(extent.in_words)
    epochs = needed if epochs is None else epochs
    brief = _brief(extent, epochs)
    share = 0.0 if brief else extent.regularised(min(1.0, epochs / needed))
    output, weights = next(((output, weights) for limit, output, weights in DROPOUT if tokens < limit), (0.0, 0.0))
    dropout = (weights * 2 / 3, weights, weights / 2, output, weights / 4)
    values: dict[str, Any] = {
        "model.encoder.size": size.embedding,
        _LAYERS: [size.hidden, size.embedding],
        **dict(zip(_DROPOUTS, (round(share * one, 2) for one in dropout), strict=True)),
        "training.batch_size": extent.columns,
        _RATE: size.brief_rate if brief else extent.rate(size),
    }
    if brief:
        values |= {"training.schedule.warm_up": 0.1, "training.penalties.ar": 0.0, "training.penalties.tar": 0.0}
    if _few(extent, epochs):
        values |= {_RATE: round((size.rate + size.brief_rate) / 2, 4), "training.optimiser.betas": [0.0, 0.99]}
    if extent.adaptive:
        values["model.output.choice"] = '{kind="adaptive", bias=true, tied=true}'
    if mixes:
        values[_CONTEXTS] = f'{{kind="mixture",size={size.embedding},heads={{1=1,2=1}}}}'
        values[_AVERAGING] = f'{{kind="polynomial",power={AVERAGE_POWER}}}'
    return proposal.adding(changed(proposal.recipe, values))
