"""elman reproduce published: figures of recipes beside the runs by them, with verdicts, records and pages."""

import json
import math
import os

import msgspec
import pytest

from elman.config.data import reporting_of
from elman.config.recipe import Expected
from elman.config.record import TOKENS
from elman.config.toml import dump_recipe
from elman.evaluation.spread import Spread
from elman.study import published
from elman.study.published import Target, Trained, merged, rows_of, verdict
from elman.tasks.experiment import Experiment
from support import text_runs
from support.commands import output, refusal

PATH = "recipes/mine/toy.toml"
EXPECTED = Expected(source="a table", valid=80.0, test=75.0, fine_tuned_test=70.0, dynamic_test=60.0)


def target(**expected):
    figures = msgspec.structs.replace(EXPECTED, **expected)
    data = msgspec.structs.replace(text_runs.recipe().data, corpus="ptb")
    recipe = msgspec.structs.replace(text_runs.recipe(), data=data, expected=figures)
    return Target(PATH, recipe, figures)


def trained(test, seed=1, **more):
    facts = {
        "recipe": PATH, "seed": seed, "text": "PTB", "digest": "d", "epochs": 2.0, "planned": 2, "finished": True,
        "losses": {"valid": math.log(81), "test": math.log(test)}, "seconds": 60.0, "machine": "a chip, 1 thread",
        "elman": "1", "started": "today",
    }  # fmt: skip
    return Trained(**(facts | more))


def ours(value):
    return Spread(value, None, 1)


def test_a_figure_is_met_within_half_a_perplexity_or_one_per_cent():
    words = {20.0: {19.4: "beaten by 0.60", 19.6: "met", 20.5: "met", 20.6: "missed by 0.60"}}
    words[200.0] = {197.9: "beaten by 2.10", 198.1: "met", 201.9: "met", 202.1: "missed by 2.10"}
    for figure, cases in words.items():
        assert {value: verdict(figure, ours(value), TOKENS) for value in cases} == cases
    notes = reporting_of("music")
    assert [verdict(3.5, ours(value), notes) for value in (3.46, 3.47, 3.53, 3.54)] == [
        "beaten by 0.04", "met", "met", "missed by 0.04",
    ]  # fmt: skip
    assert verdict(None, ours(3.0), notes) == verdict(3.0, None, notes) == "not measured"


def test_rows_are_means_over_seeds_of_equal_settings_and_data():
    runs = [trained(74.0, 1), trained(78.0, 2), trained(60.0, 1, changed=("lr = 3.0",)), trained(50.0, 1, digest="e")]
    plain, of_other_data, changed = rows_of([target(dynamic_test=None)], runs)
    assert plain.ours["test"] == Spread(pytest.approx(76.0), pytest.approx(math.sqrt(8)), 2)
    assert plain.ours["valid"].mean == pytest.approx(81.0)
    assert plain.verdict == "missed by 1.00"
    assert (of_other_data.ours["test"].count, changed.ours["test"].mean) == (1, pytest.approx(60.0))
    assert changed.verdict == "beaten by 15.00 with other settings"
    assert "lr = 3.0" in published.cells(changed)[4]
    assert "2 epochs" in published.cells(plain)[4]
    assert "2 seeds" in published.cells(plain)[4]


def test_fine_tuned_runs_are_compared_with_fine_tuned_figures():
    (row,) = rows_of([target(dynamic_test=None)], [trained(70.2, fine_tuned=True)])
    assert (row.published["test"], row.verdict) == (70.0, "met")
    (row,) = rows_of([target(dynamic_test=None)], [])
    assert (row.published["test"], row.verdict, row.ours["test"]) == (70.0, "not run", None)


def test_dynamic_evaluation_has_a_row_of_its_own():
    losses = {"test": math.log(75.2), "test dynamic": math.log(66.0)}
    static, dynamic = rows_of([target()], [trained(75.0, losses=losses)])
    assert (static.verdict, dynamic.verdict, dynamic.published["test"]) == ("met", "missed by 6.00", 60.0)
    assert published.cells(dynamic)[0].endswith("dynamic evaluation")


