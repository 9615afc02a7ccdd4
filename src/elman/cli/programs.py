"""elman data programs: programs and their results as pairs."""

from pathlib import Path
from statistics import fmean
from typing import Annotated, Literal

from cyclopts import Parameter

from elman.cli import show
from elman.cli.options import AsJson, Natural, Positive, writable
from elman.data.programs import Wish, write_pairs
from elman.errors import UserError
from elman.files import require_own

_DEFAULT = Wish()


def programs(
    out: Annotated[Path, Parameter(validator=writable)],
    /,
    *,
    task: Literal["execute", "add", "copy"] = _DEFAULT.task,
    length: Positive = _DEFAULT.length,
    nesting: Positive | None = None,
    strategy: Literal["baseline", "naive", "mix", "combined"] = _DEFAULT.strategy,
    train: Positive = _DEFAULT.train,
    valid: Positive = _DEFAULT.valid,
    test: Positive = _DEFAULT.test,
    doubled: bool = False,
    seed: Natural = _DEFAULT.seed,
    as_json: AsJson = False,
) -> None:
    """Programs and what they print, as pairs (Zaremba & Sutskever 2014).

    Writes train.tsv, valid.tsv and test.tsv, a line `program TAB result` each, with ; between the lines of a program. A
    program belongs to one split, by its hash.

    Args:
        out: the folder to write; it must not hold pairs yet
        task: execute: programs; add: sums of two numbers; copy: digits
        length: numbers are random up to 10^length; in sums and copies they have this number of digits
        nesting: operations of a program, up to 10 (default: 2)
        strategy: difficulty of training programs, in the order of the file; baseline: length and nesting;
            naive: rising to them; mix: random up to them; combined: naive and mix
        train: training pairs
        valid: validation pairs
        test: test pairs
        doubled: write every source twice, with ; between
        seed: seed of the draw
    """
    if out.is_file() or (out / "train.tsv").exists():
        raise UserError(f"{out} is a file or holds pairs already; choose another folder")
    require_own(out)
    wish = Wish(task, length, nesting or (_DEFAULT.nesting if task == "execute" else 1))
    wish = wish._replace(strategy=strategy, train=train, valid=valid, test=test, doubled=doubled, seed=seed)
    found = write_pairs(wish, out)
    rows = [
        {
            "split": split,
            "pairs": len(pairs),
            "different": len({source for source, _ in pairs}),
            "longest_source": max(len(source) for source, _ in pairs),
            "mean_source": round(fmean(len(source) for source, _ in pairs), 1),
            "longest_target": max(len(target) for _, target in pairs),
        }
        for split, pairs in found.items()
    ]
    header = [name.replace("_", " ") for name in rows[0]]
    cells = [[f"{cell:,}" if isinstance(cell, int) else str(cell) for cell in row.values()] for row in rows]
    show.print_result(as_json, {"folder": str(out), **wish._asdict(), "splits": rows}, (str(out), header, cells))
