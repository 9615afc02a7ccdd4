"""A recipe for music of the user's own."""

import contextlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from elman.data.kinds import Look
from elman.errors import UserError, counted
from elman.kinds.music.corpus import midi_files
from elman.kinds.music.looks import ABC, MIDI_FILE, SCORE
from elman.kinds.music.pitches import Pitches
from elman.kinds.music.reading import UNSUITED, Onsets, readers
from elman.tasks.proposal.proposal import Proposal, changed

USUAL = 176_000, 30  # steps of the music that the recipe is for, and epochs that are enough for it


def proposals(found: Look, path: Path) -> list[Proposal]:
    """For the keys of a piano, or for the 93 pitches of MIDI that begin lower, with the grid that suits MIDI files.

    Of piano rolls first the one, then the other.
    """
    if not path.is_dir() and found.what not in (MIDI_FILE, SCORE, ABC):
        return [of_music(pitches) for pitches in (88, 93)]
    onsets, outside = Onsets(), {88: 0, 93: 0}
    files = (file for files in midi_files(path).values() for file in files)
    for read in (one for file in files for one in readers(file).values()):
        with contextlib.suppress(UserError):  # said when all are read
            tune = read()
            onsets.add(tune)
            for size in outside:
                outside[size] += not all(Pitches(size).has(note.pitch) for note in tune.notes)
    steps = onsets.fitting or UNSUITED
    words = f"steps of 1/{steps} of a quarter note: {onsets.share_off(steps)} are between them"
    return [of_music(min(outside, key=lambda size: outside[size]), steps, words)]


def of_music(pitches: int, steps: int = 2, *words: str) -> Proposal:
    """A recipe for frames of `pitches`, with `steps` frames to a quarter note of MIDI files, and why."""
    recipe = "music/nottingham-lstm-nade.toml"
    what = "the keys of a piano" if pitches == 88 else f"{pitches} pitches, some lower than the keys of a piano"
    settings = changed(recipe, {"data.pitches": pitches, "data.steps_per_quarter": steps})
    return Proposal(recipe, settings, (f"music: frames of notes, {what}", *words))


def fitted(proposal: Proposal, facts: Mapping[str, Any]) -> Proposal:
    """The proposal with at most as many pieces in a batch as there are to train on."""
    pieces = int(facts["pieces"])
    batch = min(proposal.load().training.batch_size, pieces)
    reason = f"{counted(pieces, 'piece')} to train on, {batch} of them side by side"
    return proposal.adding(changed(proposal.recipe, {"training.batch_size": batch})).because(
        reason, "training.batch_size"
    )
