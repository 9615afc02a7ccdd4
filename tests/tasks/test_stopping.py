"""Runs that were killed, stopped by a signal or the clock, or that diverged: what is kept and what is reported."""

import json
import os
import shutil
import signal

import pytest

from elman import config
from elman.cli import main
from elman.errors import Diverged, UserError
from elman.evaluation.perplexity import Score
from elman.learning import checkpoint
from elman.learning.checkpoint import BestModel
from elman.learning.trainer import Trainer
from elman.tasks.experiment import Experiment
from elman.tasks.text.run import TextRun
from support import text_runs
from support.commands import refusal
from support.interruption import StopAt, kill, killed
from support.text_runs import events, same_files

OFTEN = {"epochs": 2, "checkpoint_minutes": 0}


# Kills


def after(method, owner, monkeypatch):
    """Let a process kill itself when a method has returned for the second time."""
    original, calls = getattr(owner, method), []

    def then_kill(*args, **kwargs):
        found = original(*args, **kwargs)
        calls.append(None)
        if len(calls) == 2:
            kill()
        return found

    monkeypatch.setattr(owner, method, then_kill)


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["validated", "saved"])
def test_after_a_kill_every_line_of_metrics_is_there_once(train, monkeypatch, moment):
    whole = train("whole", **OFTEN)
    with monkeypatch.context() as patch:
        after(*{"validated": ("_validate", Trainer), "saved": ("save", BestModel)}[moment], patch)
        killed(lambda: train(**OFTEN))
    out = train(resume=True, **OFTEN)
    assert text_runs.metrics(out) == text_runs.metrics(whole)
    assert same_files(out, whole)


@pytest.mark.slow
def test_a_run_killed_before_its_first_validation_begins_again_without_its_old_lines(train):
    whole = train("whole", epochs=1)
    killed(lambda: train(epochs=1, stop=StopAt(7, kill)))
    out = train(resume=True, epochs=1)
    assert text_runs.metrics(out) == text_runs.metrics(whole)
    assert same_files(out, whole)


def test_a_kill_while_a_stop_by_time_saves_leaves_the_best_model(train, monkeypatch):
    out = train(epochs=1)
    best = checkpoint.load(out / "model.safetensors")[1]["step"]
    monkeypatch.setattr("elman.learning.checkpoint.save", lambda *_, **__: kill())
    model = TextRun(out).model
    killed(lambda: BestModel(out).save(model, {"step": 99}, provisional=True))
    assert (out / "model.before-stop.safetensors").exists()
    assert checkpoint.load(out / "model.safetensors")[1]["step"] == best
    BestModel(out).restore()
    assert checkpoint.load(out / "model.safetensors")[1]["step"] == best


# Signals and stops


@pytest.mark.usefixtures("hangups_heard")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_saves_the_run(train, number):
    out = train(stop=StopAt(7, lambda: os.kill(os.getpid(), number)))
    assert checkpoint.load(out / "checkpoint.safetensors")[1]["progress"]["step"] == 7


def test_a_hangup_that_is_ignored_stays_ignored(train):
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        out = train(epochs=1, stop=StopAt(7, lambda: os.kill(os.getpid(), signal.SIGHUP)))
    finally:
        signal.signal(signal.SIGHUP, before)
    assert checkpoint.load(out / "checkpoint.safetensors")[1]["progress"]["finished"]


def test_a_signal_while_results_are_written_is_reported_in_one_line(corpus, tmp_path, monkeypatch, capsys):
    (tmp_path / "recipe.toml").write_text(config.dump_recipe(text_runs.recipe(epochs=1)))
    out, command = tmp_path / "run", ["train", f"{tmp_path}/recipe.toml", "--data", str(corpus), "--threads", "1"]
    with monkeypatch.context() as patch:
        patch.setattr(Experiment, "finish", lambda *_, **__: os.kill(os.getpid(), signal.SIGTERM))
        assert main([*command, "--out", str(out)]) == 130
    last = capsys.readouterr().err.splitlines()[-1]
    assert (
        last == f"stopped before all results were written; continue with: elman train --resume --out {out} --threads 1"
    )


