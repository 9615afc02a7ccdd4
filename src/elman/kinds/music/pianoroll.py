"""Known corpora of music as piano rolls: published pickles, read without running their code, and Bach's chorales.

The chorales come with the Python package `music21` (MusicXML in zip archives).
"""

import io
import pickle
import struct
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import numpy.typing as npt

from elman.data.archives import Archive
from elman.data.catalog.unpack import installed_files
from elman.data.text.sources import SPLITS
from elman.errors import UserError
from elman.files import replacing
from elman.kinds.music.pitches import Note, Pitches, Roll, quantise
from elman.kinds.music.tune import Tune

LOWEST = 21  # the MIDI pitch of the first column, A0; the last of the 88 is C8
KEYS = 88

TICKS = 10_080  # of scores, per quarter note
STEPS_PER_QUARTER = 2  # the grid of the chorales: a step is an eighth note
_STEPS = {"C": 0, "D": 2, "E": 4, "F": 5, "G": 7, "A": 9, "B": 11}
_DAMAGED = (
    *(OSError, EOFError, KeyError, ValueError, ArithmeticError, RuntimeError),
    ElementTree.ParseError,
)
_NOT_PLAIN = (
    *(pickle.UnpicklingError, EOFError, ValueError, IndexError, KeyError, TypeError, AttributeError, AssertionError),
    *(MemoryError, OverflowError, RecursionError, struct.error),
)
_OF_TEN = ("train",) * 8 + ("valid", "test")


def convert_pickle(source: Path, target: Path) -> None:
    """Turn a pickle of tunes (Boulanger-Lewandowski et al., 2012) into piano rolls, `.npz`.

    The pickle is a dict of `train`, `valid`, `test`, each a list of tunes, each a list of steps, each a list
    of MIDI pitches. It is read by an unpickler that knows lists, tuples, dicts, strings and integers and
    refuses every class and function, so that it cannot run code.

    Writes `{split}_roll` [steps, 88] uint8, the tunes one after the other, and `{split}_len` [tunes] int32.

    Raises UserError where the file is not such a pickle.
    """
    try:
        tunes = _PlainUnpickler(io.BytesIO(source.read_bytes())).load()
    except _NOT_PLAIN as error:
        raise UserError(f"{source}: not a pickle of plain lists and numbers ({error}); download it again") from None
    rolls: dict[str, list[Roll]] = {}
    archive = Archive(source)
    for split in SPLITS:
        try:
            archive.count(KEYS * sum(len(tune) for tune in tunes[split]))
            rolls[split] = [_roll(tune) for tune in tunes[split]]
        except (KeyError, TypeError, IndexError, ValueError):
            raise UserError(
                f"{source}: not tunes of MIDI pitches {LOWEST} to {LOWEST + KEYS - 1} for train, valid "
                "and test; download it again"
            ) from None
    write_rolls(target, rolls)


def write_rolls(target: Path, rolls: Mapping[str, Sequence[Roll]]) -> None:
    """Write pieces [steps, 88] of each split: `{split}_roll`, one after the other, and `{split}_len` int32."""
    arrays: dict[str, npt.NDArray[Any]] = {}
    for split, pieces in rolls.items():
        arrays[f"{split}_roll"] = np.concatenate([np.zeros((0, KEYS), np.uint8), *pieces])
        arrays[f"{split}_len"] = np.array([len(piece) for piece in pieces], np.int32)
    with replacing(target) as temporary, zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED) as members:
        for name, array in arrays.items():
            info = zipfile.ZipInfo(f"{name}.npy")  # without a time, so that the same rolls give the same bytes
            info.compress_type = zipfile.ZIP_DEFLATED
            with members.open(info, "w") as member:
                np.lib.format.write_array(member, array, allow_pickle=False)


class _PlainUnpickler(pickle._Unpickler):
    """In Python, since the one in C allocates what a damaged file asks for: a memo of 2^31 places, for instance."""

    def find_class(self, module_name: str, global_name: str) -> Any:
        raise pickle.UnpicklingError(f"it asks for {module_name}.{global_name}")


def _roll(tune: Any) -> Roll:
    roll = np.zeros((len(tune), KEYS), np.uint8)
    for step, pitches in enumerate(tune):
        if len(pitches) > 10 * KEYS:
            raise ValueError(len(pitches))
        for pitch in pitches:
            if not LOWEST <= pitch < LOWEST + KEYS:
                raise ValueError(pitch)
            roll[step, pitch - LOWEST] = 1
    return roll


def write_chorales(target: Path) -> None:
    """Write the pieces of `music21/corpus/bach` as piano rolls, `.npz`, on a grid of eighth notes.

    Files in the order of their names; of every ten the first eight are for training, the ninth for validation, the
    tenth for the test. Repeats are not played twice.

    Raises UserError where the package is not installed, or one of its files is damaged.
    """
    files = installed_files("bach-chorales", "music21", "music21", "corpus/bach/*.mxl")
    rolls: dict[str, list[Roll]] = {split: [] for split in SPLITS}
    for number, file in enumerate(files):
        tune = read_score(file, "install music21 again")
        rolls[_OF_TEN[number % 10]].append(quantise(tune.notes, 0.0, Pitches(88), STEPS_PER_QUARTER, str(file)))
    write_rolls(target, rolls)


def read_score(path: Path, advice: str = "give another") -> Tune:
    """The notes of a MusicXML score, zipped or plain: all parts and voices; repeats are not played twice.

    Raises UserError where it cannot be read.
    """
    archive = Archive(path, "not a readable MusicXML score", advice)
    try:
        if zipfile.is_zipfile(path) or path.suffix.lower() == ".mxl":
            with archive.open_zip() as opened:
                container = _tree(archive, opened, "META-INF/container.xml")
                score = _tree(archive, opened, _root_file(container))
        else:
            score = ElementTree.fromstring(path.read_bytes())
        notes = tuple(note for part in score.iter("part") for note in _notes(part))
    except _DAMAGED as error:
        raise UserError(f"{path}: not a readable MusicXML score ({error}); {advice}") from None
    drums = sum(1 for _ in score.iter("unpitched"))
    return Tune(notes, max((note.end for note in notes), default=0.0), TICKS, drums=drums)


def _tree(archive: Archive, opened: zipfile.ZipFile, name: str) -> ElementTree.Element:
    with archive.reading(), opened.open(name) as file:
        return ElementTree.fromstring(b"".join(archive.blocks(file)))


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
                key = 12 * (int(pitch.findtext("octave", "")) + 1) + _STEPS[pitch.findtext("step", "")]
                alter = int(np.round(float(pitch.findtext("alter", "0"))))
                yield Note(float(last), float(last + duration), key + alter)
