"""What pairs look like: lines with a tab, and parallel files."""

from pathlib import Path

from elman.data.kinds import SPLITS, Look, Seen, looks, parts_of
from elman.data.tables import rows_of
from elman.errors import UserError
from elman.kinds.pairs.files import COMMENTS, entry_of
from elman.kinds.pairs.table import columns_of, pairs_mark

ORDER = 2

_NO_LANGUAGES = {".txt", ".tokens", ".raw", ".csv", ".tsv", ".npy", ".npz", ".json", ".jsonl", ".toml", ".md"}


def claim(seen: Seen) -> Look | None:
    """Lines of two columns, of many lines all but a few."""
    if _are_pronunciations(seen.rows):
        return looks("pairs", "words and their phonemes", "text", form="pronunciations")
    one_tab = sum(row.count("\t") == 1 for row in seen.rows)
    if seen.in_two_columns or (len(seen.rows) >= 20 and one_tab > 0.95 * len(seen.rows)):
        return looks("pairs", "lines of two columns with a tab between", "text", form="tsv")
    if is_table_of_pairs(seen):
        return looks("pairs", "a table of pairs", "text", "series", form="tsv")
    return None


def is_table_of_pairs(seen: Seen) -> bool:
    """Whether there is a table with two columns of text, whatever else it has."""
    mark = pairs_mark(seen.suffix, seen.rows)
    if mark is None:
        return False
    try:
        rows = rows_of("\n".join(seen.rows), "", delimiter_of=lambda _: mark, cut=True)
    except UserError:
        return False
    return columns_of(rows) is not None


def _are_pronunciations(rows: list[str]) -> bool:
    """Whether lines are words and their phonemes: few symbols, each of many words, about as many as letters.

    Where one blank divides them, as in cmudict of today, most words must differ and have letters.
    """
    divided = sum("  " in row or "\t" in row or row.startswith(COMMENTS) for row in rows) >= 0.98 * len(rows)
    entries = [entry_of(row) for row in rows if not row.startswith(COMMENTS)]
    found = [(entry.source, entry.target.split()) for entry in entries if entry]
    if len(found) < 20 or len(found) < 0.98 * len(entries):
        return False
    symbols, letters = [symbol for _, some in found for symbol in some], sum(len(word) for word, _ in found)
    several = sum(len(some) > 1 for _, some in found) > 0.8 * len(found)
    words = {word for word, _ in found}
    few = len(set(symbols)) <= max(20, min(150, len(symbols) // 6)) and len(words) > len(found) * (
        0.5 if divided else 0.8
    )
    if not divided and sum(any(map(str.isalpha, word)) for word in words) < 0.98 * len(words):
        return False
    return several and few and 0.4 * letters <= len(symbols) <= 1.5 * letters and max(map(len, symbols)) <= 6


def reads(seen: Seen, found: Look) -> bool:
    """Whether a text has tabs."""
    return found.kind == "text" and any("\t" in row for row in seen.rows)


def claim_folder(source: Path) -> Look | None:
    """Two parallel files, or two for each split."""
    if languages := parallel_languages(source):
        what = f"two parallel files for each split, in the languages {' and '.join(languages)}"
        return looks("pairs", what, "text", languages=languages, form="parallel")
    return None


def parallel_languages(source: Path) -> tuple[str, str] | None:
    """The endings of two parallel files, or of two for each split, in a folder or beside a beginning of their names.

    They are sorted by name: which of them is the source cannot be known.
    """
    folder, prefix = (source, "") if source.is_dir() else (source.parent, f"{source.name}.")
    splits: dict[str, set[str]] = {}
    for path in folder.iterdir() if folder.is_dir() else ():
        found = parts_of(path.name.removeprefix(prefix)) & SPLITS
        named = path.is_file() and path.name.startswith(prefix) and bool(found or prefix)
        if named and path.suffix not in ("", *_NO_LANGUAGES) and path.suffix[1:] not in SPLITS:
            splits.setdefault(path.suffix[1:], set()).update(found or {"all"})
    if len(splits) != 2:
        return None
    one, other = sorted(splits)
    return (one, other) if splits[one] == splits[other] else None
