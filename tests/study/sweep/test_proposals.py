"""Settings that Optuna proposes: its record in the folder, seeds, pruning, and what is continued."""

import json
import sys

import pytest

from elman.cli import main
from elman.config.toml import read_tables
from elman.errors import UserError
from elman.study.runs import Status
from elman.study.store import Store
from elman.study.sweep.question import Question, Sweep, reopen_sweep, with_more
from elman.study.sweep.space import parse_settings
from support.claims import row

LR = "training.optimiser.lr"


@pytest.fixture
def proposals():
    pytest.importorskip("optuna", reason="needs the package optuna")
    from elman.study.sweep.proposals import Proposals

    return Proposals


def ask(recipe, corpus, out, *more):
    search = ["--search", "optuna", "--set", f"{LR}=log:0.01..1", "--set", "training.batch_size=int:2..8/2"]
    return ["sweep", str(recipe), "--data", str(corpus), "--out", str(out), *search, *more]


def sweep_of(recipe, corpus, out, setting, *, trials, seeds=(1,)):
    """A sweep by Optuna, in a new folder."""
    out.mkdir()
    space = parse_settings([setting])
    question = Question(space=space, search="optuna", trials=trials, seeds=seeds, data=str(corpus))
    return Sweep(out, read_tables(recipe), question, "toy")


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


@pytest.mark.slow
def test_a_trial_that_fails_is_recorded(proposals, recipe, corpus, tmp_path, written, capsys):
    written.failing = {1: 2}
    assert main(ask(recipe, corpus, tmp_path / "out", "--trials", "3", "--seeds", "1")) == 1
    assert [state for _, state, _ in trials(tmp_path / "out")] == ["FAIL", "COMPLETE", "COMPLETE"]
    assert main(["sweep", "--resume", "--out", str(tmp_path / "out"), "--trials", "4"]) == 1
    assert [state for _, state, _ in trials(tmp_path / "out")] == ["FAIL", "COMPLETE", "COMPLETE", "COMPLETE"]
    assert "failed" in capsys.readouterr().out


def test_a_failed_trial_is_one_failure_also_after_a_restart(proposals, recipe, corpus, tmp_path, written, capsys):
    """Of its three seeds that failed the first alone, and the others were not begun; no command tries it again."""
    out = tmp_path / "out"
    written.failing = {1: 2}
    for words in (
        ask(recipe, corpus, out, "--trials", "1", "--seeds", "1-3"),
        ["sweep", "--resume", "--out", str(out)],
    ):
        assert main(words) == 1
        assert "1 runs failed; a failed trial of Optuna is not tried again" in capsys.readouterr().err
        record = json.loads((out / "sweep.json").read_text())
        assert record["failed"] == 1
        assert record["rows"][0]["states"] == ["failed", "unfinished", "unfinished"]
        assert record["rows"][0]["failures"]["1"].startswith("OSError: the disk was away")
    assert len(written.trained) == 2


def test_the_seed_that_failed_is_remembered(proposals, recipe, corpus, tmp_path):
    """The third of three, while the second was in training; until it is trained by another command."""
    sweep = sweep_of(recipe, corpus, tmp_path / "out", f"{LR}=0.1,0.2", trials=1, seeds=(1, 2, 3))
    search = proposals(sweep, print)
    (first,) = search.more(1)
    write_checks(first, 3.0)
    finish(first, 3.0)
    search.ended(first, None)
    _, third = search.more(1)
    search.ended(third, "the disk was away")
    assert [one.failures for one in proposals(sweep, print).tried] == [{3: "the disk was away"}]
    write_checks(third, 3.0)
    finish(third, 3.0)
    assert [one.failures for one in proposals(sweep, print).tried] == [{}]


def test_a_setting_that_failed_fails_again_at_once(proposals, recipe, corpus, tmp_path, written, capsys):
    """Its runs are not begun again, no trial is left open, and the table has the failure."""
    out = tmp_path / "out"
    written.failing = {1: 2}
    words = ["sweep", str(recipe), "--data", str(corpus), "--out", str(out), "--search", "optuna", "--seed", "1"]
    assert main([*words, "--set", f"{LR}=0.1,0.2", "--trials", "12"]) == 1
    settings = [(parameters[LR], state) for parameters, state, _ in trials(out)]
    failed, other = settings[0][0], ({"0.1", "0.2"} - {settings[0][0]}).pop()
    assert set(settings) == {(failed, "FAIL"), (other, "COMPLETE")}
    assert settings.count((failed, "FAIL")) > 1
    record = json.loads((out / "sweep.json").read_text())
    assert [(row["state"], len(row["failures"])) for row in record["rows"]] == [("done", 0), ("failed", 1)]
    assert len(written.trained) == 2 + 1
    assert "1 runs failed" in capsys.readouterr().err


