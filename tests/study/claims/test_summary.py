"""The summary of claims: p-values and their adjustment, the page, Markdown with drawings, the command."""

import dataclasses
import json
import re
import shlex
import shutil
import xml.etree.ElementTree as ElementTree
from itertools import pairwise

import msgspec
import numpy as np
import pytest
from scipy.stats import ttest_rel

from elman.cli import main
from elman.config.toml import find, load_recipe
from elman.errors import UserError
from elman.study import claims as registry
from elman.study.claim import Arm, Computation, Source
from elman.study.comparison import lower
from elman.study.figures import drawings
from elman.study.record import ArmRecord, FigureRecord, judged_again, read_record, rejudged, write_record
from elman.study.summary import summarise
from elman.study.summary_files import write_markdown
from support.claims import ERRORS, Error, claim

OPEN = dataclasses.replace(ERRORS, cost="error", course=("hours", "error so far"))
TOYS = (
    claim("toy-clear", Error(1.0), Error(3.0, 0.11)),
    claim("toy-opposite", Error(3.0, 0.12), Error(1.0)),
    claim("toy-open", Error(1.0, 0.3), Error(1.4, 0.05), measure=OPEN),
    claim("toy-absent", Error(1.0), Error(2.0)),
    claim("toy-of-paper", Error(1.0), Error(2.0), arms=(Arm("a", paper=Source("x")), Arm("b", paper=Source("x")))),
    claim("toy-of-data", Error(1.0), Error(2.0), data="a file"),
)


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """The results of three of the toys."""
    folder = tmp_path_factory.mktemp("results")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(registry, "CLAIMS", {one.name: one for one in TOYS})
        for one in TOYS[:3]:
            assert main(["reproduce", one.name, "--out", str(folder), "--threads", "1"]) == 0
    return folder


@pytest.fixture
def out(results, tmp_path, monkeypatch):
    """A copy of them, beside a registry of the toys alone."""
    monkeypatch.setattr(registry, "CLAIMS", {one.name: one for one in TOYS})
    return shutil.copytree(results, tmp_path / "out")


def comparison(made, *changes):
    """The record with the comparisons changed in turn."""
    rows = [msgspec.structs.replace(old, **new) for old, new in zip(made.comparisons, changes, strict=True)]
    return msgspec.structs.replace(made, comparisons=rows)


@pytest.mark.slow
def test_p_values_of_claims(out):
    """The largest where all must hold; that of a failing comparison, times the number of comparisons tested."""
    holds, fails, undecided = (read_record(out / f"{one.name}.json") for one in TOYS[:3])
    assert [one.answer for one in (holds, fails, undecided)] == ["holds", "does not hold", "undecided"]
    assert holds.p_value == holds.comparisons[0].p_value < 0.05
    assert fails.p_value == fails.comparisons[0].p_value < 0.05
    assert undecided.p_value > 0.05
    assert [rejudged(one) for one in (holds, fails, undecided)] == [holds, fails, undecided], "by the same rule"


def ratio(answer, p_value):
    return {"answer": answer, "judgement": {"answer": answer, "mean": 1.0, "deviation": None, "low": None,
            "high": None, "p_value": p_value}}  # fmt: skip


@pytest.mark.slow
def test_one_rule_gives_verdict_and_p_value_of_stored_comparisons(out):
    """No claim fails at .05 or more."""
    made = read_record(out / "toy-clear.json")

    def again(*changes):
        found = rejudged(comparison(made, *changes))
        return found.answer, found.p_value

    bound = {"judgement": None, "p_value": None}
    assert again(ratio("holds", 0.01), ratio("holds", 0.03)) == ("holds", 0.03)
    assert again(ratio("does not hold", 0.02), ratio("holds", 0.001)) == ("does not hold", pytest.approx(0.04))
    assert again(ratio("does not hold", 0.03), ratio("holds", 0.001)) == ("undecided", pytest.approx(0.06))
    assert again(bound, bound) == ("holds", None), "bounds have none"
    assert again(ratio("does not hold", 0.02), {**bound, "answer": "does not hold"}) == ("does not hold", None)
    assert again(ratio("undecided", None), ratio("holds", 0.01)) == ("undecided", None), "not tested"


