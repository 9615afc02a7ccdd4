"""elman reproduce published: the papers' figures beside what networks of their size reached."""

from pathlib import Path

from elman.cli import progress, show
from elman.errors import UserError, command


def published(words: tuple[str, ...], out: Path, into: Path | None, *, as_json: bool) -> int:
    """List figures and what was reached, of recipes with all of these words; write them `into` a file, too."""
    from elman.study import published as figures

    with progress.counting("reading recipes and runs"):
        known = figures.targets(words)
        if not known:
            raise UserError(f"no recipe with a published figure has {' and '.join(words)} in its path, title or source")
        records = figures.merged([*figures.records_of(figures.RECORDS), *figures.trained_in(out, known)])
        rows = figures.rows_of(known, records)
        cells = [[name, *rest] for name, _, *rest in (figures.cells(row, brief=True) for row in rows)]
    notes = [figures.tally(rows), f"train one: {command('train', known[0].path, '--data', 'FOLDER')}"]
    if into is not None:
        notes.append(f"written: {figures.write(into, rows, records)}")
    header = ["recipe", "published valid, test", "ours: valid, test", "training", "verdict"]
    show.print_result(as_json, [row.facts for row in rows], ("Published figures", header, cells), notes=notes)
    return 0
