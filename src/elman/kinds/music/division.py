"""Music that comes without splits, divided into train, valid and test by rules that depend on its content alone."""

import hashlib
from collections.abc import Mapping
from pathlib import Path

from elman.errors import UserError, counted
from elman.kinds.music.pitches import Roll

Splits = dict[str, list[Roll]]


def divide(pieces: Mapping[Path, Roll]) -> tuple[Splits, str]:
    """The pieces of MIDI files, divided, and the rule in words.

    Files of equal content count once. Three or more pieces are ranked by the SHA-256 of their content: the first tenth
    (rounded, at least one) is the test split, the second the valid split, the rest the train split, each in the order
    of the names. One or two pieces are cut in time instead: of the steps of each the last tenth is the test split, the
    tenth before it the valid split.

    Raises UserError where a piece is too short to be cut.
    """
    unique = _unique(pieces)
    copies = len(pieces) - len(unique)
    left_out = f"; {counted(copies, 'copy', 'copies')} left out" if copies else ""
    if len(unique) < 3:
        parts = [_cut(pieces[file], file) for file in sorted(unique.values())]
        splits = {split: [part[split] for part in parts] for split in parts[0]}
        number = counted(len(unique), "piece")
        counts = ", ".join(f"{split} {sum(map(len, rolls)):,}" for split, rolls in splits.items())
        return splits, f"{number} cut in time, 80/10/10: steps {counts}{left_out}"
    tenth = max(1, round(len(unique) / 10))
    ranked = [unique[digest] for digest in sorted(unique)]
    chosen = {"train": ranked[2 * tenth :], "valid": ranked[tenth : 2 * tenth], "test": ranked[:tenth]}
    counts = ", ".join(f"{split} {len(found)}" for split, found in chosen.items())
    splits = {split: [pieces[file] for file in sorted(found)] for split, found in chosen.items()}
    return splits, f"{len(unique)} pieces ranked by the SHA-256 of their content, 80/10/10: {counts}{left_out}"


def hold_out(splits: dict[str, dict[Path, Roll]], split: str, folder: Path) -> str:
    """Move pieces of the train split to one that a folder has not, and return the rule in words.

    They are the first tenth (rounded, at least one) of the pieces ranked as `divide` does; copies among the training
    pieces count once. Raises UserError where there are fewer than two.
    """
    train = splits["train"]
    unique = _unique(train)
    if len(unique) < 2:
        raise UserError(f"{folder}: no folder {split}, and one piece in train, of which none can be held out; make it")
    held = {unique[digest] for digest in sorted(unique)[: max(1, round(len(unique) / 10))]}
    splits[split] = {file: train[file] for file in sorted(held)}
    splits["train"] = {file: train[file] for file in sorted({*unique.values()} - held)}
    counts = f"train {len(splits['train'])}, {split} {len(held)}"
    return f"no folder {split}: a tenth of train is held out, by the SHA-256 of the content: {counts}"


def _unique(pieces: Mapping[Path, Roll]) -> dict[str, Path]:
    """The first piece of each content, by the digest of its file, or of its frames if its file has several."""
    digests = {
        file: hashlib.sha256(file.read_bytes() if file.is_file() else roll.tobytes()).hexdigest()
        for file, roll in pieces.items()
    }
    return {digest: file for file, digest in reversed(digests.items())}


def _cut(roll: Roll, file: Path) -> dict[str, Roll]:
    if len(roll) < 3:
        raise UserError(f"{file}: {counted(len(roll), 'step')}, too few to be cut in three; give more music")
    tenth = max(1, round(len(roll) / 10))
    return {"train": roll[: -2 * tenth], "valid": roll[-2 * tenth : -tenth], "test": roll[-tenth:]}