def test_p_values_are_adjusted_for_the_number_of_claims(out):
    summary = summarise(out, TOYS, "small")
    assert [one.name for one in summary.records] == ["toy-clear", "toy-opposite", "toy-open"]
    assert [one.name for one in summary.missing] == ["toy-absent", "toy-of-data"], "not that of another scale"
    small, middle, large = sorted(summary.p_values.values())
    assert sorted(summary.adjusted.values()) == pytest.approx([3 * small, max(3 * small, 2 * middle), large])
    assert summary.tally == "holds: 1, does not hold: 1, undecided: 1, not run: 2"
    assert "level: 3; if no difference existed, 0.15 of them or fewer" in summary.chance
    assert "Decided: 2, and 2 after adjustment" in summary.chance


def test_what_the_adjustment_takes_away_is_named(out):
    made = read_record(out / "toy-clear.json")
    weaker = {"judgement": {**made.comparisons[0].judgement, "p_value": 0.03}}
    write_record(out / "toy-clear.json", comparison(made, weaker, {}))
    summary = summarise(out, TOYS, "small")
    assert summary.adjusted["toy-clear"] == pytest.approx(0.06)
    assert summary.chance.endswith("Decided: 2, and 1 after adjustment for the number of claims by Holm's method"
                                   " (not toy-clear).")  # fmt: skip


def test_a_run_of_several_claims_counts_once(out):
    for name in ("toy-clear", "toy-open"):
        made = read_record(out / f"{name}.json")
        arm = msgspec.structs.replace(made.arms["a"], runs=["runs/shared", f"runs/{name}"], minutes=[2.0, 0.5])
        arms = {**made.arms, "a": arm}
        write_record(out / f"{name}.json", msgspec.structs.replace(made, arms=arms, minutes=2.5))
    assert summarise(out, TOYS, "small").minutes == 3.0


def test_of_many_arms_the_table_has_the_extremes_and_the_one_that_is_compared_with_all(out, tmp_path):
    made = read_record(out / "toy-clear.json")
    means = {"LSTM": 5.0, "mLSTM": 4.0, **{f"cell {index}": 3.0 + index for index in range(7)}}
    arms = {
        label: ArmRecord(None, {"error": FigureRecord(mean, 0.0, [mean, mean, mean])}) for label, mean in means.items()
    }
    ratios = [
        msgspec.structs.replace(
            made.comparisons[0], statement=f"error of LSTM is no higher than of {label} (within 1%)"
        )
        for label in means
        if label != "LSTM"
    ]
    path = out / "toy-clear.json"
    write_record(path, msgspec.structs.replace(made, arms=arms, comparisons=ratios))
    text = write_markdown(tmp_path / "claims.md", summarise(out, TOYS[:1], "small")).read_text()
    assert "|  | LSTM: 5 ± 0; cell 0: 3 ± 0; cell 6: 9 ± 0; 6 between (mean error) |" in text
    del arms["cell 5"]
    write_record(path, msgspec.structs.replace(made, arms=arms, comparisons=ratios))
    text = write_markdown(tmp_path / "claims.md", summarise(out, TOYS[:1], "small")).read_text()
    assert "cell 4: 7 ± 0; cell 6: 9 ± 0 (mean error) |" in text


