"""Files of pairs: lines of one file, of two parallel files, or trees; and the pairs that are held out."""

import hashlib
import itertools
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeVar, cast

from elman.data.kinds import SPLITS as NAMES
from elman.data.lines import lines_of
from elman.data.text.sources import ALIASES, SPLITS, one_text
from elman.data.text.utf8 import read_text
from elman.data.trees.brackets import read_trees, to_pair
from elman.errors import UserError, notice
from elman.files import sha256_file
from elman.kinds.pairs.looks import COMMENTS
from elman.kinds.pairs.record import PairOptions
from elman.kinds.pairs.table import Line, RawPair, pair_lines


def find_files(source: Path, options: PairOptions) -> dict[str, tuple[Path, ...]]:
    """The files of each split, or of `all` where one file (or one pair of files) has to be cut.

    A split's file lies in the folder `source`, or begins like `source`, and has the split's name between points,
    hyphens and underscores: `train.tsv`, `corpus.dev.ja` (`valid`, `validation`, `val` and `dev` are one).

    Raises UserError where there is no file for a split, or more than one.
    """
    if options.form != "parallel" and (whole := whole_files(source)):
        return {"all": whole}
    endings: tuple[str, ...] = {"tsv": ("tsv",), "parallel": options.languages or ()}.get(options.form, ("",))
    whole = tuple(Path(f"{source}.{ending}") for ending in endings)
    if options.form == "parallel" and all(path.is_file() for path in whole):
        return {"all": whole}
    found = {split: tuple(_find(source, split, ending) for ending in endings) for split in SPLITS}
    there = {split: cast("tuple[Path, ...]", paths) for split, paths in found.items() if None not in paths}
    if ("train" in there and len(there) == 1) or "train" not in there:
        lacking = next(split for split in SPLITS if split not in there)
        raise _no_split(source, lacking, endings[0])
    return there


def read_pairs(paths: tuple[Path, ...], options: PairOptions) -> tuple[list[RawPair], int]:
    """The pairs of files, or of two parallel ones, in order, and how many were left out since a side was empty.

    Raises UserError where a line has no tab, a damaged tree or an empty side, line counts differ, or there is no pair
    at all.
    """
    return _without_empty(_read(paths, options), paths, options)


def read_whole(paths: tuple[Path, ...], options: PairOptions) -> dict[str, tuple[list[RawPair], int]]:
    """As `read_pairs`, of files that have to be cut: `all`, or each split that a column of a table names."""
    lines = _read(paths, options)
    found = {
        split: [line for line in lines if line.split == split] for split in dict.fromkeys(one.split for one in lines)
    }
    return {split: _without_empty(some, paths, options) for split, some in (found or {"all": lines}).items()}


def _read(paths: tuple[Path, ...], options: PairOptions) -> list[Line]:
    match options.form:
        case "tsv":
            return [line for path in paths for line in pair_lines(path, _lines(path))]
        case "pronunciations":
            pairs = [pair for path in paths for pair in _pronunciations(path)]
        case "parallel":
            sides = [[line.strip() for line in _lines(path)] for path in paths]
            if len(sides[0]) != len(sides[1]):
                raise UserError(
                    f"{paths[0]} has {len(sides[0]):,} lines and {paths[1]} has {len(sides[1]):,}; parallel files have"
                    " one line for each pair: line n of one belongs to line n of the other"
                )
            pairs = [RawPair(*pair) for pair in zip(*sides, strict=True)]
        case "trees":
            trees = [tree for path in paths for tree in read_trees(read_text(path), str(path))]
            pairs = [RawPair(*to_pair(tree, options.tags == "XX", options.functions)) for tree in trees]
    return [Line(number, pair) for number, pair in enumerate(pairs, start=1)]


def _without_empty(lines: Sequence[Line], paths: tuple[Path, ...], options: PairOptions) -> tuple[list[RawPair], int]:
    kept = []
    for number, pair, _ in lines:
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
    return kept, len(lines) - len(kept)


class HasSource(Protocol):
    """What can be held out: a pair, or a sentence with tags."""

    @property
    def source(self) -> str:
        """The text whose SHA-256 decides whether it is held out."""


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
    train, test, valid = _held_out(pairs, options, options.test, options.valid)
    if not train:
        raise UserError(f"{name}: every training source is also held out; give {what} with more different sources")
    return {"train": train, "valid": valid, "test": test}


