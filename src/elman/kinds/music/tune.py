"""A tune: notes with their times, from a MIDI file or from the frames of a model."""

import bisect
import dataclasses
import math
from collections.abc import Iterable
from typing import Self, TypeAlias

from elman.drawing.piano_roll import bars
from elman.errors import UserError, counted
from elman.kinds.music.pitches import Note, Pitches, Roll, quantise
from elman.kinds.music.record import MusicOptions

TEMPO = 120.0  # quarter notes per minute where nothing else is known
Metre: TypeAlias = tuple[int, int]  # beats of a bar, and the part of a whole note that is one: (6, 8)


@dataclasses.dataclass(frozen=True)
class Tune:
    """Notes, and where the tune ends, in quarter notes.

    Frames do not record whether a note is held or struck again; a tune does.

    Attributes:
        notes: in any order.
        end: the length.
        ticks: a number of ticks per quarter note in which all times are whole.
        tempos: quarter notes per minute from some place on, in order; the first from the beginning.
        metres: as the tempos.
        drums: notes of drums, which are not among the notes.
        programs: the instruments that its file names, 0 to 127.
        repairs: what was damaged in its file and read past, and how often.
        dropped: what else its file has.
    """

    notes: tuple[Note, ...]
    end: float
    ticks: int
    tempos: tuple[tuple[float, float], ...] = ((0.0, TEMPO),)
    metres: tuple[tuple[float, Metre], ...] = ()
    drums: int = 0
    programs: tuple[int, ...] = ()
    repairs: tuple[tuple[str, int], ...] = ()
    dropped: tuple[str, ...] = ()

    @property
    def tempo(self) -> float:
        return self.tempos[0][1]

    def at_tempo(self, tempo: float | None) -> Self:
        """The tune at one tempo throughout, or at its own (None)."""
        return self if tempo is None else dataclasses.replace(self, tempos=((0.0, tempo),))

    def seconds(self, start: float, end: float) -> float:
        """The time from one place to another, in quarter notes."""
        total = 0.0
        places = [at for at, _ in self.tempos]
        for number in range(bisect.bisect_right(places, start) - 1, len(places)):
            begun, stop = max(start, places[number]), min(end, (*places, math.inf)[number + 1])
            if stop <= begun:
                break
            total += (stop - begun) * (60 / self.tempos[number][1])
        return total

    @classmethod
    def of_frames(cls, roll: Roll, options: MusicOptions) -> Self:
        """The tune of a piano roll [steps, P]: adjoining steps of one pitch are one held note."""
        step, pitches = 1 / options.steps_per_quarter, Pitches(options.pitches)
        held = bars(pitches.sounding(roll))
        notes = tuple(Note(start * step, end * step, pitch) for start, end, pitch in held)
        return cls(notes, len(roll) * step, options.steps_per_quarter)

    def frames(self, options: MusicOptions, name: str) -> Roll:
        """The piano roll, by the rule of `quantise`; raises UserError, beginning with `name`, where there is none."""
        if self.drums and not self.notes:
            raise UserError(f"{name}: drums alone ({counted(self.drums, 'note')}), which are left out; give another")
        return quantise(self.notes, self.end, Pitches(options.pitches), options.steps_per_quarter, name)

    def followed_by(self, continuation: "Tune", at: float) -> "Tune":
        """The notes up to quarter note `at`, each struck as it was, and another tune from there on.

        A note that sounds in the last frame before `at` and in the first one after it is one held note. The last tempo
        and the last metre hold for it.
        """
        notes = [note._replace(end=min(note.end, at)) for note in self.notes]
        step = 1 / continuation.ticks
        last = {note.pitch: place for place, note in sorted(enumerate(notes), key=lambda pair: pair[1])}
        for note in continuation.notes:
            place = last.get(note.pitch) if note.start == 0 else None
            # by the rule of `quantise` it sounds in the frame that ends at `at`
            if place is not None and (notes[place].end >= at - 0.5 * step or notes[place].start >= at - 1.5 * step):
                notes[place] = notes[place]._replace(end=at + note.end)
            else:
                notes.append(note._replace(start=at + note.start, end=at + note.end))
        ticks = math.lcm(self.ticks, continuation.ticks)
        tempos = (self.tempos[0], *(one for one in self.tempos[1:] if one[0] < at))
        metres = tuple(one for one in self.metres if one[0] < at)
        return Tune(tuple(notes), at + continuation.end, ticks, tempos, metres)


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
