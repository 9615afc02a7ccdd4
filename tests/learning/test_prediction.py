"""The branches from which the loss at the end is predicted: what they are, and that the run is that without them."""

import math
from types import SimpleNamespace

import pytest
import torch

from elman.cli import progress
from elman.evaluation.perplexity import Score
from elman.jobs import Stop
from elman.learning import checkpoint, prediction
from elman.learning.folder import Watcher
from elman.learning.progress import Progress
from elman.learning.trainer import StopReason
from elman.objective import perplexity
from support import text_runs, two_windows
from support.two_windows import span_of

EPOCHS = 40
FIRST, SECOND = 10, 20
"""The first steps by which an eighth and a quarter of them are done."""


@pytest.fixture(autouse=True, scope="module")
def short():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(prediction, "FEWEST", 2)
        yield


@pytest.fixture(scope="module")
def whole(short, tmp_path_factory):
    """A training to its end."""
    trainer = trainer_of(tmp_path_factory.mktemp("whole"), of_weights)
    trainer.run()
    return trainer


def digest(model):
    return checkpoint.digest_of(checkpoint.model_tensors(model))


def trainer_of(folder, validate=lambda *_: Score(1.0, 1), **training):
    how = {"epochs": EPOCHS, "averaging": {"kind": "immediate"}, "predict_loss": True, "log_every": 7}
    return two_windows.trainer_of(folder, validate, **how | training)


def of_weights(model, part):
    """A loss that depends on the weights alone."""
    return Score(float(sum(one.detach().double().abs().sum() for one in model.parameters())), 100)


def branches(trainer):
    return [line for line in text_runs.metrics(trainer.folder.path) if line.get("event") == "branch"]


@pytest.mark.slow
def test_a_run_is_the_same_with_branches_as_without(tmp_path):
    """Weights, averages, moments, states, random numbers and validations, to the bit."""
    found = {}
    for predicts in (False, True):
        trainer = trainer_of(tmp_path / str(predicts), of_weights, predict_loss=predicts)
        assert trainer.run() is StopReason.FINISHED
        valid = [line for line in text_runs.metrics(trainer.folder.path) if line["kind"] in ("valid", "train")]
        found[predicts] = {name: one.clone() for name, one in trainer.update.tensors().items()}, valid
        assert len(branches(trainer)) == 2 * predicts
    for name, tensor in found[False][0].items():
        assert torch.equal(tensor, found[True][0][name]), name
    assert found[False][1] == found[True][1]


@pytest.mark.slow
def test_the_steps_of_a_branch(tmp_path, monkeypatch):
    """Where they begin, how many there are, at which rates, on which windows; and what is validated after them."""
    steps, validated = [], []

    def validate(model, part):
        validated.append(len(steps))
        return of_weights(model, part)

    trainer = trainer_of(tmp_path / "run", validate, optimiser={"kind": "adam", "lr": 0.02})
    batch, apply, seen = trainer.course.batch, trainer.update.apply, []
    monkeypatch.setattr(trainer.course, "batch", lambda span: (seen.append(span), batch(span))[1])
    monkeypatch.setattr(trainer.update, "apply", lambda lr: (steps.append((seen[-1], lr)), apply(lr))[1])
    assert trainer.run() is StopReason.FINISHED
    assert len(steps) == 2 * EPOCHS + 2 + 5
    for begin, count, before in ((FIRST, 2, FIRST), (SECOND + 2, 5, SECOND)):
        spans = [span_of(before + taken) for taken in range(count)]
        assert [span for span, _ in steps[begin : begin + count]] == spans
        rates = [0.02 * (1 - taken / count) * span.length / 10 for taken, span in enumerate(spans)]
        assert [lr for _, lr in steps[begin : begin + count]] == pytest.approx(rates)
        assert begin + count in validated
    assert steps[FIRST + 2] == (span_of(FIRST), pytest.approx(0.01))


