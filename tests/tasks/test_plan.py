"""Plans of trainings: a new run, a resumed one and a trial are one record, settled and refused before data are read."""

import dataclasses

import msgspec
import pytest
import torch

from elman import config
from elman.errors import UserError
from elman.learning.checkpoint import digest_of, model_tensors
from elman.tasks.experiment import Experiment, build
from elman.tasks.plan import Plan, require_free
from support import text_runs


def test_a_plan_cannot_be_changed(corpus, tmp_path):
    plan = Plan.new(text_runs.recipe(), tmp_path / "run", corpus)
    with pytest.raises(dataclasses.FrozenInstanceError):
        plan.source = "elsewhere"
    assert not (tmp_path / "run").exists()


def test_a_resumed_run_has_the_recipe_of_the_run_whether_it_is_given_or_not(train, tmp_path):
    out = train(epochs=1)
    given, own = (Plan.resume(one, out) for one in (text_runs.recipe(epochs=1), None))
    assert given == own
    assert own.recipe == own.before == config.load_recipe(out / "recipe.toml")
    longer = Plan.resume(None, out, settings=["training.epochs=3", "title=longer"])
    assert (longer.recipe.training.epochs, longer.recipe.title, longer.before) == (3, "longer", own.before)
    assert Plan.resume(None, out, settings=["training.epochs=3"]).recipe.title == own.before.title
    with pytest.raises(UserError, match="a changed recipe: seed differ"):
        Plan.resume(None, out, settings=["seed=9"])


def test_what_training_cannot_start_from_is_refused_before_data_are_read(tmp_path):
    recipe = text_runs.recipe()
    gate = msgspec.structs.replace(recipe.model.output, gate=config.InputGate(alone=True))
    recipe = msgspec.structs.replace(recipe, model=msgspec.structs.replace(recipe.model, output=gate))
    with pytest.raises(UserError, match=r"model\.output\.gate\.alone trains the gate of a trained model"):
        Plan.new(recipe, tmp_path / "run", tmp_path / "no such text")


def test_a_trial_has_the_network_of_a_run_and_leaves_nothing(corpus, tmp_path):
    recipe = text_runs.recipe()
    trial = build(Plan.trial(recipe, corpus, torch.device("cpu")))
    run = Experiment(recipe, tmp_path / "run", data=corpus)
    assert digest_of(model_tensors(trial.model)) == digest_of(model_tensors(run.model))
    assert list(tmp_path.iterdir()) == []


def test_what_a_run_without_recipe_and_model_has_left_is_not_replaced(train, tmp_path):
    out = train(epochs=1)
    for name in ("recipe.toml", "checkpoint.safetensors", "model.safetensors"):
        (out / name).unlink()
    (out / ".lock").touch()
    for attempt in (lambda: Plan.resume(None, out), lambda: require_free(out)):
        with pytest.raises(UserError, match=r"metrics\.jsonl.* and no recipe\.toml, checkpoint or model"):
            attempt()
    assert (out / "metrics.jsonl").stat().st_size
