"""What pairs look like: lines with a tab, and parallel files."""

from pathlib import Path

from elman.data.kinds import SPLITS, Look, Seen, looks, parts_of

ORDER, SUFFIXES = 2, (".tsv",)

COMMENTS = (";;;", "#")
"""How lines begin that are comments in a dictionary of pronunciations."""

_NO_LANGUAGES = {".txt", ".tokens", ".raw", ".csv", ".tsv", ".npy", ".npz", ".json", ".jsonl", ".toml", ".md"}


def claim(seen: Seen) -> Look | None:
    """Lines of two columns, of many lines all but a few, in most of which both have something."""
    if _are_pronunciations(seen.rows):
        return looks("pairs", "words and their phonemes", "text", form="pronunciations")
    one_tab = sum(row.count("\t") == 1 for row in seen.rows)
    both = 2 * sum(row.strip().count("\t") == 1 for row in seen.rows) > len(seen.rows)
    if both and (seen.in_two_columns or (len(seen.rows) >= 20 and one_tab > 0.95 * len(seen.rows))):
        return looks("pairs", "lines of two columns with a tab between", "text", form="tsv")
    if is_table_of_pairs(seen):
        return looks("pairs", "a table of pairs", "text", "series", form="tsv")
    return None


def is_table_of_pairs(seen: Seen) -> bool:
    """Whether there is a table with two columns of text, whatever else it has."""
    if seen.suffix != ".csv" and not any("\t" in row for row in seen.rows):
        return False
    from elman.kinds.pairs import recognition

    return recognition.is_table_of_pairs(seen)


def _are_pronunciations(rows: list[str]) -> bool:
    """Whether lines are words and their phonemes: symbols of six letters at most."""
    entries = [row.partition(" #")[0].split()[1:] for row in rows if not row.startswith(COMMENTS)]
    if sum(max(map(len, symbols), default=0) > 6 for symbols in entries) > 0.02 * len(entries):
        return False
    from elman.kinds.pairs.recognition import are_pronunciations

    return are_pronunciations(rows)


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
