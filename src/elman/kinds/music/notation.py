"""Music in ABC notation, read through music21: each tune of a file is a piece, and repeats are not played twice."""

import functools
import re
from pathlib import Path
from typing import Any

from elman.data.archives import Archive
from elman.data.lines import lines_of
from elman.data.text.utf8 import read_bytes
from elman.errors import optional
from elman.kinds.music.pianoroll import TICKS
from elman.kinds.music.pitches import Note
from elman.kinds.music.tune import Tune

_NUMBER = re.compile(r"X:")


def tunes_of(path: Path) -> dict[Path, str]:
    """The tunes of a file, each with what stands before the first, by the file's name, or by names below it if several.

    Notes are written in ASCII, so that the encoding of titles does not matter.
    """
    data = read_bytes(path, "give another file of music")
    lines = lines_of(data.removeprefix(b"\xef\xbb\xbf").decode("latin-1"))
    begins = [number for number, line in enumerate(lines) if _NUMBER.match(line)]
    if len(begins) < 2:
        return {path: "\n".join(lines)}
    before = lines[: begins[0]]
    parts = zip(begins, [*begins[1:], len(lines)], strict=True)
    return {path / f"{number:06}": "\n".join(before + lines[start:end]) for number, (start, end) in enumerate(parts, 1)}


def require_music21() -> Any:
    """The module of music21 that reads notation; raises UserError where it is not installed."""
    return optional(
        "music21.converter",
        "music in ABC notation is read through music21, which is not installed: pip install 'elman[abc]'; or train on"
        " it as a text of characters, with --data and recipes/text/characters.toml",
    )


@functools.lru_cache(maxsize=1 << 16)
def read_abc(path: Path, text: str) -> Tune:
    """A tune in ABC notation; raises UserError where it cannot be read."""
    file = path if path.is_file() else path.parent
    converter = require_music21()
    tune = "" if file == path else f", tune {int(path.name)}"
    with Archive(file, f"not readable as ABC notation{tune}", "mend it").reading():
        score = converter.parseData(text, format="abc").stripTies().flatten()
        found = [one for one in score.notes if "Harmony" not in one.classes]
        notes = tuple(
            Note(float(one.offset), float(one.offset + one.quarterLength), pitch.midi)
            for one in found
            if one.quarterLength  # grace notes have none
            for pitch in one.pitches
        )
        marks = [(float(start), float(mark.getQuarterBPM())) for start, _, mark in score.metronomeMarkBoundaries()]
        signatures = score.getElementsByClass("TimeSignature")
        metres = {float(one.offset): (one.numerator, one.denominator) for one in signatures}
        end = float(score.highestTime)
    dropped = ("chord symbols",) * (len(found) < len(score.notes))
    return Tune(notes, end, TICKS, tuple(marks), tuple(sorted(metres.items())), dropped=dropped)
