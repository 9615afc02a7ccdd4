"""A recipe for music of the user's own."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from elman.data.kinds import Look
from elman.tasks.proposal.proposal import Proposal, changed

USUAL = 176_000, 30
"""Steps of the music that the recipe is for, and epochs that are enough for it."""


def proposals(found: Look, path: Path) -> list[Proposal]:  # noqa: ARG001 - whatever it looks like
    """First for the keys of a piano, then for the 93 pitches of MIDI that begin lower."""
    return [of_music(pitches) for pitches in (88, 93)]


def of_music(pitches: int) -> Proposal:
    """A recipe for frames of so many pitches."""
    recipe = "music/nottingham-lstm-nade.toml"
    what = "the keys of a piano" if pitches == 88 else f"{pitches} pitches, some lower than the keys of a piano"
    return Proposal(recipe, changed(recipe, {"data.pitches": pitches}), (f"music: frames of notes, {what}",))


def fitted(proposal: Proposal, facts: Mapping[str, Any]) -> Proposal:
    """The proposal with at most as many pieces in a batch as there are to train on."""
    pieces = int(facts["pieces"])
    batch = min(proposal.load().training.batch_size, pieces)
    reason = f"{pieces:,} pieces to train on, {batch} of them side by side"
    return proposal.adding(changed(proposal.recipe, {"training.batch_size": batch})).because(
        reason, "training.batch_size"
    )
