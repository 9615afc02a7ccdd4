"""The training loop by value: learning rates, and which weights are validated and saved."""

import pytest

from elman.evaluation.perplexity import Score
from elman.learning import checkpoint
from elman.learning.trainer import StopReason
from support import text_runs
from support.two_windows import trainer_of


@pytest.mark.parametrize(("random", "rates"), [(True, [1.0, 3.0]), (False, [2.0, 2.0])])
def test_the_rate_is_scaled_by_the_length_of_a_random_window(random, rates, tmp_path, monkeypatch):
    """Merity et al. 2018: lr * length / 10, since the loss is a mean over the window."""
    window = {"length": 10, "random": random}
    trainer = trainer_of(tmp_path, epochs=1, window=window, optimiser={"kind": "sgd", "lr": 2.0})
    seen, apply = [], trainer.update.apply
    monkeypatch.setattr(trainer.update, "apply", lambda lr: (seen.append(lr), apply(lr)))
    assert trainer.run() is StopReason.FINISHED
    assert seen == rates


@pytest.mark.slow
@pytest.mark.parametrize("minutes", [None, 0])
def test_the_average_is_validated_and_saved(minutes, tmp_path):
    validated = []

    def validate(model, part):
        validated.append(checkpoint.digest_of(checkpoint.model_tensors(model)))
        return Score(1.0, 1)

    trainer = trainer_of(tmp_path, validate, epochs=1, averaging={"kind": "immediate"})
    trainer.run(minutes)
    raw = checkpoint.digest_of(checkpoint.model_tensors(trainer.model))
    with trainer.update.averaged():
        average = checkpoint.digest_of(checkpoint.model_tensors(trainer.model))
    saved, facts = checkpoint.load(tmp_path / "model.safetensors")
    assert validated == [average]
    assert checkpoint.digest_of(saved) == average
    assert facts["averaged"] is True
    assert (raw == average) is (minutes == 0)  # one step is its own average


def test_the_last_step_of_an_epoch_is_validated_once(tmp_path):
    losses = iter([3.0, 2.0, 1.0])
    trainer = trainer_of(tmp_path, lambda *_: Score(next(losses), 1), epochs=3, validate_every=2, patience=1)
    assert trainer.run() is StopReason.FINISHED
    assert (trainer.progress.epoch, trainer.progress.waited) == (3, 0)
    assert trainer.progress.checks == trainer.progress.by_epoch == [3.0, 2.0, 1.0]
    assert [line["best"] for line in text_runs.metrics(tmp_path) if line["kind"] == "valid"] == [True] * 3


@pytest.mark.parametrize(("before", "best"), [(None, True), (2.0, True), (1.0, False), (0.5, False)])
def test_what_the_end_of_the_time_leaves_is_the_best_if_it_is_better(before, best, tmp_path):
    trainer = trainer_of(tmp_path, lambda *_: Score(1.0, 1), epochs=3)
    trainer.progress.best = before
    assert trainer.run(0) is StopReason.OUT_OF_TIME
    assert [line["best"] for line in text_runs.metrics(tmp_path) if line["kind"] == "valid"] == [best]


@pytest.mark.parametrize("averaging", [None, {"kind": "immediate"}])
def test_fine_tuning_averages_from_its_first_step_on(averaging, tmp_path):
    trainer = trainer_of(tmp_path, epochs=1, averaging=averaging, fine_tune={"lr": 0.1, "epochs": 1})
    assert trainer.progress.averaging == (trainer.update.average is not None) == (averaging is not None)
    assert trainer.run() is StopReason.FINISHED
    assert (trainer.progress.phase, trainer.progress.averaging) == (1, True)
    assert trainer.update.average.count == 2
