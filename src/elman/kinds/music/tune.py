"""A tune: notes with their times, from a MIDI file or from the frames of a model."""

import dataclasses
import math
from collections.abc import Iterable
from typing import Self

from elman.drawing.piano_roll import bars
from elman.kinds.music.pitches import Note, Pitches, Roll, quantise
from elman.kinds.music.record import MusicOptions

TEMPO = 120.0
"""Quarter notes per minute where nothing else is known."""


@dataclasses.dataclass(frozen=True)
class Tune:
    """Notes, and where the tune ends, in quarter notes.

    Frames do not record whether a note is held or struck again; a tune does.

    Attributes:
        notes: in any order.
        end: the length.
        ticks: a number of ticks per quarter note in which all times are whole.
        tempo: quarter notes per minute.
    """

    notes: tuple[Note, ...]
    end: float
    ticks: int
    tempo: float = TEMPO

    @classmethod
    def of_frames(cls, roll: Roll, options: MusicOptions) -> Self:
        """The tune of a piano roll [steps, P]: adjoining steps of one pitch are one held note."""
        step, pitches = 1 / options.steps_per_quarter, Pitches(options.pitches)
        held = bars(pitches.sounding(roll))
        notes = tuple(Note(start * step, end * step, pitch) for start, end, pitch in held)
        return cls(notes, len(roll) * step, options.steps_per_quarter)

    def frames(self, options: MusicOptions, name: str) -> Roll:
        """The piano roll, by the rule of `quantise`; raises UserError, beginning with `name`, where there is none."""
        return quantise(self.notes, self.end, Pitches(options.pitches), options.steps_per_quarter, name)

    def followed_by(self, continuation: "Tune", at: float) -> "Tune":
        """The notes up to quarter note `at`, each struck as it was, and another tune from there on.

        A note that sounds in the last frame before `at` and in the first one after it is one held note.
        """
        notes = [note._replace(end=min(note.end, at)) for note in self.notes]
        step = 1 / continuation.ticks
        last = {note.pitch: place for place, note in sorted(enumerate(notes), key=lambda pair: pair[1])}
        for note in continuation.notes:
            place = last.get(note.pitch) if note.start == 0 else None
            if place is not None and _reaches(notes[place], at, step):
                notes[place] = notes[place]._replace(end=at + note.end)
            else:
                notes.append(note._replace(start=at + note.start, end=at + note.end))
        ticks = math.lcm(self.ticks, continuation.ticks)
        return Tune(tuple(notes), at + continuation.end, ticks, self.tempo)


def _reaches(note: Note, at: float, step: float) -> bool:
    """Whether a note sounds in the frame that ends at `at`, by the rule of `quantise`."""
    return note.end >= at - 0.5 * step or note.start >= at - 1.5 * step


def separated(notes: Iterable[Note]) -> list[Note]:
    """Notes of which no two of one pitch sound together, in the order of their beginnings.

    A note that is struck while it sounds ends there and begins again, and then sounds as long as either would.
    """
    found = list[Note]()
    sounding = dict[int, int]()
    for note in sorted(notes):
        place = sounding.get(note.pitch)
        if place is not None and found[place].end > note.start:
            before = found[place]
            note = note._replace(end=max(note.end, before.end))
            if before.start == note.start:
                found[place] = note._replace(velocity=max(note.velocity, before.velocity))
                continue
            found[place] = before._replace(end=note.start)
        sounding[note.pitch] = len(found)
        found.append(note)
    return found
