"""Runs that were killed, stopped, damaged or extended: what resuming does, and what it refuses."""

import json
import os
import shutil
import signal

import pytest
import torch

from elman import config
from elman.cli import main
from elman.errors import Diverged, UserError
from elman.learning import checkpoint
from elman.learning.checkpoint import BestModel
from elman.learning.trainer import StopReason, Trainer
from elman.tasks.experiment import Experiment
from elman.tasks.text.run import TextRun
from support import text_runs
from support.commands import refusal
from support.interruption import StopAt, kill, killed

OFTEN = {"epochs": 3, "checkpoint_minutes": 0}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return text_runs.write_corpus(tmp_path_factory.mktemp("corpus"), {"train": 40, "valid": 20, "test": 20})


@pytest.fixture(autouse=True)
def cache(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("ELMAN_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))


@pytest.fixture
def train(corpus, tmp_path):
    """Trains a small recipe into a folder of the test, or resumes the run there."""

    def trained(name="run", *, resume=False, stop=None, minutes=None, **training):
        experiment = Experiment(text_runs.recipe(**training), tmp_path / name, data=corpus, resume=resume)
        experiment.train([] if stop is None else [stop], minutes)
        return tmp_path / name

    return trained


def same_files(a, b):
    names = ("checkpoint.safetensors", "model.safetensors")
    digests = [[checkpoint.digest_of(checkpoint.load(out / name)[0]) for name in names] for out in (a, b)]
    return digests[0] == digests[1]


def events(out):
    return [
        record["event"]
        for record in map(json.loads, (out / "metrics.jsonl").read_text().splitlines())
        if record["kind"] == "event"
    ]


# Kills


def after(method, owner, monkeypatch):
    """Let a process kill itself when a method has returned for the second time."""
    original, calls = getattr(owner, method), []

    def then_kill(*args, **kwargs):
        original(*args, **kwargs)
        calls.append(None)
        if len(calls) == 2:
            kill()

    monkeypatch.setattr(owner, method, then_kill)


@pytest.mark.parametrize("moment", ["validated", "saved"])
def test_after_a_kill_every_line_of_metrics_is_there_once(train, monkeypatch, moment):
    whole = train("whole", **OFTEN)
    with monkeypatch.context() as patch:
        after(*{"validated": ("_validate", Trainer), "saved": ("save", BestModel)}[moment], patch)
        killed(lambda: train(**OFTEN))
    out = train(resume=True, **OFTEN)
    assert text_runs.metrics(out) == text_runs.metrics(whole)
    assert same_files(out, whole)


def test_a_run_killed_before_its_first_validation_begins_again_without_its_old_lines(train):
    whole = train("whole", epochs=1)
    killed(lambda: train(epochs=1, stop=StopAt(7, kill)))
    out = train(resume=True, epochs=1)
    assert text_runs.metrics(out) == text_runs.metrics(whole)
    assert same_files(out, whole)


def test_a_kill_while_a_stop_by_time_saves_leaves_the_best_model(train, monkeypatch):
    out = train(epochs=1)
    best = checkpoint.load(out / "model.safetensors")[1]["step"]
    monkeypatch.setattr(BestModel, "save", lambda *args, **kwargs: (save(*args, **kwargs), kill()))
    monkeypatch.setattr("elman.learning.checkpoint.save", lambda *args: kill())
    save = BestModel.__dict__["save"]
    model = TextRun(out).model
    killed(lambda: BestModel(out).save(model, {"step": 99}, provisional=True))
    assert (out / "model.before-stop.safetensors").exists()
    assert checkpoint.load(out / "model.safetensors")[1]["step"] == best
    BestModel(out).restore()
    assert checkpoint.load(out / "model.safetensors")[1]["step"] == best


# Signals and stops


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
    assert last == f"stopped before all results were written; continue with: elman train --resume --out {out}"


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


def test_a_run_without_a_model_names_the_command_that_goes_on(train, capsys):
    out = train(stop=StopAt(3))
    line = refusal(capsys, "generate", out)
    assert line.endswith(
        f"training stopped before its first validation; continue it with: elman train --resume --out {out}"
    )


# Weights that are not finite


def test_an_infinite_step_is_not_saved_over_the_last_good_checkpoint(train, tmp_path):
    with pytest.raises(Diverged, match="weights are not finite after step 1;"):
        train(optimiser={"kind": "adam", "lr": 3e38}, clip=None, checkpoint_minutes=0)
    tensors, facts = checkpoint.load(tmp_path / "run" / "checkpoint.safetensors")
    assert facts["progress"]["step"] == 0
    assert all(tensor.isfinite().all() for tensor in tensors.values() if tensor.is_floating_point())


def test_a_model_that_is_not_finite_never_becomes_the_best(train, tmp_path, monkeypatch):
    with pytest.raises(Diverged):
        train(optimiser={"kind": "sgd", "lr": 1e300}, clip=None, minutes=0)
    assert not (tmp_path / "run" / "model.safetensors").exists()
    monkeypatch.setattr("elman.tasks.text.task.TextTask.validate", lambda *_: float("nan"))
    out = train("nan", minutes=0)
    assert not (out / "model.safetensors").exists()
    assert json.loads((out / "metrics.jsonl").read_text().splitlines()[0])["nll"] is None


# Files that are missing, damaged or of another run


def test_a_missing_checkpoint_is_refused_where_a_model_would_be_lost(train):
    out = train(epochs=1)
    (out / "checkpoint.safetensors").unlink()
    before = (out / "model.safetensors").read_bytes()
    with pytest.raises(UserError, match=r"checkpoint\.safetensors: missing, but model\.safetensors is there"):
        train(resume=True, epochs=1)
    assert (out / "model.safetensors").read_bytes() == before


def cut(path):
    path.write_bytes(path.read_bytes()[:-5])


def alter(path):
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize("damage", [cut, alter, lambda path: path.unlink()], ids=["cut", "altered", "missing"])
def test_a_damaged_best_model_is_found_before_training_goes_on(train, damage):
    out = train(epochs=2, stop=StopAt(15))
    damage(out / "model.safetensors")
    lines = (out / "metrics.jsonl").read_bytes()
    with pytest.raises(UserError, match=r"model\.safetensors"):
        train(resume=True, epochs=2)
    assert (out / "metrics.jsonl").read_bytes() == lines


def test_files_of_other_runs_are_refused(train, corpus, tmp_path):
    out = train(epochs=1)
    other = config.parse_recipe({**config.decisive(text_runs.recipe(epochs=1)), "title": "toy", "seed": 4}, "toy")
    Experiment(other, tmp_path / "other", data=corpus).train()
    shutil.copy(tmp_path / "other" / "checkpoint.safetensors", out)
    with pytest.raises(UserError, match="the checkpoint of another run, whose recipe differs in seed"):
        train(resume=True, epochs=1)
    shutil.copy(out / "model.safetensors", out / "checkpoint.safetensors")
    with pytest.raises(UserError, match="a model, not a checkpoint"):
        train(resume=True, epochs=1)


# Going on beyond the recipe


def test_more_epochs_give_the_run_that_a_longer_recipe_gives(train):
    longer = train("longer", epochs=3)
    out = train(epochs=2)
    train(resume=True, epochs=3)
    assert same_files(out, longer)
    assert config.load_recipe(out / "recipe.toml").training.epochs == 3
    records = text_runs.metrics(out)
    assert [one for one in records if one.get("event") != "recipe"] == text_runs.metrics(longer)
    change = next(one for one in records if one.get("event") == "recipe")
    assert (change["old"], change["new"]) == ({"training.epochs": 2}, {"training.epochs": 3})
    with pytest.raises(UserError, match="the run has done 3 epochs, so that there is nothing left to train"):
        train(resume=True, epochs=2)


def test_a_kill_while_a_change_is_recorded_loses_nothing(train, monkeypatch):
    out = train(epochs=1)
    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "record_changes", lambda *_: kill())
        killed(lambda: train(resume=True, epochs=2))
    assert same_files(train(resume=True, epochs=2), train("longer", epochs=2))
    assert events(out) == ["resume", "recipe"]


def test_the_rate_may_change_and_the_network_may_not(train, capsys):
    out = train(epochs=2, stop=StopAt(7))
    command = ["train", "--resume", "--out", str(out), "--threads", "1"]
    line = refusal(capsys, *command, "--set", "model.core.sizes=[4,8]", "--set", "training.optimiser.lr=0.5")
    assert "model.core.sizes differ" in line
    assert main([*command, "--set", "training.optimiser.lr=0.5", "--epochs", "1"]) == 0
    found = config.load_recipe(out / "recipe.toml").training
    assert (found.optimiser.lr, found.epochs) == (0.5, 1)
    assert "training.optimiser.lr from 0.01 to 0.5" in (out / "metrics.jsonl").read_text()


def test_a_run_that_ended_by_patience_wants_more_of_it(train):
    train(epochs=3, patience=1, optimiser={"kind": "sgd", "lr": 1e-9})
    changed = {"epochs": 9, "optimiser": {"kind": "sgd", "lr": 1e-9}}
    with pytest.raises(UserError, match="training.patience = 1: the run has ended"):
        train(resume=True, patience=1, **changed)


def test_what_else_is_computed_is_remembered(corpus, tmp_path, capsys):
    (tmp_path / "recipe.toml").write_text(config.dump_recipe(text_runs.recipe(epochs=1)))
    out, machine = str(tmp_path / "run"), ["--threads", "1"]
    assert main(["train", f"{tmp_path}/recipe.toml", "--data", str(corpus), "--out", out, "--baselines", *machine]) == 0
    (tmp_path / "run" / "baselines.json").unlink()
    assert main(["train", "--resume", "--out", out, "--epochs", "2", *machine]) == 0
    assert (tmp_path / "run" / "baselines.json").exists()
    assert "unigram" in capsys.readouterr().out


def test_a_checkpoint_of_an_earlier_version_is_resumed(train):
    """It records neither its recipe nor the number of lines of metrics."""
    out = train(epochs=1)
    path = out / "checkpoint.safetensors"
    tensors, facts = checkpoint.load(path)
    del facts["recipe"], facts["progress"]["lines"]
    checkpoint.save(path, tensors, facts)
    train(resume=True, epochs=2)
    assert same_files(out, train("longer", epochs=2))


def test_a_resumed_run_reports_no_false_speed(train):
    assert torch.get_num_threads() == 1
    out = train(epochs=1, log_every=8, stop=StopAt(7))
    train(resume=True, epochs=1, log_every=8)
    line = next(json.loads(one) for one in (out / "metrics.jsonl").read_text().splitlines() if '"train"' in one)
    assert line["step"] == 8
    assert StopReason.FINISHED
