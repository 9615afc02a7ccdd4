"""Training by the clock: the rate follows `training.minutes`, and the last of a `--max-minutes` is for its fall."""

import math

import pytest

from elman.errors import UserError
from elman.evaluation.perplexity import Score
from elman.jobs import Stop
from elman.learning import checkpoint
from elman.learning import trainer as loop
from elman.learning.checkpoint import MODEL
from elman.learning.folder import Folder
from elman.learning.trainer import StopReason
from support import text_runs, two_windows

MINUTES = 10.0
COSINE = {"kind": "cosine", "floor": 0.0}


@pytest.fixture
def pace(monkeypatch):
    """A clock by which each step takes a number of minutes."""

    def set_to(minutes):
        monkeypatch.setattr(Folder, "seconds", lambda self, progress: 60 * minutes * progress.step)

    return set_to


def trainer_of(folder, epochs=50, schedule=COSINE, **training):
    def of_weights(model, part):
        return Score(float(sum(one.detach().double().abs().sum() for one in model.parameters())), 100)

    how = {"epochs": epochs, "schedule": schedule, "log_every": 1, "window": {"length": 10}}
    how["optimiser"] = {"kind": "adam", "lr": 0.01}
    return two_windows.trainer_of(folder, of_weights, **how | training)


def lines(trainer, kind="train"):
    return [line for line in text_runs.metrics(trainer.folder.path) if line["kind"] == kind]


def test_the_rate_falls_with_the_time_where_the_epochs_do_not_end(tmp_path, pace):
    pace(MINUTES / 20)
    trainer = trainer_of(tmp_path / "run", minutes=MINUTES)
    assert trainer.run() is StopReason.FINISHED
    assert trainer.progress.step == 20
    shorter = trainer_of(tmp_path / "shorter", epochs=10)
    shorter.run()
    assert [line["lr"] for line in lines(trainer)] == pytest.approx([line["lr"] for line in lines(shorter)])
    assert (
        lines(trainer, "event")[-1]["message"]
        == "the 10 minutes are over at epoch 10.00 of 50, and the rate has fallen"
    )
    assert lines(trainer, "valid")[-1]["step"] == 20


def test_hardly_a_step_is_said(tmp_path, pace, monkeypatch):
    """Each step takes longer than there are minutes: it is taken and validated, and the line reports what it means."""
    pace(2 * MINUTES)
    trainer = trainer_of(tmp_path / "run", minutes=MINUTES)
    assert trainer.run() is StopReason.FINISHED
    assert len(lines(trainer, "valid")) == trainer.progress.step == 1
    assert lines(trainer, "event")[-1]["message"].endswith(
        "; 1 step of training, from which a network learns next to nothing: give more time"
    )
    stopped = trainer_of(tmp_path / "stopped", schedule={"kind": "constant"})
    now = iter(range(0, 10**6, 60))
    monkeypatch.setattr(loop.time, "monotonic", lambda: float(next(now)))
    assert stopped.run(1.0) is StopReason.OUT_OF_TIME
    assert lines(stopped, "valid")
    assert "; 1 step of training," in lines(stopped, "event")[-1]["message"]


def test_epochs_end_training_before_the_time(tmp_path, pace):
    pace(MINUTES / 1000)
    trainer = trainer_of(tmp_path / "run", epochs=3, minutes=MINUTES)
    trainer.run()
    assert trainer.progress.epoch == 3
    same = trainer_of(tmp_path / "same", epochs=3)
    same.run()
    assert [line["lr"] for line in lines(trainer)] == [line["lr"] for line in lines(same)]


@pytest.mark.parametrize("schedule", [{"kind": "constant"}, {"kind": "decay", "after": 90, "factor": 2.0}])
def test_without_a_schedule_that_ends_the_last_fifth_is_for_the_fall(tmp_path, pace, schedule):
    pace(MINUTES / 20)
    trainer = trainer_of(tmp_path / "run", schedule=schedule, minutes=MINUTES)
    trainer.run()
    rates = [line["lr"] for line in lines(trainer)]
    assert rates[15] == rates[0] > 0
    assert rates[-4:] == pytest.approx([rates[0], rates[0] * 0.75, rates[0] / 2, rates[0] / 4])