def write_checks(run, *values):
    """The validations of a run that is being trained."""
    run.folder.mkdir(parents=True, exist_ok=True)
    lines = [
        {"kind": "valid", "step": n, "epoch": float(n), "nll": nll, "perplexity": 1.0, "seconds": 1.0, "phase": 0}
        for n, nll in enumerate(values, start=1)
    ]
    (run.folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


def finish(run, nll):
    (run.folder / "results.json").write_text(json.dumps([row("valid", nll)]))


@pytest.mark.parametrize("room", ["one after another", "side by side"])
def test_a_setting_that_was_pruned_is_pruned_again(room, proposals, recipe, corpus, tmp_path):
    """At once where the trial before has ended; both together where it has not."""
    out, values = tmp_path / "out", ["0.1", "0.2", "0.3", "0.4", "0.5"]
    sweep = sweep_of(recipe, corpus, out, f"{LR}={','.join(values)}", trials=8)
    search = proposals(sweep, print)
    for value in [*values, "0.5", "0.5", "0.1"]:
        search.study.enqueue_trial({LR: value})
    for _ in range(4):
        (run,) = search.more(1)
        write_checks(run, 3.0, 2.0)
        assert not list(search.unwanted([run]))
        finish(run, 2.0)
        search.ended(run, None)
    (worse,) = search.more(1)
    if room == "side by side":
        assert search.more(1) == [worse]
    write_checks(worse, 9.0, 2.5)
    assert {run.folder for run in search.unwanted([worse])} == {worse.folder}
    search.ended(worse, None)
    (best,) = search.more(1)
    assert best.recipe.training.optimiser.lr == 0.1
    search.ended(best, None)
    assert search.more(1) == ()
    assert search.later() == 0
    assert [state for _, state, _ in trials(out)] == ["COMPLETE"] * 4 + ["PRUNED"] * 3 + ["COMPLETE"]
    for each in (search, proposals(sweep, print)):
        assert [one.pruned for one in each.tried] == [False] * 4 + [True] * 3 + [False]


@pytest.mark.parametrize(("state", "failures"), [("PRUNED", {}), ("FAIL", {1: "failed before"})])
def test_a_repeated_setting_that_an_earlier_version_left_open_ends(
    state, failures, proposals, recipe, corpus, tmp_path
):
    """Its journal has a running trial of a setting that was pruned or failed before, and not which seed failed."""
    sweep = sweep_of(recipe, corpus, tmp_path / "out", f"{LR}=0.1,0.2", trials=2, seeds=(1, 2))
    search = proposals(sweep, print)
    search.study.enqueue_trial({LR: "0.1"})
    search.more(1)
    search.study.tell(0, state=search.optuna.trial.TrialState[state])
    search.study.enqueue_trial({LR: "0.1"})
    search.study.ask({LR: search.optuna.distributions.CategoricalDistribution(("0.1", "0.2"))})
    assert [each for _, each, _ in trials(tmp_path / "out")] == [state, "RUNNING"]
    again = proposals(sweep, print)
    assert again.more(1) == ()
    assert [one.failures for one in again.tried] == [failures] * 2
    assert [each for _, each, _ in trials(tmp_path / "out")] == [state] * 2


@pytest.mark.slow
def test_a_dry_run_estimates_the_trials_that_have_not_ended(
    proposals, recipe, corpus, tmp_path, written, monkeypatch, capsys
):
    """Two minutes a run: six runs four at a time, then three of them three at a time, then none."""
    out = tmp_path / "out"
    monkeypatch.setattr(Store, "minutes_of", lambda *_: 2.0)

    def minutes(*more):
        assert main([*ask(recipe, corpus, out, "--jobs", "4", *more), "--dry-run", "--json"]) == 0
        return json.loads(capsys.readouterr().out)["minutes"]

    assert minutes("--trials", "6") == 3.0
    assert minutes("--trials", "6", "--seeds", "1-2") == 6.0
    assert not out.exists()
    assert main(ask(recipe, corpus, out, "--trials", "3")) == 0
    capsys.readouterr()
    journal = (out / "study.journal").read_bytes()
    assert minutes("--trials", "6") == 2.0
    assert minutes("--trials", "3") == 0.0
    assert (out / "study.journal").read_bytes() == journal
    (out / "study.journal").write_text("damaged\n" * 2)
    assert main([*ask(recipe, corpus, out, "--trials", "6"), "--dry-run"]) == 2
    assert "study.journal: not a study of Optuna" in capsys.readouterr().err


def test_a_run_worse_than_the_median_is_pruned_and_its_other_seeds_are_not_begun(proposals, recipe, corpus, tmp_path):
    out, told = tmp_path / "out", []
    sweep = sweep_of(recipe, corpus, out, f"{LR}=float:0.01..1", trials=6, seeds=(1, 2))
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


@pytest.mark.slow
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
