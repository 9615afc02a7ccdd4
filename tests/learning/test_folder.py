"""Lines of metrics by value: means since the last line, and a speed that leaves out validations."""

import json
import math

import pytest
import torch

from elman.learning import folder as module
from elman.learning.folder import Folder
from elman.learning.progress import Progress
from elman.objective.loss import Loss


class Clock:
    """Time that passes when it is told to."""

    now = 100.0

    def monotonic(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    made = Clock()
    monkeypatch.setattr(module, "time", made)
    return made


def test_a_line_has_the_means_since_the_last_one_and_the_speed_without_validations(tmp_path, clock):
    folder, progress = Folder(tmp_path, torch.device("cpu")), Progress()
    folder.begin(1, 4, progress)
    for step, (nll, tokens, penalty) in enumerate([(40.0, 20, 0.5), (50.0, 30, 1.5)], start=1):
        progress.step, progress.windows_logged = step, step
        parts = (torch.tensor(value, dtype=torch.float64) for value in (2.0, nll, tokens, penalty))
        folder.add(Loss(*parts), torch.tensor(0.25))
        assert folder.read(progress) is None
        clock.now += 2.0
        with folder.paused():
            clock.now += 4.0
            with folder.paused():
                clock.now += 3.0
    folder.write_train(progress, 0.5, {"lr": 0.1})
    assert (progress.nll_sum, progress.count, progress.penalty_sum, progress.windows_logged) == (0.0, 0, 0.0, 0)
    line = json.loads((tmp_path / "metrics.jsonl").read_text())
    assert line == {
        "kind": "train",
        "step": 2,
        "epoch": 0.5,
        "phase": 0,
        "loss": 90 / 50,
        "penalty": 1.0,
        "perplexity": pytest.approx(math.exp(90 / 50)),
        "lr": 0.1,
        "tokens_per_s": pytest.approx(50 / 4),
        "seconds": 18.0,
    }


def test_a_loss_that_is_not_finite_is_reported_and_not_added(tmp_path):
    folder, progress = Folder(tmp_path, torch.device("cpu")), Progress()
    loss = Loss(torch.tensor(math.nan), torch.tensor(1.0), torch.tensor(2.0), torch.tensor(0.0))
    folder.add(loss, torch.tensor(0.25))
    assert folder.read(progress) == "loss nan, gradient norm 0.25"
    assert progress.count == 0


class Told(module.Watcher):
    """What a watcher hears of steps."""

    def __init__(self):
        self.heard = []

    def step(self, progress, tokens, loss):
        self.heard.append((progress.step, tokens, loss))


def test_watchers_hear_the_mean_of_the_tokens_since_they_last_heard(tmp_path):
    folder, progress = Folder(tmp_path, torch.device("cpu")), Progress()
    told = Told()
    folder.watchers = (told,)
    for step, (nll, tokens) in enumerate([(40.0, 20), (90.0, 30)], start=1):
        progress.step = step
        parts = (torch.tensor(value, dtype=torch.float64) for value in (2.0, nll, tokens, 0.0))
        folder.add(Loss(*parts), torch.tensor(0.25))
        folder.read(progress)
    assert told.heard == [(1, 20, 2.0), (2, 30, 3.0)]
