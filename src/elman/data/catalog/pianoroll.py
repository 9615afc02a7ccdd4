"""Polyphonic music: the published pickles of notes turned into plain arrays, running no code of theirs."""

import pickle
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from elman.data.text.sources import SPLITS
from elman.errors import UserError
from elman.files import replacing

LOWEST = 21
"""The MIDI pitch of the first column, A0; the last of the 88 is C8."""

KEYS = 88


def convert_pickle(source: Path, target: Path) -> None:
    """Turn a pickle of tunes (Boulanger-Lewandowski et al., 2012) into piano rolls, `.npz`.

    The pickle is a dict of `train`, `valid`, `test`, each a list of tunes, each a list of steps, each a list
    of MIDI pitches. It is read by an unpickler that knows lists, tuples, dicts, strings and integers and
    refuses every class and function, so that it cannot run code.

    Writes `{split}_roll` [steps, 88] uint8, the tunes one after the other, and `{split}_len` [tunes] int32.

    Raises:
        UserError: the file is not such a pickle.

    """
    with source.open("rb") as file:
        tunes = _load(file, source)
    rolls: dict[str, list[npt.NDArray[np.uint8]]] = {}
    for split in SPLITS:
        try:
            rolls[split] = [_roll(tune) for tune in tunes[split]]
        except (KeyError, TypeError, IndexError, ValueError):
            raise UserError(
                f"{source}: not tunes of MIDI pitches {LOWEST} to {LOWEST + KEYS - 1} for train, valid "
                "and test; download it again"
            ) from None
    write_rolls(target, rolls)


def write_rolls(target: Path, rolls: Mapping[str, Sequence[npt.NDArray[np.uint8]]]) -> None:
    """Write pieces [steps, 88] of each split: `{split}_roll`, one after the other, and `{split}_len` int32."""
    arrays: dict[str, npt.NDArray[Any]] = {}
    for split, pieces in rolls.items():
        arrays[f"{split}_roll"] = np.concatenate([np.zeros((0, KEYS), np.uint8), *pieces])
        arrays[f"{split}_len"] = np.array([len(piece) for piece in pieces], np.int32)
    with replacing(target) as temporary, zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED) as members:
        for name, array in arrays.items():
            with members.open(f"{name}.npy", "w") as member:
                np.lib.format.write_array(member, array, allow_pickle=False)


class _PlainUnpickler(pickle.Unpickler):
    def find_class(self, module_name: str, global_name: str) -> Any:
        raise pickle.UnpicklingError(f"it asks for {module_name}.{global_name}")


def _load(file: BinaryIO, source: Path) -> Any:
    try:
        return _PlainUnpickler(file).load()
    except (
        pickle.UnpicklingError,
        EOFError,
        ValueError,
        IndexError,
        KeyError,
        TypeError,
        AttributeError,
    ) as error:
        raise UserError(f"{source}: not a pickle of plain lists and numbers ({error}); download it again") from None


def _roll(tune: Any) -> npt.NDArray[np.uint8]:
    roll = np.zeros((len(tune), KEYS), np.uint8)
    for step, pitches in enumerate(tune):
        for pitch in pitches:
            if not LOWEST <= pitch < LOWEST + KEYS:
                raise ValueError(pitch)
            roll[step, pitch - LOWEST] = 1
    return roll
