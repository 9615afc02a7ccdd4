"""How music becomes frames: what a recipe may say."""

from typing import Annotated, Literal

import msgspec


class MusicOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How music becomes frames.

    Attributes:
        pitches: P, the form of a frame: 88, the keys of a piano (A0, MIDI pitch 21, to C8, 108), or 93 (MIDI pitches 1
            to 93, index = pitch - 1).
        steps_per_quarter: steps to a quarter note, in MIDI files that are read and written.

    """

    pitches: Literal[88, 93] = 88
    steps_per_quarter: Annotated[int, msgspec.Meta(ge=1, le=96)] = 2
