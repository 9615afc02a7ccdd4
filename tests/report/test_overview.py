"""The table of several runs: groups, formats, what is left out, the paired test."""

import csv
import io
import json
import math
import re
import statistics

import pytest

from elman.cli import main
from elman.report.comparison import group_runs
from elman.report.folder import read_folders
from elman.report.overview import write
from support.commands import output, refusal, trained

TITLE = "A & B_1 100% #1 {x} $y^2~ | `code` \\ <b>"


@pytest.fixture
def rows(make_run):
    paths = [make_run(f"run-{seed}", seed=seed, title=TITLE, epochs=3) for seed in (1, 2, 3)]
    return group_runs(read_folders([*paths, make_run("other", title="other", epochs=3, floor=80.0)])[0])


def test_seeds_are_one_row_with_mean_and_deviation(rows):
    first, other = rows
    assert (len(first.runs), len(other.runs), other.test.deviation) == (3, 1, None)
    losses = [run.result("test").perplexity for run in first.runs]
    assert first.test.mean == pytest.approx(statistics.mean(losses))
    assert first.test.deviation == pytest.approx(statistics.stdev(losses))
    assert first.runs[0].parameters == 1007
    assert first.minutes.mean == pytest.approx(first.runs[0].metrics.seconds / 60)


def test_a_figure_states_of_how_many_runs_it_is(make_run):
    paths = [make_run(f"run-{seed}", seed=seed, epochs=3) for seed in (1, 2, 3)]
    (paths[2] / "results.json").unlink()
    rows = group_runs(read_folders(paths)[0])
    (facts,) = csv.DictReader(io.StringIO(write(rows, "csv")))
    assert (facts["runs"], facts["valid_runs"], facts["test_runs"]) == ("3", "3", "2")
    cells = write(rows, "markdown").splitlines()[2].split(" | ")
    assert (cells[2].endswith(" (2 of 3)"), cells[3].endswith(" (2 of 3)")) == (False, True)


@pytest.mark.slow
@pytest.mark.parametrize(("nll", "shown"), [(None, "–"), (1e6, "1.01e+304")])
def test_a_loss_that_is_null_or_vast_is_shown_in_short(make_run, tmp_path, nll, shown):
    path = make_run("run", epochs=3)
    rows = [row | {"nll": nll, "perplexity": nll and 1e304} for row in json.loads((path / "results.json").read_text())]
    (path / "results.json").write_text(json.dumps(rows))
    assert write(group_runs(read_folders([path])[0]), "markdown").splitlines()[2].split(" | ")[2:4] == [shown, shown]
    assert main(["report", str(path), "--out", str(tmp_path / "page.html")]) == 0


def test_csv_reads_back_unrounded(rows):
    first, other = csv.DictReader(io.StringIO(write(rows, "csv")))
    assert (first["name"], first["runs"], first["measure"]) == (TITLE, "3", "perplexity")
    assert float(first["test_mean"]) == rows[0].test.mean
    assert (other["test_sd"], other["paired_p_value"]) == ("", "")


def test_markdown_cells_stay_cells(rows):
    lines = write(rows, "markdown").splitlines()
    cells = [re.split(r"(?<!\\)\|", line.replace("\\\\", ""))[1:-1] for line in lines]
    assert {len(row) for row in cells} == {6}
    assert "\\| \\`code\\` \\\\ \\<b\\>" in lines[2]
    assert f"{rows[0].test.mean:.2f} ± {rows[0].test.deviation:.2f}" in lines[2]


def test_latex_is_escaped(rows):
    text = write(rows, "latex")
    name = text.splitlines()[4].split(" & 3 & ")[0]
    assert name == (
        r"A \& B\_1 100\% \#1 \{x\} \$y\textasciicircum{}2\textasciitilde{}"
        r" \textbar{} `code` \textbackslash{} \textless{}b\textgreater{}"
    )
    assert r" $\pm$ " in text
    assert text.startswith("\\begin{tabular}{lrrrrr}\n\\hline\n")
    assert text.count(r" \\" + "\n") == 3


@pytest.mark.slow
@pytest.mark.parametrize("command", ["table", "report"])
def test_what_is_no_run_is_left_out_and_said(make_run, tmp_path, capsys, command):
    run, page, empty = make_run("run", epochs=3), tmp_path / "page.html", tmp_path / "empty"
    page.write_text("")
    empty.mkdir()
    assert main([command, str(run), str(page), str(empty), "--out", str(tmp_path / "out.html")]) == 0
    assert capsys.readouterr().err == f"elman: left out, no run with metrics: {page}, {empty}\n"


def test_no_run_at_all_is_refused(tmp_path, capsys):
    page, empty = tmp_path / "page.html", tmp_path / "empty"
    page.write_text("")
    empty.mkdir()
    assert refusal(capsys, "table", empty, page) == (
        f"elman: no run among {empty}, {page}; give folders that `elman train --out` wrote"
    )
    assert refusal(capsys, "table", empty).startswith(f"elman: {empty} is not a run folder")


def test_rows_with_the_same_tokens_are_tested(capsys, tmp_path_factory):
    run = trained("words", tmp_path_factory)
    other = tmp_path_factory.mktemp("runs") / "other"
    other.mkdir()
    for file in run.iterdir():
        if file.is_file():
            (other / file.name).write_bytes(file.read_bytes())
    recipe = (run / "recipe.toml").read_text()
    (other / "recipe.toml").write_text(recipe.replace("log_every = 5", "log_every = 6"))
    results = json.loads((other / "results.json").read_text())
    for row in results:
        row["perplexity"] = math.exp(row["nll"] + 1)
    (other / "results.json").write_text(json.dumps(results))
    best, worse = json.loads(output(capsys, "table", run, other, "--paired", "--json"))
    assert (best["paired_p_value"], worse["paired_p_value"], worse["paired_difference"]) == (None, 1.0, 0.0)


def test_runs_of_a_sweep_are_named_by_what_differs(make_run):
    paths = [make_run(f"trial-{drop}", title="LSTM", weight_drop=drop, epochs=3, floor=80.0) for drop in (0.2, 0.5)]
    names = [row.name for row in group_runs(read_folders(paths)[0])]
    assert names == ["LSTM (weight_drop 0.2)", "LSTM (weight_drop 0.5)"]
