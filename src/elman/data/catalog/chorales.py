"""Bach's chorales out of the files of the Python package `music21` (MusicXML in zip archives)."""

import importlib.util
import zipfile
import zlib
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from xml.etree import ElementTree

import numpy as np

from elman.data.catalog.pianoroll import write_rolls
from elman.data.music.pitches import Note, Pitches, Roll, quantise
from elman.data.text.sources import SPLITS
from elman.errors import UserError

STEPS_PER_QUARTER = 2
"""The grid of the chorales: a step is an eighth note."""

_STEPS = {"C": 0, "D": 2, "E": 4, "F": 5, "G": 7, "A": 9, "B": 11}
_DAMAGED = (
    *(OSError, EOFError, KeyError, ValueError, ArithmeticError, RuntimeError),
    *(zlib.error, zipfile.BadZipFile, ElementTree.ParseError),
)
_OF_TEN = ("train",) * 8 + ("valid", "test")


def write_chorales(target: Path) -> None:
    """Write the pieces of `music21/corpus/bach` as piano rolls, `.npz`, on a grid of eighth notes.

    Files in the order of their names; of every ten the first eight are for training, the ninth for validation, the
    tenth for the test. Repeats are not played twice.

    Raises:
        UserError: the package is not installed, or one of its files is damaged.

    """
    spec = importlib.util.find_spec("music21")
    places = list(spec.submodule_search_locations or ()) if spec else []
    files = [file for place in places for file in sorted(Path(place, "corpus", "bach").glob("*.mxl"))]
    if not files:
        raise UserError(
            "bach-chorales: they are in the Python package 'music21', which is not installed;"
            " run: pip install --no-deps music21"
        )
    rolls: dict[str, list[Roll]] = {split: [] for split in SPLITS}
    for number, file in enumerate(files):
        rolls[_OF_TEN[number % 10]].append(read_musicxml(file))
    write_rolls(target, rolls)


def read_musicxml(path: Path) -> Roll:
    """The piano roll of a zipped MusicXML score, uint8 [steps, 88]; all parts and voices together.

    Raises:
        UserError: it cannot be read, has no notes, or a note outside the keys of a piano.

    """
    try:
        with zipfile.ZipFile(path) as archive:
            container = ElementTree.fromstring(archive.read("META-INF/container.xml"))
            score = ElementTree.fromstring(archive.read(_root_file(container)))
        parts = [list(_notes(part)) for part in score.iter("part")]
    except _DAMAGED as error:
        raise UserError(f"{path}: not a readable MusicXML score ({error}); install music21 again") from None
    notes = [note for part in parts for note in part]
    return quantise(notes, 0.0, Pitches(88), STEPS_PER_QUARTER, str(path))


def _root_file(container: ElementTree.Element) -> str:
    for element in container.iter():
        if element.tag.rpartition("}")[2] == "rootfile":
            return element.attrib["full-path"]
    raise ValueError("it names no score")


def _notes(part: ElementTree.Element) -> Iterator[Note]:
    """The notes of a part; times in quarter notes."""
    now = last = Fraction(0)
    divisions = 1
    for element in (child for measure in part.iter("measure") for child in measure):
        divisions = int(element.findtext("divisions", str(divisions))) if element.tag == "attributes" else divisions
        duration = Fraction(element.findtext("duration", "0")) / divisions
        if element.tag == "backup":
            now -= duration
            if now < 0:
                raise ValueError("it goes back beyond its beginning")
        elif element.tag == "forward":
            now += duration
        elif element.tag == "note" and duration:  # grace notes have none
            if element.find("chord") is None:
                last, now = now, now + duration
            pitch = element.find("pitch")
            if pitch is not None:
                yield Note(float(last), float(last + duration), _midi(pitch))


def _midi(pitch: ElementTree.Element) -> int:
    octave, alter = int(pitch.findtext("octave", "")), float(pitch.findtext("alter", "0"))
    return 12 * (octave + 1) + _STEPS[pitch.findtext("step", "")] + int(np.round(alter))
