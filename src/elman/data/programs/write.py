"""Programs and their results as pairs: the three splits of a folder, which share no program."""

import hashlib
import json
import random
from pathlib import Path
from typing import NamedTuple

from elman.data.programs.draw import NAMES, Difficulty, Strategy, Task, difficulties, draw_pair
from elman.data.programs.syntax import BREAK
from elman.data.text.sources import SPLITS
from elman.errors import UserError
from elman.files import write_atomic

RECORD = "programs.json"
LONGEST = 100
"""The most digits of a number."""

_TRIES = 1000


class Wish(NamedTuple):
    """What to draw; `length` and `nesting` are those of held-out pairs, `strategy` chooses those of training.

    `doubled`: a source stands twice, with a line break between, as the paper doubles its inputs.
    """

    task: Task = "execute"
    length: int = 3
    nesting: int = 2
    strategy: Strategy = "baseline"
    train: int = 30_000
    valid: int = 1000
    test: int = 1000
    doubled: bool = False
    seed: int = 0


def split_of(source: str) -> str:
    """The split to which a program belongs, by its text: the SHA-256 modulo 3, as the paper divides by a hash."""
    return SPLITS[int.from_bytes(hashlib.sha256(source.encode()).digest()) % 3]


def draw_splits(wish: Wish) -> dict[str, list[tuple[str, str]]]:
    """The pairs of each split, in the order of the draw; equal wishes give equal pairs.

    Validation and test have the difficulty of the wish, and no program twice; training has programs as they are drawn,
    some of them repeatedly where there are few. Raises UserError where there are too few programs, or the task has no
    such option.
    """
    if wish.task != "execute" and wish.nesting != 1:
        raise UserError(f"--nesting {wish.nesting} with --task {wish.task}: only programs have operations; set it to 1")
    if wish.length > LONGEST:
        raise UserError(f"--length {wish.length}: numbers have {LONGEST} digits at most; lower it")
    if wish.nesting > len(NAMES):
        raise UserError(f"--nesting {wish.nesting}: a program has {len(NAMES)} variables; set it to that at most")
    found: dict[str, list[tuple[str, str]]] = {}
    for split, count in zip(SPLITS, (wish.train, wish.valid, wish.test), strict=True):
        draw = random.Random(f"{wish.seed} {split}")
        strategy: Strategy = wish.strategy if split == "train" else "baseline"
        seen: set[str] = set()
        rows = found[split] = []
        for difficulty in difficulties(strategy, Difficulty(wish.length, wish.nesting), count, draw):
            rows.append(_draw_new(wish, draw, difficulty, split, seen))
            if split != "train":
                seen.add(rows[-1][0])
    return found


def write_pairs(wish: Wish, folder: Path) -> dict[str, list[tuple[str, str]]]:
    """Write train.tsv, valid.tsv and test.tsv, and the wish as programs.json; returns the pairs."""
    found = draw_splits(wish)
    for split, rows in found.items():
        twice = [(f"{source}{BREAK}{source}" if wish.doubled else source, target) for source, target in rows]
        write_atomic(folder / f"{split}.tsv", "".join(f"{source}\t{target}\n" for source, target in twice))
        found[split] = twice
    write_atomic(folder / RECORD, json.dumps(wish._asdict(), indent=1) + "\n")
    return found


def _draw_new(wish: Wish, draw: random.Random, difficulty: Difficulty, split: str, seen: set[str]) -> tuple[str, str]:
    """A pair of a split that has not been seen."""
    for _ in range(_TRIES):
        pair = draw_pair(wish.task, draw, difficulty)
        if split_of(pair[0]) == split and pair[0] not in seen:
            return pair
    raise UserError(
        f"of {_TRIES:,} sources of length {difficulty.length} and nesting {difficulty.nesting} none was a new one for"
        f" the {split} split, which has {len(seen):,}; ask for fewer, or raise --length or --nesting"
    )