@pytest.mark.slow
def test_arms_of_a_series_are_joined_where_figures_are_drawn_against_costs(tmp_path, monkeypatch):
    """A network in three sizes, given in another order than that of its costs, and one in a single size."""
    sizes = (("two", 2.0, "lstm"), ("three", 1.5, "lstm"), ("one", 3.0, "lstm"), ("gru", 2.5, None))
    arms = tuple(Arm(name, Computation(Error(error), 0.1), series=series) for name, error, series in sizes)
    made = claim(
        "toy-sizes", Error(1.0), Error(1.0), arms=arms, comparisons=(lower("error", "two", "one"),), published={},
        measure=dataclasses.replace(OPEN, cost="error", course=None),
    )  # fmt: skip
    monkeypatch.setattr(registry, "CLAIMS", {made.name: made})
    assert main(["reproduce", made.name, "--out", str(tmp_path), "--threads", "1"]) == 0
    found = read_record(tmp_path / "toy-sizes.json")
    assert [arm.series for arm in found.arms.values()] == ["lstm", "lstm", "lstm", None]
    (drawing,) = drawings(found)
    axes = drawing.figure.axes[0]
    assert [text.get_text() for text in axes.texts] == ["lstm", "gru"]
    assert [[round(x, 6) for x in line.get_xdata()] for line in axes.lines] == [[3.1], [1.6, 2.1, 3.1], [2.6]]
    text = write_markdown(tmp_path / "claims.md", summarise(tmp_path, [made], "small")).read_text()
    assert "More drawings: [toy-sizes-cost](images/claims/toy-sizes-cost.svg)." in text


@pytest.mark.slow
def test_the_command_writes_the_page_and_markdown(out, tmp_path, capsys, drawn):
    capsys.readouterr()
    into = tmp_path / "docs" / "claims.md"
    assert main(["reproduce", "summary", "--out", str(out), "--into", str(into)]) == 0
    told = capsys.readouterr().out
    assert told.splitlines()[-1] == "holds: 1, does not hold: 1, undecided: 1, not run: 2"
    page, text = (out / "index.html").read_text(), into.read_text()
    assert "http://" not in page.replace("http://www.w3.org", "")
    for one in TOYS[:3]:
        assert f'<section id="{one.name}">' in page
        assert f'<a href="#{one.name}">{one.name}</a>' in page
        assert f'<a href="{one.name}.html">' in page
        assert f"![mean error by arm, a dot per seed](images/claims/{one.name}.svg)" in text
        drawing = (into.parent / "images" / "claims" / f"{one.name}.svg").read_text()
        assert ElementTree.fromstring(drawing.encode()).get("width")
        assert "var(--" not in drawing
        assert f"## {one.name}\n" in text
    assert text.count("-cost.svg)") == 1, "of the claim that names a cost"
    assert "[toy-open-cost](images/claims/toy-open-cost.svg)" in text
    assert ElementTree.parse(into.parent / "images" / "claims" / "toy-open-cost.svg").getroot().get("width")
    assert text.count("-course.svg)") == 1, "of the claim that names a course"
    assert "[toy-open-course](images/claims/toy-open-course.svg)" in text
    assert ElementTree.parse(into.parent / "images" / "claims" / "toy-open-course.svg").getroot().get("width")
    assert "In the course of training" in (out / "toy-open.html").read_text()
    assert "In the course of training" not in (out / "toy-clear.html").read_text()
    assert "What it costs" in (out / "toy-open.html").read_text()
    assert "What it costs" not in (out / "toy-clear.html").read_text()
    assert "Not run: `toy-absent`, `toy-of-data`." in text
    assert "| [toy-clear](#toy-clear): the error of a is lower (toy-clear) (" in text
    assert re.search(r"\| a: 1\.\d+ ± 0\.1000; b: 3\.\d+ ± [\d.]+ \(mean error\) \| holds \|", text)
    assert "&lt;unk> \\| 3" in text
    assert "1.1000 ± 0.1000" in text
    assert "1.1000 ± 0.1000" in page
    assert str(tmp_path) not in text, "nothing of where the results are"


@pytest.mark.slow
def test_equal_results_are_written_alike(out, tmp_path):
    files = []
    for place in ("one", "two"):
        into = tmp_path / place / "claims.md"
        assert main(["reproduce", "summary", "--out", str(out), "--into", str(into)]) == 0
        files.append([path.read_bytes() for path in sorted(into.parent.rglob("*.*"))])
    assert files[0] == files[1]