@pytest.mark.slow
def test_the_validation_of_a_stop_by_time_is_written_until_the_run_goes_on(train):
    out = train(minutes=0)
    valid = [record for record in text_runs.metrics(out) if record["kind"] == "valid"]
    assert [(record["step"], record["best"]) for record in valid] == [(1, True)]
    assert checkpoint.load(out / "model.safetensors")[1]["valid_nll"] == valid[0]["nll"]
    assert events(out) == ["stop"]
    assert text_runs.metrics(train(resume=True)) == text_runs.metrics(train("whole"))


def test_a_folder_that_is_removed_is_not_made_again(train, tmp_path):
    with pytest.raises(UserError, match="removed"):
        train(stop=StopAt(3, lambda: shutil.rmtree(tmp_path / "run")), **OFTEN)
    assert not (tmp_path / "run").exists()


def test_nothing_is_written_into_a_folder_made_in_the_place_of_the_run(train, tmp_path):
    run, away = tmp_path / "run", tmp_path / "away"
    with pytest.raises(UserError, match="removed while the run was trained in it"):
        train(stop=StopAt(3, lambda: (run.rename(away), run.mkdir())), log_every=1)
    assert list(run.iterdir()) == []
    assert (away / "metrics.jsonl").exists()


def test_a_folder_that_is_removed_while_a_checkpoint_is_written_is_not_made_again(train, tmp_path, monkeypatch):
    save = checkpoint.save

    def removed_then_saved(path, *rest, **how):
        shutil.rmtree(path.parent)
        return save(path, *rest, **how)

    out = train(stop=StopAt(3))
    monkeypatch.setattr("elman.learning.checkpoint.save", removed_then_saved)
    with pytest.raises(UserError, match="its folder has been removed"):
        train(resume=True)
    assert not out.exists()


def test_a_run_without_a_model_names_the_command_that_goes_on(train, capsys):
    out = train(stop=StopAt(3))
    line = refusal(capsys, "generate", out)
    assert "there is no model yet, since training stopped before its first validation" in line
    assert line.endswith(f"continue it with: elman train --resume --out {out}")


# Weights that are not finite


def test_an_infinite_step_is_not_saved_over_the_last_good_checkpoint(train, tmp_path):
    with pytest.raises(Diverged, match="weights are not finite after step 1;"):
        train(optimiser={"kind": "adam", "lr": 3e38}, clip=None, checkpoint_minutes=0)
    tensors, facts = checkpoint.load(tmp_path / "run" / "checkpoint.safetensors")
    assert facts["progress"]["step"] == 0
    assert all(tensor.isfinite().all() for tensor in tensors.values() if tensor.is_floating_point())


@pytest.mark.parametrize("constraint", [None, {"kind": "spectral-norm"}])
def test_an_infinite_step_ends_a_run_that_logs_its_spectrum(train, tmp_path, constraint):
    with pytest.raises(Diverged, match="weights are not finite after step 1;"):
        train(
            optimiser={"kind": "sgd", "lr": 1e30},
            weight_decay=1e30,
            clip=None,
            log_every=1,
            log_spectrum=True,
            constraint=constraint,
        )
    assert checkpoint.load(tmp_path / "run" / "checkpoint.safetensors")[1]["progress"]["step"] == 0


def test_a_model_that_is_not_finite_never_becomes_the_best(train, tmp_path, monkeypatch):
    with pytest.raises(Diverged):
        train(optimiser={"kind": "sgd", "lr": 1e300}, clip=None, minutes=0)
    assert not (tmp_path / "run" / "model.safetensors").exists()
    monkeypatch.setattr("elman.tasks.text.task.TextTask.validate", lambda *_: Score(float("nan"), 1))
    out = train("nan", minutes=0)
    assert not (out / "model.safetensors").exists()
    assert json.loads((out / "metrics.jsonl").read_text().splitlines()[0])["nll"] is None
