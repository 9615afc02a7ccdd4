"""Files of pairs: lines of one file, of two parallel files, or trees; and the pairs that are held out."""

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple, Protocol, TypeVar

from elman.data.lines import lines_of
from elman.data.tables import rows_of
from elman.data.text.sources import SPLITS
from elman.data.text.utf8 import read_text
from elman.data.trees.brackets import read_trees, to_pair
from elman.errors import UserError, notice
from elman.kinds.pairs.record import PairOptions

ALIASES = {"train": ("train",), "valid": ("valid", "validation", "dev"), "test": ("test",)}


class RawPair(NamedTuple):
    """A pair as it stands in the files."""

    source: str
    target: str


def find_files(source: Path, options: PairOptions) -> dict[str, tuple[Path, ...]]:
    """The files of each split, or of `all` where one file (or one pair of files) has to be cut.

    A split's file lies in the folder `source`, or begins like `source`, and has the split's name between points,
    hyphens and underscores: `train.tsv`, `corpus.dev.ja` (`valid`, `validation` and `dev` are one).

    Raises UserError where there is no file for a split, or more than one.
    """
    if source.is_file() and options.form != "parallel":
        return {"all": (source,)}
    endings = {"tsv": ("tsv",), "trees": ("",), "parallel": options.languages or ()}[options.form]
    whole = tuple(Path(f"{source}.{ending}") for ending in endings)
    if options.form == "parallel" and all(path.is_file() for path in whole):
        return {"all": whole}
    return {split: tuple(_find(source, split, ending) for ending in endings) for split in SPLITS}


def read_pairs(paths: tuple[Path, ...], options: PairOptions) -> tuple[list[RawPair], int]:
    """The pairs of one file, or of two parallel ones, in order, and how many were left out since a side was empty.

    Raises UserError where a line has no tab, a damaged tree or an empty side, line counts differ, or there is no pair
    at all.
    """
    match options.form:
        case "tsv":
            pairs = _columns(paths[0])
        case "parallel":
            pairs = _side_by_side(*paths)
        case "trees":
            trees = read_trees(read_text(paths[0]), str(paths[0]))
            pairs = [RawPair(*to_pair(tree, options.tags == "XX", options.functions)) for tree in trees]
    kept = []
    for number, pair in enumerate(pairs, start=1):
        if all(pair):
            kept.append(pair)
        elif not options.skip_empty:
            side = "target" if pair.source else "source"
            where = paths[-1] if side == "target" else paths[0]
            raise UserError(
                f"{where}:{number}: the {side} is empty; every line needs a source and a target: remove the pair,"
                " or set data.skip_empty = true"
            )
    if not kept:
        raise UserError(f"{paths[0]}: there is no pair; give lines with a source and a target")
    return kept, len(pairs) - len(kept)


class HasSource(Protocol):
    """What can be held out: a pair, or a sentence with tags."""

    @property
    def source(self) -> str:
        """By which it is held out."""


OneT = TypeVar("OneT", bound=HasSource)


def cut(pairs: list[OneT], options: PairOptions, name: str, what: str = "pairs") -> dict[str, list[OneT]]:
    """Pairs of one file as train, valid and test; messages call them `what`.

    `hash`: pairs are put in the order of the SHA-256 of their source (then of their place); the first `test` of them
    are the test split, the next `valid` the validation split. `last`: the last `test`, and the `valid` before them.
    Training keeps the order of the file without the pairs whose source is also held out, so no source is in both.

    Raises UserError where there are too few pairs, or too few different sources.
    """
    held = options.valid + options.test
    if len(pairs) <= held:
        raise UserError(
            f"{name}: {len(pairs):,} {what}, too few to hold out data.valid = {options.valid:,} and"
            f" data.test = {options.test:,}; lower them"
        )
    order = list(range(len(pairs)))
    if options.split == "hash":
        order.sort(key=lambda index: (hashlib.sha256(pairs[index].source.encode()).digest(), index))
    else:
        order.reverse()
    test, valid = sorted(order[: options.test]), sorted(order[options.test : held])
    seen = {pairs[index].source for index in order[:held]}
    train = [pair for pair in pairs if pair.source not in seen]
    if not train:
        raise UserError(f"{name}: every training source is also held out; give {what} with more different sources")
    return {"train": train, "valid": [pairs[index] for index in valid], "test": [pairs[index] for index in test]}