@pytest.mark.slow
def test_the_prediction_by_value(whole):
    trainer = whole
    first, second = trainer.progress.branches
    assert [line["nll"] for line in branches(trainer)] == [first, second]
    assert [line["predicted"] for line in branches(trainer)] == [None, prediction.predicted([first, second], EPOCHS)]
    end = prediction.predicted([first, second], EPOCHS)
    assert f"perplexity about {perplexity(end):.3g}" in branches(trainer)[1]["message"]
    (outcome,) = (line for line in text_runs.metrics(trainer.folder.path) if line.get("event") == "outcome")
    assert f"NLL {trainer.progress.best:.3f}, {end:.3f} was predicted" in outcome["message"]


@pytest.mark.parametrize(
    ("losses", "epochs", "end"),
    [
        ((4.0, 3.8), 1, 3.8 - 0.089 - 0.78 * 0.2),
        ((4.0, 3.8), 2, 3.8 - 0.089 - 0.78 * 0.2),
        ((4.0, 3.8), 3, 3.8 - 0.018 - 0.78 * 0.2),
        ((4.4, 3.8), 3, 3.8 - 0.018 - 0.78 * 0.3),
        ((3.0, 3.8), 3, 3.8),
        ((0.6, 0.4), 3, 0.4 * 0.85),
        ((None, 3.8), 3, None),
        ((4.0, None), 3, None),
        ((4.0,), 3, None),
        ((), 3, None),
    ],
)
def test_the_rule_by_value(losses, epochs, end):
    assert prediction.predicted(losses, epochs) == (None if end is None else pytest.approx(end))


def test_what_branches_show():
    first = prediction.shown([4.0], 3)
    assert first == {
        "message": "with a rate that falls to 0 here, validation NLL 4.000", "nll": 4.0, "predicted": None
    }  # fmt: skip
    end = 3.8 - 0.018 - 0.78 * 0.2
    assert prediction.shown([4.0, 3.8], 3)["message"] == (
        "with a rate that falls to 0 here, validation NLL 3.800; at the end about"
        f" {end:.3f}, perplexity about {math.exp(end):.1f}"
    )


class Told(Watcher):
    """What a watcher hears of branches and of steps."""

    def __init__(self):
        self.heard = []

    def branch(self, done, steps):
        self.heard.append((done, steps))

    def step(self, progress, tokens, loss):
        self.heard.append(progress.step)


@pytest.mark.slow
def test_watchers_are_told_of_every_step_of_a_branch(tmp_path):
    trainer, told = trainer_of(tmp_path / "run", of_weights), Told()
    trainer.folder.watchers = (told,)
    trainer.run()
    one, two = [(done, 2) for done in range(3)], [(done, 5) for done in range(6)]
    assert told.heard == [*range(1, 11), *one, *range(11, 21), *two, *range(21, 2 * EPOCHS + 1)]


def test_the_bar_shows_a_branch_and_leaves_out_its_time(tmp_path, monkeypatch):
    seconds = iter([0.0, 10.0, 10.0, 60.0, 110.0, 120.0])
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: next(seconds)))
    bar, place = progress.TrainingBar(), Progress()
    bar.begin(2, 20, place)
    (shown,) = bar.bar.tasks
    try:
        place.step = 10
        bar.step(place, 100, 1.0)
        assert shown.fields["figures"].endswith(" 0:30 left")
        bar.branch(0, 5)
        bar.branch(3, 5)
        assert shown.fields["branch"] == ", branch 3/5"
        bar.branch(5, 5)
        assert shown.fields["branch"] == ""
        place.step = 20
        bar.step(place, 100, 1.0)
        assert shown.fields["figures"] == "loss 1.000 ppl 2.7 10 tok/s 0:20 left"
    finally:
        bar.end()


