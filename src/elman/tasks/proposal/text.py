"""How a text of the user's own is read, and how large a model of it is: rules from facts to settings."""

import math
from typing import Any, NamedTuple

from elman.data.text.facts import TextFacts
from elman.tasks.proposal.proposal import SHARE, Proposal, Speed, changed, epochs_reason, epochs_that_fit

FEW_LINES = 40
"""Lines, or paragraphs, that a text has at least where it is cut by them; otherwise it is read without ends."""

LONG_LINE = 0.04
"""Share of a text that its longest line has at most; a longer one could swallow a split."""

HELD_OUT = 50_000
"""Tokens of the validation split, and of the test split, at most; they are 5 % of smaller texts."""

CHARACTERS_PER_WORD = 3
"""Characters that count as one word where the size of a text is compared with the tables."""


class Size(NamedTuple):
    """A size of the model: of the word vectors and the two layers, with its rate; for texts from so many tokens on."""

    embedding: int
    hidden: int
    rate: float
    tokens: int

    @property
    def cost(self) -> int:
        """Multiply-adds per token in the layers."""
        return 4 * (self.hidden * (self.embedding + self.hidden) + self.embedding * (self.hidden + self.embedding))


SIZES = (
    Size(64, 128, 5e-3, 0),
    Size(128, 256, 5e-3, 20_000),
    Size(192, 384, 5e-3, 50_000),
    Size(320, 640, 4e-3, 150_000),
    Size(480, 960, 3e-3, 1_000_000),
    Size(640, 1280, 2e-3, 5_000_000),
)

DROPOUT = ((100_000, 0.5, 0.4), (500_000, 0.4, 0.3), (2_000_000, 0.25, 0.2), (10_000_000, 0.1, 0.1))
"""Below so many tokens: dropout of the output, and that of the recurrent weights; half of the latter elsewhere."""

MIN_COUNT = ((500_000, 2), (5_000_000, 3), (math.inf, 5))
"""Below so many tokens: how often a word has to occur in order not to be unknown."""

VOCABULARY = 30_000
"""Words at most."""


def reading(facts: TextFacts, *, cut: bool = True) -> Proposal:
    """How a text is read: its tokens, where a sequence ends, its vocabulary; `cut`: one file that has to be cut."""
    recipe = "text/prose.toml" if facts.words else "text/characters.toml"
    eos, reason = _ends(facts)
    values: dict[str, Any] = {"data.eos": eos}
    if not facts.words:
        reasons = [f"no spaces between words: characters{', marks of ruby removed' if facts.ruby else ''}"]
        values["data.ruby"] = "remove" if facts.ruby else "keep"
    else:
        how = "marks stand apart: tokenised already" if facts.tokenised else "ordinary text: marks are split off words"
        reasons = [f"{how}, capitals are kept"]
        count = next(count for limit, count in MIN_COUNT if facts.tokens < limit)
        values["data.tokenisation"] = "words" if facts.tokenised else "raw"
        values["data.min_count"] = 1 if facts.unknown else count
        if facts.tokens >= MIN_COUNT[0][0]:
            values["data.max_vocabulary"] = VOCABULARY
    if cut and (share := _held_out(facts.tokens)) < 0.05:
        values |= {"data.valid_fraction": share, "data.test_fraction": share}
        reasons.append(f"{share:.2g} of the text is held out for validation, as much for the test")
    return Proposal(recipe, changed(recipe, values), (*reasons, reason))


def _ends(facts: TextFacts) -> tuple[str, str]:
    """The value of `data.eos`, and the reason."""
    if facts.lines < FEW_LINES or facts.longest > LONG_LINE:
        return "none", "few and long lines: read as one sequence without ends"
    if not facts.words:
        return "exact", "every line break is a symbol"
    if not facts.wrapped or facts.tokenised:
        return "line", "lines are units (verse, sentences or paragraphs): each has an end"
    if facts.blocks < FEW_LINES:
        return "none", "wrapped prose with few blank lines: read as one sequence without ends"
    return "paragraph", "wrapped prose: paragraphs end at blank lines"


def _held_out(tokens: int) -> float:
    share = min(0.05, HELD_OUT / tokens)
    return float(f"{share:.1g}")


def needed_epochs(tokens: float) -> int:
    """Epochs after which a text of so many tokens gains little more: 6 at a million, fewer where it is longer."""
    return max(1, min(25, round(6 * math.sqrt(1e6 / tokens))))


def sized(proposal: Proposal, tokens: int, words: bool, minutes: float, speed: Speed) -> Proposal:
    """The proposal with the largest model of which at least half of the needed epochs fit into the minutes.

    `tokens`: of the training split. The epochs are as many as fit, at most those that are needed. A speed is measured
    at the size that the text allows, and extrapolated from there by the cost of the layers until the next measurement.
    """
    count = tokens if words else tokens / CHARACTERS_PER_WORD
    needed = needed_epochs(count)
    allowed = [size for size in SIZES if count >= size.tokens]
    index, measured = min(2, len(allowed) - 1), dict[int, float]()
    while True:
        found = _of_size(proposal, allowed[index], count)
        measured[index] = speed(found)
        fits = [size for size in range(len(allowed)) if _fits(measured, allowed, size, minutes, needed)]
        best = max(fits, default=0)
        if best in measured:
            break
        index = best
    return _with_epochs(_of_size(proposal, allowed[best], count), allowed[best], minutes, measured[best], needed, count)


def _fits(measured: dict[int, float], allowed: list[Size], size: int, minutes: float, needed: int) -> bool:
    """Whether half of the needed epochs fit, by the measured time or one extrapolated from the nearest size."""
    nearest = min(measured, key=lambda other: abs(other - size))
    per_epoch = measured[nearest] * allowed[size].cost / allowed[nearest].cost
    return minutes * SHARE / per_epoch >= needed / 2


def _of_size(proposal: Proposal, size: Size, tokens: float) -> Proposal:
    output, weights = next(((output, weights) for limit, output, weights in DROPOUT if tokens < limit), (0.0, 0.0))
    values: dict[str, Any] = {
        "model.encoder.size": size.embedding,
        "model.core.sizes": [size.hidden, size.embedding],
        "model.encoder.dropout": weights / 2,
        "model.core.weight_drop": weights,
        "model.core.between_dropout": weights / 2,
        "model.core.output_dropout": output,
        "training.batch_size": 10 if tokens < 100_000 else 20 if tokens < 1_000_000 else 32,
        "training.optimiser.lr": size.rate,
    }
    return proposal.adding(changed(proposal.recipe, values))


def _with_epochs(
    proposal: Proposal, size: Size, minutes: float, per_epoch: float, needed: int, tokens: float
) -> Proposal:
    epochs = epochs_that_fit(minutes, per_epoch, needed)
    return proposal.adding(
        changed(proposal.recipe, {"training.epochs": epochs}),
        f"about {tokens:,.0f} words: layers of {size.hidden} and {size.embedding} units",
        epochs_reason(epochs, per_epoch, minutes, needed),
    )
