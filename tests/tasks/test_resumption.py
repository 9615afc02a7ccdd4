"""Resuming runs that are damaged, of another run, or to be extended."""

import json
import shutil

import pytest
import torch

from elman import config
from elman.cli import main
from elman.errors import UserError
from elman.learning import checkpoint
from elman.learning.folder import Folder
from elman.learning.progress import Progress
from elman.learning.trainer import Trainer
from elman.objective.loss import Loss
from elman.tasks.experiment import Experiment
from support import text_runs
from support.commands import refusal
from support.interruption import StopAt, kill, killed
from support.text_runs import events, same_files

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


@pytest.mark.slow
def test_more_epochs_give_the_run_that_a_longer_recipe_gives(train, capsys):
    longer = train("longer", epochs=3)
    out = train(epochs=2)
    train(resume=True, epochs=3)
    assert capsys.readouterr().err == f"elman: {out}: continued with training.epochs from 2 to 3\n"
    assert same_files(out, longer)
    assert config.load_recipe(out / "recipe.toml").training.epochs == 3
    records = text_runs.metrics(out)
    assert [one for one in records if one.get("event") != "recipe"] == text_runs.metrics(longer)
    change = next(one for one in records if one.get("event") == "recipe")
    assert (change["old"], change["new"]) == ({"training.epochs": 2}, {"training.epochs": 3})
    with pytest.raises(UserError, match="the run has done 3 epochs, so that there is nothing left to train"):
        train(resume=True, epochs=2)


@pytest.mark.slow
def test_a_kill_while_a_change_is_recorded_loses_nothing(train, monkeypatch):
    out = train(epochs=1)
    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "record_changes", lambda *_: kill())
        killed(lambda: train(resume=True, epochs=2))
    assert same_files(train(resume=True, epochs=2), train("longer", epochs=2))
    assert events(out) == ["resume", "recipe"]


def test_a_run_that_is_done_is_refused_before_its_heading(train, capsys):
    out = train(epochs=1)
    line = refusal(capsys, "train", "--resume", "--out", out, "--threads", "1", "--set", "training.log_every=9")
    assert line.startswith("elman: training.epochs = 1: the run has done 1 epochs, so that there is nothing left")


def test_the_rate_may_change_and_the_network_may_not(train, capsys):
    out = train(epochs=2, stop=StopAt(7))
    command = ["train", "--resume", "--out", str(out), "--threads", "1"]
    line = refusal(capsys, *command, "--set", "model.core.sizes=[4,8]", "--set", "training.optimiser.lr=0.5")
    assert "model.core.sizes differ" in line
    train(resume=True, epochs=1, optimiser={"kind": "adam", "lr": 0.5})
    found = config.load_recipe(out / "recipe.toml").training
    assert (found.optimiser.lr, found.epochs) == (0.5, 1)
    assert "training.optimiser.lr from 0.01 to 0.5" in (out / "metrics.jsonl").read_text()


def test_a_run_that_ended_by_patience_wants_more_of_it(train):
    out = train(epochs=3, patience=1, optimiser={"kind": "sgd", "lr": 1e-9})
    assert "no better at 1 validation: training is over" in (out / "metrics.jsonl").read_text()
    changed = {"epochs": 9, "optimiser": {"kind": "sgd", "lr": 1e-9}}
    with pytest.raises(UserError, match=r"training\.patience = 1: the run has ended"):
        train(resume=True, patience=1, **changed)


@pytest.mark.slow
def test_settings_give_a_run_another_description(train, capsys):
    out = train(epochs=1)
    command = ["train", "--resume", "--out", str(out), "--threads", "1"]
    assert main([*command, "--set", "title=Anew", "--set", "expected.source=a paper"]) == 0
    assert capsys.readouterr().err.startswith(f"elman: {out}: title, expected replaced\n")
    found = config.load_recipe(out / "recipe.toml")
    assert (found.title, found.expected.source) == ("Anew", "a paper")
    assert main(command) == 0
    assert config.load_recipe(out / "recipe.toml") == found


