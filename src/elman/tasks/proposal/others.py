"""Recipes for music, pairs, trees, tags and series of the user's own: rules from facts to settings."""

import math
import re
from typing import Any, NamedTuple

from elman.data.kinds import Look
from elman.data.text.passages import has_words, unseparated
from elman.kinds.pairs.files import RawPair
from elman.tasks.proposal.proposal import Proposal, Speed, changed, epochs_reason, epochs_that_fit

SHORTER = 0.5
"""A target of at most this share of the source's length is a headline rather than a translation."""

HELD_OUT = 0.05
"""Share of the pairs or trees of one file that each held-out split has, at most 2,000."""


class PairFacts(NamedTuple):
    """Pairs, the lengths of their sides in tokens, whether spaces separate words, and marks stand apart from them."""

    pairs: int
    source: float
    target: float
    words: bool
    tokenised: bool


def pair_facts(pairs: list[RawPair]) -> PairFacts:
    """The facts of some pairs."""
    sides = [" ".join(side) for side in zip(*pairs, strict=True)]
    words = all(has_words(unseparated(side), len(side)) for side in sides)
    lengths = [len(side.split() if words else side) / len(pairs) for side in sides]
    alone, attached = (len(re.findall(rule, " ".join(sides))) for rule in (r"(?<!\S)[,;?.](?!\S)", r"\w[,;?.](?!\S)"))
    return PairFacts(len(pairs), lengths[0], lengths[1], words, alone >= max(1, attached))


def of_music(pitches: int) -> Proposal:
    """A recipe for music: frames of the keys of a piano (88), or of the 93 pitches of MIDI that begin lower."""
    recipe = "music/nottingham-lstm-nade.toml"
    what = "the keys of a piano" if pitches == 88 else f"{pitches} pitches, some lower than the keys of a piano"
    return Proposal(recipe, changed(recipe, {"data.pitches": pitches}), (f"music: frames of notes, {what}",))


def side_by_side(proposal: Proposal, pieces: int) -> Proposal:
    """The proposal for music with at most as many pieces in a batch as there are to train on."""
    batch = min(proposal.load().training.batch_size, pieces)
    reason = f"{pieces:,} pieces to train on, {batch} of them side by side"
    return proposal.adding(changed(proposal.recipe, {"training.batch_size": batch})).because(
        reason, "training.batch_size"
    )


def of_trees(trees: int, *, cut: bool) -> Proposal:
    """A recipe for a treebank; `cut`: one file, of which some trees are held out."""
    recipe = "treebank/small-parser.toml"
    return Proposal(recipe, changed(recipe, _held_out(trees) if cut else {}), ("trees: a parser that labels nodes",))


def of_tags(form: str, sentences: int, *, cut: bool) -> Proposal:
    """A recipe for sentences with tags, in columns or CoNLL-U; `cut`: one file, of which some are held out."""
    recipe = "tagging/small-bidirectional-characters.toml"
    values = {"data.form": form, **(_held_out(sentences) if cut else {})}
    column = "UPOS" if form == "conllu" else "the last column"
    reason = f"words and tags: a tagger that reads in both directions and spells words; tags are {column}"
    return Proposal(recipe, changed(recipe, values), (reason,))


def _held_out(pairs: int) -> dict[str, Any]:
    share = max(1, min(2000, int(HELD_OUT * pairs)))
    return {"data.valid": share, "data.test": share}


def of_pairs(facts: PairFacts, found: Look, *, cut: bool) -> Proposal:
    """A recipe for pairs; `cut`: one file, or one pair of files, of which some pairs are held out."""
    values = _held_out(facts.pairs) if cut else {}
    short = facts.target <= SHORTER * facts.source
    recipe = "headlines/small-encdec.toml" if short else "translation/small-ja-en.toml"
    values["data.tokenisation"] = "characters" if not facts.words else "words" if facts.tokenised else "raw"
    values["data.form"] = found.form or "tsv"
    if found.languages is not None:
        values["data.languages"] = list(found.languages)
    if not facts.words:
        values |= {"data.max_source": 100, "data.max_target": 100}
    reasons = ["targets are much shorter than sources: as headlines" if short else "as translation"]
    if found.languages is not None:
        source, target = found.languages
        reasons.append(
            f'from {source} to {target}; for the other direction: --set \'data.languages=["{target}","{source}"]\''
        )
    return Proposal(recipe, changed(recipe, values), tuple(reasons))


def of_series() -> Proposal:
    """A recipe for a series: all numeric columns."""
    return Proposal("series/table.toml", (), ("a series: all columns of numbers are predicted",))


def windowed(proposal: Proposal, rows: int) -> Proposal:
    """The proposal for a series with columns and windows that suit so many training rows."""
    columns = 8 if rows >= 4000 else 4 if rows >= 1000 else 2
    length = max(1, min(50, rows // (4 * columns)))
    values = {"training.batch_size": columns, "training.window.length": length}
    reason = f"{rows:,} training rows: {columns} columns, windows of {length} steps"
    return proposal.adding(changed(proposal.recipe, values)).because(reason, *values)


def timed(proposal: Proposal, needed: int, minutes: float, speed: Speed) -> Proposal:
    """The proposal with as many epochs as fit into the minutes, at most those that are needed."""
    per_epoch = speed(proposal)
    own = proposal.load().training.epochs if proposal.is_given("training.epochs") else None
    epochs = own or epochs_that_fit(minutes, per_epoch, needed)
    return proposal.adding(
        changed(proposal.recipe, {"training.epochs": epochs}),
        epochs_reason(epochs, per_epoch, minutes, needed),
    )


USUAL = {
    "music": (176_000, 30),
    "pairs": (440_000, 8),
    "series": (10_000, 20),
    "trees": (51_000, 5),
    "tags": (86_000, 8),
}
"""By kind: the size of the data that recipes are for, in steps, target symbols, constituents or words; their epochs."""

MOST_EPOCHS = 100


def needed_epochs(size: int, usual: int, epochs: int) -> int:
    """Epochs that are enough: `epochs` at the `usual` size, more for less data by the square root."""
    return max(2, min(MOST_EPOCHS, round(epochs * math.sqrt(usual / max(1, size)))))
