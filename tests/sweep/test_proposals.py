"""Settings that Optuna proposes: its record in the folder, seeds, pruning, and what is continued."""

import json
import sys

import pytest

from elman.cli import main
from elman.config.toml import read_tables
from elman.errors import UserError
from elman.reproduce.planned import Status
from elman.sweep.conduct import with_more
from elman.sweep.question import Question, Sweep, reopen_sweep
from elman.sweep.space import parse_settings

LR = "training.optimiser.lr"


@pytest.fixture
def proposals():
    pytest.importorskip("optuna", reason="needs the package optuna")
    from elman.sweep.proposals import Proposals

    return Proposals


def ask(recipe, corpus, out, *more):
    search = ["--search", "optuna", "--set", f"{LR}=log:0.01..1", "--set", "training.batch_size=int:2..8/2"]
    return ["sweep", str(recipe), "--data", str(corpus), "--out", str(out), *search, *more]


def trials(out):
    """The parameters and states of the trials in the journal."""
    import optuna
    from optuna.storages import journal

    storage = optuna.storages.JournalStorage(journal.JournalFileBackend(str(out / "study.journal")))
    return [
        (trial.params, trial.state.name, trial.value)
        for trial in optuna.load_study(study_name="sweep", storage=storage).trials
    ]


@pytest.mark.slow
def test_a_search_is_the_same_for_a_seed_and_continues_where_it_stopped(
    proposals, recipe, corpus, tmp_path, written, capsys
):
    """Twelve trials at once, or three and then nine more: the same proposals."""
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    assert main([*ask(recipe, corpus, whole, "--trials", "12", "--seed", "5"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert len(written.trained) == 12
    assert main(ask(recipe, corpus, parts, "--trials", "3", "--seed", "5")) == 0
    assert len(trials(parts)) == 3
    assert main(["sweep", "--resume", "--out", str(parts), "--trials", "12"]) == 0
    assert len(written.trained) == 24
    assert trials(parts) == trials(whole)
    for parameters, state, value in trials(whole):
        assert state == "COMPLETE"
        assert value == pytest.approx(float(f"{parameters[LR]:.4g}") + 0.001)
        assert parameters["training.batch_size"] in (2, 4, 6, 8)
    assert found["best"]["settings"] == found["rows"][0]["settings"]
    assert float(found["best"]["settings"][LR]) < 0.03
    with pytest.raises(UserError, match="--seeds: the trials of Optuna have the seeds"):
        with_more(reopen_sweep(parts), (1, 2, 3), None)
    capsys.readouterr()


def test_a_trial_that_fails_is_recorded(proposals, recipe, corpus, tmp_path, written, capsys):
    written.failing = {1: 2}
    assert main(ask(recipe, corpus, tmp_path / "out", "--trials", "3", "--seeds", "1")) == 1
    assert [state for _, state, _ in trials(tmp_path / "out")] == ["FAIL", "COMPLETE", "COMPLETE"]
    assert main(["sweep", "--resume", "--out", str(tmp_path / "out"), "--trials", "4"]) == 1
    assert [state for _, state, _ in trials(tmp_path / "out")] == ["FAIL", "COMPLETE", "COMPLETE", "COMPLETE"]
    assert "failed" in capsys.readouterr().out


def write_checks(run, *values):
    """The validations of a run that is being trained."""
    run.folder.mkdir(parents=True, exist_ok=True)
    lines = [
        {"kind": "valid", "step": n, "epoch": float(n), "nll": nll, "perplexity": 1.0, "seconds": 1.0, "phase": 0}
        for n, nll in enumerate(values, start=1)
    ]
    (run.folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


def finish(run, nll):
    (run.folder / "results.json").write_text(json.dumps([{"split": "valid", "perplexity": 1.0, "nll": nll}]))


def test_a_run_worse_than_the_median_is_pruned_and_its_other_seeds_are_not_begun(proposals, recipe, corpus, tmp_path):
    out, told = tmp_path / "out", []
    out.mkdir()
    question = Question(
        space=parse_settings([f"{LR}=float:0.01..1"]), search="optuna", trials=6, seeds=(1, 2), data=str(corpus)
    )
    sweep = Sweep(out, read_tables(recipe), question, "toy")
    search = proposals(sweep, told.append)
    for number in range(4):
        (first,) = search.more(1)
        write_checks(first, 3.0, 2.0 + number / 100, 1.0)
        assert not list(search.unwanted([first]))
        finish(first, 1.0)
        search.ended(first, None)
        (second,) = search.more(0)
        assert second.recipe.seed == 2
        write_checks(second, 9.0)
        assert not list(search.unwanted([second]))
        finish(second, 3.0)
        search.ended(second, None)
    assert {value for _, _, value in trials(out)} == {2.0}
    (worse,) = search.more(1)
    write_checks(worse, 9.0)
    assert not list(search.unwanted([worse]))
    write_checks(worse, 9.0, 2.5)
    assert list(search.unwanted([worse])) == [worse]
    assert told == [f"{worse.name}: pruned after validation 2, 2.5000 nats"]
    again = proposals(sweep, told.append)  # of a driver that was killed just then
    assert again.more(1) == [worse]
    assert worse.status is Status.MISSING
    search.ended(worse, None)
    assert trials(out)[4][1] == "PRUNED"
    (better,) = search.more(1)
    write_checks(better, 9.0, 1.9, 0.9)
    assert list(search.unwanted([better])) == [worse]
    assert better.recipe.seed == 1
    assert search.more(1) == ()
    assert [one.pruned for one in proposals(sweep, told.append).tried] == [False] * 4 + [True, False]


def test_the_end_of_a_half_written_line_is_cut(proposals, recipe, corpus, tmp_path, written, capsys):
    out = tmp_path / "out"
    assert main(ask(recipe, corpus, out, "--trials", "2")) == 0
    with (out / "study.journal").open("a") as file:
        file.write('{"op_code": 5, "worker')
    assert main(["sweep", "--resume", "--out", str(out), "--trials", "3"]) == 0
    assert [state for _, state, _ in trials(out)] == ["COMPLETE"] * 3
    capsys.readouterr()


def test_a_missing_package_names_its_extra(recipe, corpus, tmp_path, written, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "optuna", None)
    assert main(ask(recipe, corpus, tmp_path / "out")) == 2
    assert "pip install 'elman[optuna]'" in capsys.readouterr().err