@pytest.mark.slow
def test_claims_without_a_new_result_are_kept_in_the_file(out, tmp_path, capsys):
    """Writing the same claims at once or one after another leaves the same file."""
    command = ["reproduce", "summary", "--out", str(out), "--into"]
    whole, parts = tmp_path / "whole" / "claims.md", tmp_path / "parts" / "claims.md"
    assert main([*command, str(whole)]) == 0
    aside = out / "toy-open.json"
    aside.rename(tmp_path / "later.json")
    assert main([*command, str(parts)]) == 0
    assert "## toy-open" not in parts.read_text()
    assert "not run: 3" in parts.read_text()
    (tmp_path / "later.json").rename(aside)
    for name in ("toy-clear", "toy-opposite"):
        (out / f"{name}.json").rename(tmp_path / f"{name}.json")
    capsys.readouterr()
    assert main([*command, str(parts)]) == 0
    assert "2 claims have no new result and are kept as they stand" in capsys.readouterr().err
    total = re.search(r"\n\nThe trainings took .* counts once\.", whole.read_text())
    assert parts.read_text() == whole.read_text().replace(total[0], "")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("# My notes\n", "not a summary of claims at the scale small; choose another file, or remove it"),
        (
            "# Published claims\n\nWritten by `elman reproduce summary` from the results at quick scale: holds: 1.\n\n"
            "## Tests, seeds and times\n",
            "not a summary of claims at the scale small",
        ),
        (
            "# Published claims\n\nWritten by `elman reproduce summary` from the results at small scale: holds: 1.\n\n"
            "## Tests, seeds and times\n\n## toy-absent\n",
            "its claims cannot be read",
        ),
    ],
)
def test_another_file_is_not_overwritten(text, message, out, tmp_path, capsys):
    into = tmp_path / "notes.md"
    into.write_text(text)
    assert main(["reproduce", "summary", "--out", str(out), "--into", str(into)]) == 2
    line = capsys.readouterr().err
    assert "is there already, and is not a file as elman has written it" in line or message in line
    assert into.read_text() == text


def test_the_facts_are_printed_as_json(out, capsys):
    capsys.readouterr()
    assert main(["reproduce", "summary", "--out", str(out), "--json"]) == 0
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)}
    assert rows["toy-clear"]["verdict"] == "holds"
    assert rows["toy-clear"]["p_holm"] >= rows["toy-clear"]["p"]
    assert rows["toy-absent"] == {"name": "toy-absent", "claim": TOYS[3].sentence, "verdict": "not run"}


def test_all_ends_with_the_index(tmp_path, monkeypatch, capsys):
    named = [dataclasses.replace(TOYS[0], name="toy-first"), *TOYS[4:]]
    monkeypatch.setattr(registry, "CLAIMS", {one.name: one for one in named})
    assert main(["reproduce", "all", "--out", str(tmp_path), "--quick"]) == 0
    told = capsys.readouterr()
    assert told.out.splitlines()[-1] == "toy-first: indicates that it holds"
    assert f"summary: {tmp_path / 'index-quick.html'}" in told.err
    page = (tmp_path / "index-quick.html").read_text()
    assert "indicates that it holds: 1" in page or "Indicates that it holds: 1" in page
    assert "how much trainings differ by seed is not in it" in page


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["summary", "--out", "nowhere"],
            "nowhere: no claim has a result at the scale small; run `elman reproduce all --scale small",
        ),
        (["rank-bound", "--into", "claims.md"], "`elman reproduce rank-bound` does not read --into"),
        (["summary", "--into", "."], "is a folder; give the name of a file"),
        (["summary", "rank-bound", "--into", "claims.md"], "--into writes all claims; leave out the names"),
        (["summary", "rank-bound", "--out", "nowhere"], "rank-bound.json"),
        (["rank-bound", "summary"], "`elman reproduce summary` takes no further names"),
        (["list", "unknown"], "there is no experiment unknown"),
    ],
)
def test_mistakes_are_reported_in_one_line(arguments, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["reproduce", *arguments]) == 2
    told = capsys.readouterr().err.strip().splitlines()
    assert len(told) == 1
    assert message in told[0]