def test_unfinished_runs_and_other_texts_have_no_verdict():
    known = [target(dynamic_test=None)]
    rows = rows_of(known, [trained(75.0), trained(99.0, 2, finished=False, epochs=1.4, planned=39)])
    assert [row.verdict for row in rows] == ["met", "in training: 1 of 39 epochs"]
    (row,) = rows_of(known, [trained(20.0, text="another")])
    assert row.verdict == "on another text, another"


def test_of_equal_runs_the_one_that_got_further_counts():
    early, late = trained(90.0, finished=False, epochs=1.0), trained(75.0)
    assert merged([late, early]) == merged([early, late]) == [late]
    assert merged([early, msgspec.structs.replace(early, epochs=1.5)])[0].epochs == 1.5
    assert len(merged([late, trained(75.0, 2)])) == 2


@pytest.fixture
def shipped(tmp_path, monkeypatch):
    """A folder of recipes with one whose figure is published, and one by which a run was trained for less long."""
    monkeypatch.setattr(published, "FOLDER", tmp_path / "recipes")
    monkeypatch.setattr(published, "RECORDS", tmp_path / "records.json")
    (tmp_path / "recipes" / "mine").mkdir(parents=True)
    wanted = target(dynamic_test=None, fine_tuned_test=None).recipe
    (tmp_path / PATH).write_text(dump_recipe(wanted))
    (tmp_path / "recipes" / "other.toml").write_text(dump_recipe(text_runs.recipe()))
    return wanted


def test_runs_are_found_by_their_recipe(shipped, tmp_path, capsys):
    corpus = text_runs.write_corpus(tmp_path / "ptb")
    short = msgspec.structs.replace(shipped.training, epochs=1, log_every=7)
    for name, recipe in {"a": shipped, "deep/b": msgspec.structs.replace(shipped, training=short, seed=4)}.items():
        experiment = Experiment(recipe, tmp_path / "runs" / name, data=corpus)
        experiment.train()
        experiment.finish()
    sizes = msgspec.structs.replace(shipped.model.core, sizes=[9, 8])
    larger = msgspec.structs.replace(shipped, model=msgspec.structs.replace(shipped.model, core=sizes))
    Experiment(larger, tmp_path / "runs" / "larger", data=corpus).train()
    (tmp_path / "runs" / "notes").mkdir()
    asked = ("reproduce", "published", "--out", str(tmp_path / "runs"))
    first, second = json.loads(output(capsys, *asked, "--json"))
    assert [run["seed"] for row in (first, second) for run in row["runs"]] == [3, 4]
    assert [row["runs"][0].get("changed", []) for row in (first, second)] == [[], ["training.epochs = 1"]]
    results = {row["split"]: row for row in json.loads((tmp_path / "runs/a/results.json").read_text())}
    assert first["ours"] == pytest.approx({split: results[split]["perplexity"] for split in ("valid", "test")})
    assert first["published"] == {"valid": 80.0, "test": 75.0}
    assert first["verdict"].startswith("beaten by")
    assert first["runs"][0]["epochs"] == pytest.approx(2.0)

    for name in ("table.md", "records.json"):
        assert name in output(capsys, *asked, "--into", str(tmp_path / name))
        os.utime(tmp_path / name, (0, 0))  # as a clone has it
        assert name in output(capsys, *asked, "--into", str(tmp_path / name))
    table = (tmp_path / "table.md").read_text()
    assert "2 figures: 1 beaten, 1 beaten with other settings" in table
    assert "| `mine/toy` | a table | 80, 75 |" in table
    elsewhere = ("reproduce", "published", "toy", "--out", str(tmp_path / "nowhere"), "--json")
    assert json.loads(output(capsys, *elsewhere)) == [first, second]


def test_what_is_not_published_is_refused(shipped, capsys):
    assert "no recipe with a published figure has mine and gru" in refusal(
        capsys, "reproduce", "published", "mine", "gru"
    )
    assert "list` does not read --into" in refusal(capsys, "reproduce", "list", "--into", "x.md")
    asked = "--seeds", "2", "--quick", "--jobs", "2"
    unread = "published` does not read --quick, --seeds, options for many runs"
    assert unread in refusal(capsys, "reproduce", "published", *asked)
    assert "summary` does not read --arm" in refusal(capsys, "reproduce", "summary", "--arm", "GRU")
    printed = output(capsys, "reproduce", "published", "mine")
    assert "not run" in printed
    assert "on a GPU" in printed
