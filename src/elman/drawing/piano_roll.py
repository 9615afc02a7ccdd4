"""A piano roll as SVG: time to the right, pitch upwards, one bar a held note."""

from collections.abc import Iterator, Sequence
from typing import Annotated, ClassVar

import msgspec
from markupsafe import Markup, escape
from msgspec import Meta

from elman.drawing.player import play_button

NAMES = ("C", "C♯", "D", "E♭", "E", "F", "F♯", "G", "A♭", "A", "B♭", "B")
_STEP, _ROW, _LEFT, _BELOW = 6, 6, 34, 20
"""CSS pixels of a step, a pitch, and the margins for the names of octaves and the numbers of steps."""


def note_name(pitch: int) -> str:
    """The name of a MIDI pitch.

    Example:
        >>> note_name(60), note_name(70), note_name(21)
        ('C4', 'B♭4', 'A0')
    """
    return f"{NAMES[pitch % 12]}{pitch // 12 - 1}"


def bars(roll: Sequence[Sequence[int]]) -> Iterator[tuple[int, int, int]]:
    """Held notes as (first step, end, pitch), in the order of their ends.

    Example:
        >>> list(bars([[60, 64], [60], [], [60]]))
        [(0, 1, 64), (0, 2, 60), (3, 4, 60)]
    """
    begun: dict[int, int] = {}
    for step, notes in enumerate([*roll, []]):
        for pitch in sorted(begun.keys() - set(notes)):
            yield begun.pop(pitch), step, pitch
        for pitch in notes:
            begun.setdefault(pitch, step)


class PianoRoll(msgspec.Struct, frozen=True, tag_field="kind", tag="piano-roll"):
    """The MIDI pitches that sound at each step, and the seconds of a step where it is played."""

    playable: ClassVar[bool] = True
    roll: list[list[Annotated[int, Meta(ge=0, le=127)]]]
    step_seconds: float = 0.25

    @property
    def caption(self) -> str:
        """What the axes are."""
        return f", {len(self.roll)} steps to the right, pitch upwards (C4 is middle C)"

    def draw(self, name: str, title: str) -> Markup:  # noqa: ARG002 - every figure has a name
        """The drawing with a button that plays it; neither has identifiers, so that no `name` is needed."""
        return draw_roll(self.roll, title) + play_button(bars(self.roll), self.step_seconds, title)


def draw_roll(roll: Sequence[Sequence[int]], name: str) -> Markup:
    """An `<svg>` of the MIDI pitches that sound at each step; C's are named, every 16th step is numbered.

    A few stray notes far from the others do not stretch it (see `shown_range`): triangles at its edge mark them.
    """
    sounding = [pitch for notes in roll for pitch in notes] or [60]
    low, high = shown_range(sounding)
    width, height = _LEFT + len(roll) * _STEP, (high - low + 1) * _ROW
    parts = [
        f'<line x1="{_LEFT}" x2="{width}" y1="{_y(pitch, high) + _ROW / 2}" y2="{_y(pitch, high) + _ROW / 2}"'
        f'/><text x="{_LEFT - 6}" y="{_y(pitch, high) + _ROW / 2 + 4}" text-anchor="end">'
        f"{note_name(pitch)}</text>"
        for pitch in range(low, high + 1, 12)
    ]
    parts += [
        f'<line x1="{_x(step)}" x2="{_x(step)}" y1="0" y2="{height}" stroke-dasharray="1 3"/>'
        f'<text x="{_x(step)}" y="{height + 14}" text-anchor="middle">{step}</text>'
        for step in range(0, len(roll), 16)
    ]
    held = list(bars(roll))
    parts += [_mark(start, end, pitch, low, high) for start, end, pitch in held]
    strays = sum(not low <= pitch <= high for _, _, pitch in held)
    extent = f"{len(roll)} steps, notes from {note_name(min(sounding))} to {note_name(max(sounding))}"
    marked = f"; {strays} beyond {note_name(low)} to {note_name(high)}, marked at the edge" if strays else ""
    return Markup(
        f'<svg class="roll" role="img" viewBox="0 0 {width + 8} {height + _BELOW}" font-size="10">'
        f"<title>{escape(name)}: {extent}{marked}</title>{''.join(parts)}</svg>"
    )


def shown_range(sounding: Sequence[int]) -> tuple[int, int]:
    """The lowest and the highest pitch that are drawn, both C's, of the pitches that sound (one per step and note).

    It holds all notes that are within an octave of the central 95 %.

    Example:
        >>> shown_range([60, 64, 67] * 20), shown_range([60, 64, 67] * 20 + [21])
        ((60, 72), (60, 72))
    """
    ordered = sorted(sounding)
    margin = int(len(ordered) * 0.025)
    centre = ordered[margin], ordered[-1 - margin]
    near = [pitch for pitch in ordered if centre[0] - 12 <= pitch <= centre[1] + 12]
    return near[0] // 12 * 12, (near[-1] // 12 + 1) * 12


def _mark(start: int, end: int, pitch: int, low: int, high: int) -> str:
    """A note: a bar, or where it lies beyond the edge a triangle that points there."""
    left, wide, tall = _x(start) + 0.5, _STEP - 1, _ROW - 1
    title = f"<title>{note_name(pitch)}, steps {start} to {end - 1}</title>"
    if pitch > high:
        return f'<path d="M{left} {tall}h{wide}l{-wide / 2} {-tall}z">{title}</path>'
    if pitch < low:
        return f'<path d="M{left} {_y(low, high)}h{wide}l{-wide / 2} {tall}z">{title}</path>'
    top, width = _y(pitch, high), (end - start) * _STEP - 1
    return f'<rect x="{left}" y="{top}" width="{width}" height="{tall}">{title}</rect>'


def _x(step: int) -> int:
    return _LEFT + step * _STEP


def _y(pitch: int, high: int) -> int:
    return (high - pitch) * _ROW