@pytest.mark.parametrize("key", ["corpus", "digest"])
def test_other_data_by_settings_are_refused(train, capsys, key):
    out = train(epochs=1)
    line = refusal(capsys, "train", "--resume", "--out", out, "--threads", "1", "--set", f"data.{key}=abc")
    assert line.startswith(f"elman: --resume with --set data.{key}: a run is continued on the data")


def test_a_run_that_is_resumed_has_its_own_weights(train, capsys):
    out = train(epochs=1)
    line = refusal(capsys, "train", "--resume", "--out", out, "--threads", "1", "--init", out)
    assert line.startswith("elman: --init gives the weights from which a run begins")


@pytest.mark.slow
def test_changes_that_do_not_act_on_fine_tuning_are_refused(train, capsys):
    out = train(epochs=1, fine_tune={"lr": 0.1, "epochs": 1})
    command = ["train", "--resume", "--out", out, "--threads", "1", "--set", "training.fine_tune.epochs=2"]
    line = refusal(capsys, *command, "--epochs", "2", "--set", "training.optimiser.lr=0.5")
    assert line.startswith("elman: training.epochs, training.optimiser.lr: no effect on a run that is fine-tuning")
    with pytest.raises(UserError, match=r"training\.fine_tune\.lr: no effect on a run that is fine-tuning"):
        train(resume=True, epochs=1)
    train(resume=True, epochs=1, clip=0.4, fine_tune={"lr": 0.1, "epochs": 2})


@pytest.mark.slow
@pytest.mark.parametrize("patience", [None, 1])
def test_fine_tuning_may_be_added_to_a_finished_run(train, patience):
    """It ends with the bits of a run that had it from the beginning."""
    how = {"epochs": 2, "patience": patience, "optimiser": {"kind": "sgd", "lr": 0.5}}
    fine = {"lr": 0.1, "epochs": 2}
    out = train(**how)
    with pytest.raises(UserError, match=r"training\.optimiser\.lr: no effect on a finished run to which fine-tuning"):
        train(resume=True, **how | {"optimiser": {"kind": "sgd", "lr": 0.4}}, fine_tune=fine)
    train(resume=True, **how, fine_tune=fine)
    assert events(out) == ["recipe", "fine-tune"]
    whole = train("whole", **how, fine_tune=fine)
    models = [checkpoint.load(folder / "checkpoint.safetensors")[0] for folder in (out, whole)]
    assert all(torch.equal(models[0][name], models[1][name]) for name in models[1])


def test_what_else_is_computed_is_remembered(corpus, tmp_path):
    recipe, out = text_runs.recipe(epochs=1), tmp_path / "run"
    Experiment(recipe, out, data=corpus, extras=["baselines"]).train()
    resumed = Experiment(recipe, out, data=corpus, resume=True, extras=["tensorboard"])
    resumed.train()
    assert resumed.extras == ["baselines", "tensorboard"]
    assert Experiment(recipe, out, data=corpus, resume=True).extras == resumed.extras


def test_the_speed_after_resuming_counts_no_earlier_tokens(tmp_path, monkeypatch):
    clock = iter(range(100))
    monkeypatch.setattr("elman.learning.folder.time.monotonic", lambda: next(clock))
    folder, progress = Folder(tmp_path, torch.device("cpu")), Progress(count=1000, nll_sum=2000.0)
    progress.windows_logged = 7
    folder.begin(1, 10, progress)
    nll_sum, counted, zero = torch.tensor(3.0), torch.tensor(2), torch.tensor(0.0)
    folder.add(Loss(zero, nll_sum, counted, zero), zero)
    folder.read(progress)
    folder.write_train(progress, 0.5, {})
    line = json.loads((tmp_path / "metrics.jsonl").read_text())
    assert line["loss"] == pytest.approx(2003 / 1002)
    assert line["tokens_per_s"] <= 2