def divided(
    raw: dict[str, list[OneT]], options: PairOptions, name: str, what: str = "pairs"
) -> tuple[dict[str, list[OneT]], int]:
    """Splits as they are, or of one file (`all`) those of `cut`, and how many training pairs that leaves out.

    Raises UserError as `cut` does.
    """
    if "all" not in raw:
        return raw, 0
    splits = cut(raw["all"], options, name, what)
    return splits, len(raw["all"]) - sum(map(len, splits.values()))


def say_left_out(source: str, what: str, reasons: Mapping[str, int]) -> None:
    """A notice of how many of `what` were left out of a corpus, by the reason; none where none was."""
    there = {reason: number for reason, number in reasons.items() if number}
    if there:
        why = (
            ", ".join(f"{number:,} {reason}" for reason, number in there.items())
            if len(there) > 1
            else next(iter(there))
        )
        notice(f"{source}: {sum(there.values()):,} {what} left out: {why}")


HELD_OUT_TOO = "whose source is held out too"
"""Why `cut` leaves out a training pair."""


def _lines(path: Path) -> list[str]:
    text = read_text(path)
    return lines_of(text) if text.strip() else []


def _columns(path: Path) -> list[RawPair]:
    pairs, lines = [], _lines(path)
    if any('"' in line and "\t" not in line for line in lines):
        rows = [cells for _, cells in rows_of("\n".join(lines), path, delimiter_of=lambda _: "\t")]
        if all(len(cells) == 2 for cells in rows):  # quoted cells of several lines
            return [RawPair(*(" ".join(lines_of(cell.strip())) for cell in cells)) for cells in rows]
    for number, line in enumerate(lines, start=1):
        columns = [column.strip() for column in line.split("\t")] if line.strip() else ["", ""]
        if len(columns) != 2:
            found = "no tab" if len(columns) == 1 else f"{len(columns) - 1} tabs"
            raise UserError(f"{path}:{number}: {found}; every line is a source, one tab and a target")
        pairs.append(RawPair(*columns))
    return pairs


def _side_by_side(source: Path, target: Path) -> list[RawPair]:
    sides = [[line.strip() for line in _lines(path)] for path in (source, target)]
    if len(sides[0]) != len(sides[1]):
        raise UserError(
            f"{source} has {len(sides[0]):,} lines and {target} has {len(sides[1]):,}; parallel files have one line"
            " for each pair: line n of one belongs to line n of the other"
        )
    return [RawPair(*pair) for pair in zip(*sides, strict=True)]


def _find(source: Path, split: str, ending: str) -> Path:
    folder, prefix = (source, "") if source.is_dir() else (source.parent, source.name)
    there = sorted(folder.iterdir()) if folder.is_dir() else []
    names = [path for path in there if path.is_file() and path.name.startswith(prefix)]
    found = [
        path
        for path in names
        if set(re.split("[._-]", path.name.removeprefix(prefix))) & set(ALIASES[split])
        and (not ending or path.name.endswith(f".{ending}"))
    ]
    shown = f"{split}.{ending}" if ending else f"{split}.txt"
    if not found:
        has = ", ".join(path.name for path in names[:8]) or "nothing"
        raise UserError(
            f"{source}: no {split} split; looked for {shown}, or a file with {' or '.join(ALIASES[split])} as a part of"
            f" its name{f' and the ending .{ending}' if ending else ''}; there is {has}"
        )
    if len(found) > 1:
        raise UserError(f"{source}: two files for the {split} split, {found[0].name} and {found[1].name}; keep one")
    return found[0]
