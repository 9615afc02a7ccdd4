"""Pronouncing dictionaries as pairs of letters and phonemes (Sejnowski & Rosenberg 1987; Yao & Zweig 2015)."""

import hashlib
import re
from pathlib import Path
from typing import NamedTuple

from elman.data.lines import lines_of
from elman.data.text.utf8 import read_text
from elman.errors import UserError
from elman.files import write_atomic

_ENTRY = re.compile(r"(?P<word>\S+?)(?:\(\d+\))?\s+(?P<phonemes>[A-Z]+[0-2]?(?: +[A-Z]+[0-2]?)*)\s*(?:#.*)?")
_HELD_OUT = {0: "test", 1: "valid"}


class Pronunciation(NamedTuple):
    """A word and one of its pronunciations; vowels end in their stress: 1 primary, 2 secondary, 0 none."""

    word: str
    phonemes: tuple[str, ...]

    @property
    def pair(self) -> str:
        return f"{' '.join(self.word)}\t{' '.join(self.phonemes)}\n"


def read_dictionary(text: str, name: str, *, stress: bool = True) -> list[Pronunciation]:
    """The entries of a dictionary in the form of cmudict, in their order: lines `WORD PHONEME PHONEME ... # comment`.

    `word(2)` is another pronunciation of `word`; empty lines and lines that begin with `;;;` are left out. Without
    `stress` its digits are removed, and pronunciations that are then equal stand once.

    Raises UserError where a line is no entry, or there is none; `name` is that of the file.
    """
    found: dict[Pronunciation, None] = {}
    for number, line in enumerate(lines_of(text), start=1):
        if not line.strip() or line.startswith(";;;"):
            continue
        entry = _ENTRY.fullmatch(line)
        if entry is None:
            raise UserError(
                f"{name}:{number}: {line!r} is no entry; every line is a word and its phonemes: cat K AE1 T"
            )
        phonemes = entry["phonemes"].split()
        kept = phonemes if stress else [phoneme.rstrip("012") for phoneme in phonemes]
        found[Pronunciation(entry["word"].lower(), tuple(kept))] = None
    if not found:
        raise UserError(f"{name}: there is no entry; give lines of a word and its phonemes: cat K AE1 T")
    return list(found)


def split_of(word: str) -> str:
    """The split of a word, by its SHA-256 modulo 20: 90 % train, 5 % valid, 5 % test."""
    return _HELD_OUT.get(int.from_bytes(hashlib.sha256(word.encode()).digest()) % 20, "train")


def write_pronunciations(dictionary: Path, folder: Path, *, stress: bool = True) -> None:
    """Write train.tsv, valid.tsv and test.tsv; all pronunciations of a word are in one split.

    Raises UserError where the dictionary cannot be read, or a split has no word.
    """
    entries = read_dictionary(read_text(dictionary), str(dictionary), stress=stress)
    for split in ("train", "valid", "test"):
        lines = [entry.pair for entry in entries if split_of(entry.word) == split]
        if not lines:
            raise UserError(f"{dictionary}: too few words, none of {len(entries):,} entries is for the {split} split")
        write_atomic(folder / f"{split}.tsv", "".join(lines))
