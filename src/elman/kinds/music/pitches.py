"""Frames of notes: their pitches, and notes in time quantised on a grid of steps."""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from elman.errors import UserError

Roll = npt.NDArray[np.uint8]  # a piano roll: zeros and ones [steps, P]
MOST_STEPS = 1_000_000  # the most steps of a piece, so that a damaged file does not fill the memory
_LOWEST = {88: 21, 93: 1}


class Pitches:
    """The pitches of a frame of P notes: index i is MIDI pitch `lowest` + i."""

    def __init__(self, size: int) -> None:
        self.lowest = _LOWEST[size]
        self.highest = self.lowest + size - 1

    def __len__(self) -> int:
        return self.highest - self.lowest + 1

    @property
    def digest(self) -> str:
        """Identifies the range of pitches, as a vocabulary's digest does a vocabulary."""
        return f"midi-pitches-{self.lowest}-{self.highest}"

    def has(self, pitch: int) -> bool:
        return self.lowest <= pitch <= self.highest

    def sounding(self, roll: Roll) -> list[list[int]]:
        """The MIDI pitches that sound at each step."""
        return [(np.flatnonzero(frame) + self.lowest).tolist() for frame in roll]

    def reform(self, roll: Roll, source: "Pitches", name: str) -> Roll:
        """A roll [steps, len(source)] in these pitches.

        Raises UserError where a note lies outside them; messages begin with `name`.
        """
        found = np.flatnonzero(roll.any(axis=0)) + source.lowest
        self.require(found, name)
        result = np.zeros((len(roll), len(self)), np.uint8)
        result[:, found - self.lowest] = roll[:, found - source.lowest]
        return result

    def require(self, pitches: Iterable[int], name: str) -> None:
        """Raises UserError where a MIDI pitch lies outside; messages begin with `name`."""
        for pitch in pitches:
            if not self.has(pitch):
                others = [size for size, lowest in _LOWEST.items() if lowest <= pitch < lowest + size]
                advice = f", or set data.pitches to {others[0]}" if others else ""
                raise UserError(
                    f"{name}: note {pitch} is outside the {len(self)} pitches {self.lowest} to {self.highest};"
                    f" transpose the music{advice}"
                )


class Note(NamedTuple):
    """A note: from `start` to `end` in quarter notes, at a MIDI pitch, struck with a MIDI velocity."""

    start: float
    end: float
    pitch: int
    velocity: int = 80


def quantise(notes: Iterable[Note], end: float, pitches: Pitches, steps_per_quarter: int, name: str) -> Roll:
    """Notes on a grid.

    Beginnings and ends go to the nearest step, halves upwards; a note sounds for one step at least. The roll ends at
    `end` (quarter notes) or with the last note.

    Raises UserError, with a message that begins with `name`, where there is no note, one is outside the pitches, or the
    piece is too long.
    """
    spans = []
    for start, stop, pitch, _ in notes:
        first = _nearest(start * steps_per_quarter)
        spans.append((first, max(first + 1, _nearest(stop * steps_per_quarter)), pitch))
    if not spans:
        raise UserError(f"{name}: an empty piece without a note; remove it or give another")
    pitches.require((pitch for _, _, pitch in spans), name)
    steps = max(_nearest(end * steps_per_quarter), *(stop for _, stop, _ in spans))
    if steps > MOST_STEPS:
        raise UserError(
            f"{name}: {steps:,} steps long, and a piece may have {MOST_STEPS:,}; check whether the file is damaged"
        )
    roll = np.zeros((steps, len(pitches)), np.uint8)
    for first, stop, pitch in spans:
        roll[first:stop, pitch - pitches.lowest] = 1
    return roll


def _nearest(steps: float) -> int:
    return int(np.floor(steps + 0.5))