def test_a_claim_is_followed_to_its_figures_which_judge_it_again(out, capsys):
    """A figure that was changed by hand gives another p-value than the one that stands beside it."""
    command = ["reproduce", "summary", "toy-clear", "toy-open", "--out", str(out)]
    assert main(command) == 0
    told = capsys.readouterr().out
    assert "before training" in told
    assert "toy-clear: holds, p = 0.0" in told
    assert "toy-open: undecided" in told
    assert not (out / "index.html").exists()
    assert main([*command, "--json"]) == 0
    first, second = json.loads(capsys.readouterr().out)
    made = read_record(out / "toy-clear.json")
    a, b = ([seed["error"] for seed in first["figures"][name]] for name in "ab")
    again = ttest_rel(np.log(a), np.log(b)).pvalue
    row, bound = first["comparisons"]
    assert (bound["p"], bound["p_again"], bound["answer_again"]) == (None, None, "holds")
    assert row["p"] == pytest.approx(again) == row["p_again"]
    assert row["answer_again"] == "holds"
    assert first["plans"][-1]["digest"] == made.plans[-1].digest
    assert second["comparisons"][0]["answer_again"] == "undecided"

    changed = json.loads((out / "toy-clear.json").read_text())
    changed["arms"]["a"]["figures"]["error"]["by_seed"][0] = 9.0
    (out / "toy-clear.json").write_text(json.dumps(changed))
    assert main(["reproduce", "summary", "toy-clear", "--out", str(out), "--json"]) == 0
    row, _ = json.loads(capsys.readouterr().out)[0]["comparisons"]
    assert row["answer"] == "holds"
    assert row["answer_again"] == "undecided"


def test_a_ratio_is_judged_again_by_its_mean_and_deviation_where_no_figure_by_seed_was_kept(out):
    made = read_record(out / "toy-open.json")
    for arm in made.arms.values():
        arm.figures["error"].by_seed.clear()
    one, bound = judged_again(made, TOYS[2])
    assert one.by == "mean, deviation and number"
    assert one.p_again == pytest.approx(one.p)
    assert (bound.by, bound.p_again, bound.answer_again) == ("not kept", None, None)


def test_seeds_that_are_not_judged_do_not_judge_again(out):
    made = read_record(out / "toy-clear.json")
    plan = msgspec.structs.replace(made.plans[-1], fresh=made.seeds[1:])
    one, _ = judged_again(msgspec.structs.replace(made, plans=[plan]), TOYS[0])
    values = [made.arms[name].figures["error"].values[1:] for name in "ab"]
    assert one.p_again == pytest.approx(ttest_rel(*map(np.log, values)).pvalue)


@pytest.mark.parametrize("name", ["kneser-ney", "mos-components", "gru-optimiser", "echo-state"])
def test_the_list_of_a_claim_has_commands_that_make_its_arms(name, capsys):
    assert main(["reproduce", "list", name, "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)
    claim = registry.CLAIMS[name]
    lines = dict(line.split(": ", 1) for line in found["commands"] if not line.startswith(" "))
    assert list(lines) == [arm.label for arm in claim.arms]
    for arm in claim.arms:
        if isinstance(arm.small, Computation):
            assert "computed" in lines[arm.label]
            continue
        words = shlex.split(lines[arm.label])
        settings = [word for before, word in pairwise(words) if before == "--set"]
        made = load_recipe(find(words[2].removeprefix("recipes/")), [*settings[:-1], "seed=3"])
        assert settings[-1] == "seed=SEED"
        assert made == arm.small.at(3)
    tried = [arm for arm in claim.arms if isinstance(arm.small, Source) and arm.small.grid is not None]
    assert len(tried) == sum(line.startswith("  with the best") for line in found["commands"])


def test_a_record_that_cannot_be_read_is_reported_and_left_out(out, capsys):
    (out / "toy-open.json").write_text("[]")
    summary = summarise(out, TOYS, "small")
    assert [one.name for one in summary.records] == ["toy-clear", "toy-opposite"]
    assert [claim.name for claim in summary.missing] == ["toy-open", "toy-absent", "toy-of-data"]
    assert "toy-open.json: not the record of a claim" in capsys.readouterr().err
    for name in ("toy-clear", "toy-opposite"):
        (out / f"{name}.json").unlink()
    with pytest.raises(UserError, match="no claim has a result at the scale small"):
        summarise(out, TOYS, "small")