def test_more_time_continues_a_run_that_the_clock_ended(tmp_path, pace):
    pace(MINUTES / 20)
    trainer_of(tmp_path / "run", minutes=MINUTES).run()
    for folder, minutes, reached in (("run", 2 * MINUTES, 40), ("run", 2 * MINUTES, 40)):
        longer = trainer_of(tmp_path / folder, minutes=minutes)
        longer.resume()
        assert longer.run() is StopReason.FINISHED
        assert longer.progress.step == reached


def test_no_time_left_is_said(tmp_path):
    trainer = trainer_of(tmp_path / "run", minutes=MINUTES)
    trainer.run(0)
    again = trainer_of(tmp_path / "run", minutes=1e-9)
    with pytest.raises(UserError, match="no time is left"):
        again.resume()


def test_a_stop_leaves_an_annealed_model_and_resumes_as_if_it_had_not_been(tmp_path, monkeypatch):
    whole = trainer_of(tmp_path / "whole", epochs=3, schedule={"kind": "constant"})
    whole.run()
    stopped = trainer_of(tmp_path / "run", epochs=3, schedule={"kind": "constant"})
    now = iter(range(10**6))
    monkeypatch.setattr(loop.time, "monotonic", lambda: float(next(now)))
    assert stopped.run(0.5) is StopReason.OUT_OF_TIME
    monkeypatch.undo()
    assert stopped.progress.step < 6
    tensors, _ = checkpoint.load(tmp_path / "run" / MODEL)
    own, _ = checkpoint.load(tmp_path / "run" / "checkpoint.safetensors")
    name = next(iter(tensors))
    assert not tensors[name].equal(own[f"model/{name}"])  # steps at a falling rate, which the checkpoint does not have
    resumed = trainer_of(tmp_path / "run", epochs=3, schedule={"kind": "constant"})
    resumed.resume()
    resumed.run()
    assert checkpoint.digest_of(checkpoint.model_tensors(resumed.model)) == checkpoint.digest_of(
        checkpoint.model_tensors(whole.model)
    )


def test_the_clock_rules_one_phase():
    with pytest.raises(UserError, match="the clock rules one phase"):
        text_runs.recipe(minutes=1.0, fine_tune={"epochs": 1, "lr": 1.0})


@pytest.mark.parametrize(("left", "share"), [(1.0, 1.0), (0.3, 1.0), (0.1, 0.5), (0.0, 0.0)])
def test_a_schedule_that_does_not_end_falls_in_the_last_fifth(tmp_path, monkeypatch, left, share):
    trainer = trainer_of(tmp_path / "run", schedule={"kind": "constant"}, minutes=MINUTES)
    monkeypatch.setattr(Folder, "seconds", lambda self, progress: 60 * MINUTES * (1 - left))
    assert trainer.rate() == pytest.approx(0.01 * share)
    falls = trainer_of(tmp_path / "other", minutes=MINUTES)
    assert falls.rate() == pytest.approx(0.01 * 0.5 * (1 + math.cos(math.pi * (1 - left))), abs=1e-9)


def test_a_stop_within_the_fall_is_an_interruption(tmp_path, monkeypatch):
    for finished, reason in ((True, StopReason.OUT_OF_TIME), (False, StopReason.INTERRUPTED)):
        trainer = trainer_of(tmp_path / str(finished), epochs=3, schedule={"kind": "constant"})
        trainer.begin()
        trainer._limit = 60.0
        monkeypatch.setattr(loop.prediction, "descend", lambda *_, finished=finished: finished)
        deadline = loop.time.monotonic() + 60
        assert trainer._stop_early(deadline, Stop(), interrupted=False) is reason
