"""elman table: the results of several runs, for a paper or a spreadsheet."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from elman.cli import progress, show
from elman.cli.groups import Common
from elman.cli.options import RunFolders, file_to_write
from elman.errors import notice
from elman.files import write_atomic

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from elman.report.comparison import Group
    from elman.tasks.text.run import TextRun


def table(
    runs: RunFolders,
    /,
    *,
    format: Literal["markdown", "latex", "csv"] = "markdown",
    paired: Annotated[bool, Parameter(negative=())] = False,
    out: Annotated[Path | None, Parameter(metavar="FILE", validator=file_to_write)] = None,
    common: Common = Common(),
) -> None:
    """A table of runs, one row for those that differ by their seed alone.

    Runs with equal seeds, and runs continued under a changed recipe, have rows of their own. Mean and sample standard
    deviation over the seeds of the validation and test figure, parameters and minutes of training. Folders that are no
    runs are left out, so `runs/*` may be given.

    Args:
        format: markdown; latex: a tabular without packages; csv: unrounded numbers
        paired: also test each row against the one of lowest test loss among those with the same test tokens, as
            `elman compare` does; of several seeds by the mean log-probability of each token
        out: the file to write (default: standard output)
    """
    from elman.report.comparison import group_runs
    from elman.report.folder import read_folders
    from elman.report.overview import facts, write

    found, others = read_folders(runs)
    show.say_left_out(others)
    rows = group_runs(found)
    if len({row.data for row in rows}) > 1:
        notice("the runs have read different data; only rows with the same data can be compared")
    if paired:
        rows = _with_tests(rows, common)
    if common.as_json:
        show.print_json([facts(row) | {"folders": [str(run.path) for run in row.runs]} for row in rows])
        return
    text = write(rows, format)
    if out is None:
        print(text, end="")
    else:
        write_atomic(out, text)
        print(f"table: {out}")


def _with_tests(rows: "Sequence[Group]", common: Common) -> "list[Group]":
    """The rows with their paired comparisons with the best of the rows that read the same tokens."""
    from elman.evaluation.statistics import compare
    from elman.report.overview import best_by_data
    from elman.tasks.text.ensemble import require_one_vocabulary

    best = best_by_data(rows)
    alone = [row.name for row in rows if row.test is None or [other.data for other in rows].count(row.data) < 2]
    if alone:
        notice(f"--paired: no other row has the same test tokens, or no test figure: {', '.join(alone)}")
    opened = {row.name: [common.open_text(run.path) for run in row.runs] for row in rows if row.name not in alone}
    for row in rows:
        if row.name in opened:
            require_one_vocabulary([opened[best[row.data].name][0], *opened[row.name]])
    scored = {name: _mean_log_probs(runs) for name, runs in opened.items()}
    return [
        dataclasses.replace(row, paired=compare(scored[row.name], scored[best[row.data].name]))
        if row.name in scored and row is not best[row.data]
        else row
        for row in rows
    ]


def _mean_log_probs(runs: "Sequence[TextRun]") -> "npt.NDArray[np.float64]":
    """The log-probability (nats) of every test token, the mean over runs, [n]."""
    import numpy as np

    from elman.tasks.text.ensemble import run_log_probs

    scored = progress.scoring(runs)
    found = [run_log_probs(run, run.split(run.corpus(), "test"), advance=advance) for run, advance in scored]
    return np.stack(found).mean(axis=0, dtype=np.float64)
