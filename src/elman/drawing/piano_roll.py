"""A piano roll as SVG: time to the right, pitch upwards, one bar a held note."""

from collections.abc import Iterator, Sequence

import msgspec
from markupsafe import Markup, escape

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
    """The MIDI pitches that sound at each step."""

    roll: list[list[int]]

    @property
    def caption(self) -> str:
        """What the axes are."""
        return f", {len(self.roll)} steps to the right, pitch upwards (C4 is middle C)"

    def draw(self, name: str, title: str) -> Markup:  # noqa: ARG002 - every figure has a name
        """As `draw_roll`; an `<svg>` without identifiers needs no `name`."""
        return draw_roll(self.roll, title)


def draw_roll(roll: Sequence[Sequence[int]], name: str) -> Markup:
    """An `<svg>` of the MIDI pitches that sound at each step; C's are named, every 16th step is numbered."""
    sounding = [pitch for notes in roll for pitch in notes] or [60]
    low, high = min(sounding) // 12 * 12, (max(sounding) // 12 + 1) * 12
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
    parts += [
        f'<rect x="{_x(start) + 0.5}" y="{_y(pitch, high)}" width="{(end - start) * _STEP - 1}" height="{_ROW - 1}">'
        f"<title>{note_name(pitch)}, steps {start} to {end - 1}</title></rect>"
        for start, end, pitch in bars(roll)
    ]
    extent = f"{len(roll)} steps, notes from {note_name(min(sounding))} to {note_name(max(sounding))}"
    return Markup(
        f'<svg class="roll" role="img" viewBox="0 0 {width + 8} {height + _BELOW}" font-size="10">'
        f"<title>{escape(name)}: {extent}</title>{''.join(parts)}</svg>"
    )


def _x(step: int) -> int:
    return _LEFT + step * _STEP


def _y(pitch: int, high: int) -> int:
    return (high - pitch) * _ROW