def divided(
    raw: dict[str, list[OneT]], options: PairOptions, name: str, what: str = "pairs"
) -> tuple[dict[str, list[OneT]], int]:
    """Splits as they are, or one file (`all`) divided by `cut`, and how many training pairs are left out.

    Where one held-out split is missing it is held out of training by the same rule, at most a tenth of it, which a
    notice says. Raises UserError as `cut` does.
    """
    lacking = [split for split in SPLITS if split not in raw]
    if not lacking:
        return raw, 0
    if "all" in raw:
        splits = cut(raw["all"], options, name, what)
        return splits, len(raw["all"]) - sum(map(len, splits.values()))
    (split,), train = lacking, raw["train"]
    number = max(1, min(getattr(options, split), len(train) // 10))
    kept, held = _held_out(train, options, number)
    if not kept:
        raise UserError(f"{name}: no {split} split, and too few training {what} to hold one out; give more, or a split")
    how = "whose source has the smallest SHA-256" if options.split == "hash" else "that are last"
    notice(f"{name}: no {split} split: {number:,} of {len(train):,} training {what} are held out for it, those {how}")
    splits = {"train": kept, split: held, **{one: raw[one] for one in raw if one != "train"}}
    return {one: splits[one] for one in SPLITS}, len(train) - len(kept) - len(held)


def labelled_splits(
    source: str | Path,
    options: Any,
    what: str,
    needs: str,
    read: Callable[[tuple[Path, ...]], list[OneT]],
    size: Callable[[OneT], int],
    *,
    say: bool,
) -> tuple[dict[str, list[OneT]], int, dict[str, str]]:
    """Sentences with labels: the splits, how many training ones were too long, and the SHA-256 of each file.

    `options` belong to trees or tags; messages call the sentences `what`, and ask for what it `needs`. `size` is
    the words of one. With `say` a notice reports what training leaves out.

    Raises UserError where a file cannot be used, or no training sentence is short enough.
    """
    path, name = Path(source), str(source)
    if not path.exists() and not whole_files(path):
        raise UserError(f"{source}: no such file or folder; give {needs}")
    files = find_files(path, options.files)
    splits, held_out_too = divided({split: read(paths) for split, paths in files.items()}, options.files, name, what)
    train, limit = splits["train"], f"data.max_words = {options.max_words} words"
    splits["train"] = [one for one in train if size(one) <= options.max_words]
    if not splits["train"]:
        raise UserError(f"{source}: no training sentence has {limit} or fewer; raise it")
    too_long = len(train) - len(splits["train"])
    if say:
        say_left_out(name, f"training {what}", {HELD_OUT_TOO: held_out_too, f"of more than {limit}": too_long})
    return splits, too_long, {file.name: sha256_file(file) for paths in files.values() for file in paths}


def _held_out(pairs: list[OneT], options: PairOptions, *sizes: int) -> list[list[OneT]]:
    """The pairs to train with, then the held-out ones, as many as each of `sizes`; all in the order of the file."""
    order: Iterable[int] = reversed(range(len(pairs)))
    if options.split == "hash":
        order = sorted(range(len(pairs)), key=lambda index: hashlib.sha256(pairs[index].source.encode()).digest())
    first = iter(order)
    held = [[pairs[index] for index in sorted(itertools.islice(first, size))] for size in sizes]
    sources = {pair.source for some in held for pair in some}
    return [[pair for pair in pairs if pair.source not in sources], *held]


def say_left_out(source: str, what: str, reasons: Mapping[str, int]) -> None:
    """A notice of how many of `what` were left out of a corpus, by the reason; none where none was."""
    there = {reason: number for reason, number in reasons.items() if number}
    if there:
        each = [f"{number:,} {reason}" for reason, number in there.items()]
        why = ", ".join(each if len(there) > 1 else there)
        notice(f"{source}: {sum(there.values()):,} {what} left out: {why}")


HELD_OUT_TOO = "whose source is held out too"  # why `cut` leaves out a training pair


def _lines(path: Path) -> list[str]:
    text = read_text(path)
    return lines_of(text) if text.strip() else []


def _pronunciations(path: Path) -> list[RawPair]:
    """The words of a dictionary and their phonemes, comments left out; raises UserError where a line is no entry."""
    pairs = []
    for number, line in enumerate(_lines(path), start=1):
        entry = entry_of(line)
        if entry is None and line.strip() and not line.startswith(COMMENTS):
            raise UserError(f"{path}:{number}: {line!r} is no word with its phonemes, as in: cat  K AE1 T")
        if entry is not None:
            pairs.append(entry)
    return pairs


_ENTRY = re.compile(r"(\S+?)(?:\(\d+\))?(?: {2,}|\t+ *| )(\S+(?: +\S+)*)[ \t]*")


def entry_of(line: str) -> RawPair | None:
    """A word and its phonemes, of cmudict without the number of a variant; None where there are none.

    >>> entry_of("READ(2)  R EH1 D # past")
    RawPair(source='READ', target='R EH1 D')
    """
    entry = None if line.startswith(COMMENTS) else _ENTRY.fullmatch(line.partition(" #")[0])
    return entry and RawPair(entry[1], " ".join(entry[2].split()))


def whole_files(source: Path) -> tuple[Path, ...]:
    """The files that are cut as one: a file, those that a pattern finds, or all of a folder without names of splits."""
    if not source.is_dir():
        return tuple(one_text(source))
    paths = [path for path in sorted(source.rglob("*")) if not path.relative_to(source).as_posix().startswith(".")]
    parts = {part for path in paths for part in re.split("[./_-]", path.relative_to(source).as_posix())}
    return () if parts & NAMES else tuple(path for path in paths if path.is_file())


def _names(source: Path) -> list[Path]:
    folder, prefix = (source, "") if source.is_dir() else (source.parent, source.name)
    there = sorted(folder.iterdir()) if folder.is_dir() else []
    return [path for path in there if path.is_file() and path.name.startswith(prefix)]


def _no_split(source: Path, split: str, ending: str) -> UserError:
    shown = f"{split}.{ending}" if ending else f"{split}.txt"
    has = ", ".join(path.name for path in _names(source)[:8]) or "nothing"
    return UserError(
        f"{source}: no {split} split; looked for {shown}, or a file with {' or '.join(ALIASES[split])} as a part of"
        f" its name{f' and the ending .{ending}' if ending else ''}; there is {has}"
    )


def _find(source: Path, split: str, ending: str) -> Path | None:
    prefix = "" if source.is_dir() else source.name
    found = [
        path
        for path in _names(source)
        if set(re.split("[._-]", path.name.removeprefix(prefix))) & set(ALIASES[split])
        and (not ending or path.name.endswith(f".{ending}"))
    ]
    if len(found) > 1:
        raise UserError(f"{source}: two files for the {split} split, {found[0].name} and {found[1].name}; keep one")
    return found[0] if found else None