@pytest.mark.slow
@pytest.mark.parametrize("moment", [FIRST, FIRST + 1, FIRST + 2, SECOND + 4])
def test_a_run_that_is_stopped_in_a_branch_takes_it_again(moment, whole, tmp_path, monkeypatch):
    """Whenever it is stopped: its branches, weights and lines are those of a run without a stop."""
    parts, count, stop = trainer_of(tmp_path / "parts", of_weights), 0, Stop()
    apply = parts.update.apply

    def counted(lr):
        nonlocal count
        count += 1
        if count == moment:
            stop.set()
        apply(lr)

    monkeypatch.setattr(parts.update, "apply", counted)
    assert parts._train(float("inf"), stop) is StopReason.INTERRUPTED
    resumed = trainer_of(tmp_path / "parts", of_weights)
    resumed.resume()
    assert resumed.run() is StopReason.FINISHED
    assert resumed.progress.branches == whole.progress.branches
    assert digest(resumed.model) == digest(whole.model)
    assert text_runs.metrics(tmp_path / "parts") == text_runs.metrics(whole.folder.path)


class Stopping(Watcher):
    """Ends training within the first branch."""

    def __init__(self, stop):
        self.stop = stop

    def branch(self, done, steps):
        self.stop.set()


@pytest.mark.slow
def test_a_branch_that_is_stopped_again_and_again_comes_before_the_validation_of_its_step(tmp_path):
    """No step and no validation is done where training is stopped within the branch before them."""
    how = {"validate_every": FIRST, "averaging": {"kind": "non-monotone", "interval": 1}}
    whole = trainer_of(tmp_path / "whole", of_weights, **how)
    whole.run()
    stop = Stop()
    for _ in range(3):
        parts = trainer_of(tmp_path / "parts", of_weights, **how)
        if stop.is_set():
            parts.resume()
        else:
            parts.folder.watchers = (Stopping(stop),)
        assert parts._train(float("inf"), stop) is StopReason.INTERRUPTED
        assert parts.progress.step == FIRST
    resumed = trainer_of(tmp_path / "parts", of_weights, **how)
    resumed.resume()
    assert resumed.run() is StopReason.FINISHED
    assert resumed.progress.branches == whole.progress.branches
    assert text_runs.metrics(tmp_path / "parts") == text_runs.metrics(tmp_path / "whole")


@pytest.mark.slow
def test_branches_that_are_too_short_or_too_late_predict_nothing(tmp_path):
    short = trainer_of(tmp_path / "short", epochs=4)
    short.run()
    assert short.progress.branches == [None, None]
    assert [line["message"] for line in branches(short)] == [
        "no loss is predicted: the run has too few steps, or is too far on"
    ] * 2
    late = trainer_of(tmp_path / "late", predict_loss=False)
    stop = Stop()
    late.validate = lambda *_: (late.progress.step >= 14 and stop.set(), Score(1.0, 1))[1]
    assert late._train(float("inf"), stop) is StopReason.INTERRUPTED
    asked = trainer_of(tmp_path / "late", of_weights)
    asked.resume()
    asked.run()
    first, second = asked.progress.branches
    assert first is None
    assert second > 0
    assert "outcome" not in text_runs.events(tmp_path / "late")


@pytest.mark.slow
def test_a_branch_whose_loss_is_no_number_predicts_nothing(tmp_path):
    trainer = trainer_of(tmp_path / "run")
    trainer.validate = lambda *_: Score(float("nan") if len(trainer.progress.branches) < 1 else 1.0, 1)
    trainer.progress.branches = []
    trainer.run(max_minutes=None)
    assert trainer.progress.branches == [None, 1.0]


@pytest.mark.slow
def test_the_end_of_the_main_phase_is_predicted_and_no_other(tmp_path):
    trainer = trainer_of(tmp_path / "run", of_weights, fine_tune={"lr": 0.01, "epochs": 40, "interval": 99})
    assert trainer.run() is StopReason.FINISHED
    assert trainer.progress.phase == 1
    assert [name for name in text_runs.events(tmp_path / "run") if name != "averaging"] == [
        "branch", "branch", "outcome", "fine-tune",
    ]  # fmt: skip


@pytest.mark.slow
def test_another_number_of_epochs_makes_the_branches_void(tmp_path):
    trainer_of(tmp_path / "run", of_weights).run()
    longer = trainer_of(tmp_path / "run", of_weights, epochs=50)
    assert list(longer.resume()) == ["training.epochs"]
    assert longer.run() is StopReason.FINISHED
    assert longer.progress.branches == [None, None]
    assert text_runs.events(tmp_path / "run").count("outcome") == 1
